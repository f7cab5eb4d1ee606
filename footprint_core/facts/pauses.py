"""A person is asked, and answers."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from footprint_core.facts.words import PauseKind
from footprint_core.plain import Json


class PauseOpened(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="pause.opened"):
    """A person is asked. `digest` is over tool, source and args, with `salt`; see `pause.checkpoint`."""

    values: ClassVar[tuple[str, ...]] = ("salt", "digest")
    pause_id: str
    pause_kind: PauseKind
    iteration: int
    call_id: str
    tool_name: str
    tool_source: str | None = None
    middleware: str | None = None
    expires_us: int | None = None
    imported: bool = False
    salt: Json = msgspec.UNSET
    digest: Json = msgspec.UNSET


class PauseAnswered(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="pause.answered"
):
    """A person answered; this append is what consumes the pause.

    `rewalk` says that everything was asked again, since the agent's rules had changed.
    """

    values: ClassVar[tuple[str, ...]] = ()
    pause_id: str
    pause_kind: PauseKind
    answer: Literal["approved", "declined", "value"]
    tool_name: str
    call_id: str
    paused_us: int
    rewalk: bool = False


class PauseClosed(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="pause.closed"):
    """A pause takes no answer any more."""

    values: ClassVar[tuple[str, ...]] = ()
    pause_id: str
    reason: Literal["expired"]
    tool_name: str
    call_id: str
