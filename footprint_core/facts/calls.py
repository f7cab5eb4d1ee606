"""A call from being taken up to being answered."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from footprint_core.facts.words import CallStatus
from footprint_core.plain import Json, JsonType


class CallTaken(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="call.taken"):
    """A call is taken up, before anything decides about it."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    call_id: str
    tool_name: str
    tool_source: str | None = None
    parallel_count: int | None = None


class ToolIntended(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="tool.intended"
):
    """A tool is about to run. Without a `ToolFinished` behind it, it may have run.

    `args` are those that will run, validated, defaults included; its position is the idempotency key.
    """

    values: ClassVar[tuple[str, ...]] = ("args",)
    iteration: int
    call_id: str
    tool_name: str
    tool_source: str | None = None
    args: Json = msgspec.UNSET


class ToolFinished(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="tool.finished"
):
    """A tool ran: its result as plain JSON, or the message of what it raised.

    `by_person` says that the tool asked a person while it ran, and the result is their answer.
    """

    values: ClassVar[tuple[str, ...]] = ("result",)
    iteration: int
    call_id: str
    tool_name: str
    failed: bool
    duration_us: int
    tool_source: str | None = None
    cancelled: bool = False
    by_person: bool = False
    error_class: str | None = None
    result: Json = msgspec.UNSET


class CallAnswered(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="call.answered"
):
    """What the model reads of a call.

    `text` is absent when it is the tool's result, unchanged; `refused` says that it is not the tool's own.
    """

    values: ClassVar[tuple[str, ...]] = ("text",)
    iteration: int
    call_id: str
    tool_name: str
    tool_type: str
    status: CallStatus
    executed: bool
    args_changed: bool
    args_known_keys: int
    args_unknown_keys: int
    result_type: JsonType | Literal["opaque"]
    result_bytes: int
    tool_source: str | None = None
    decided_by_rule: str | None = None
    refused: bool = False
    issues: int | None = None
    error_class: str | None = None
    duration_us: int | None = None
    text: Json = msgspec.UNSET


class ToolPaused(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="tool.paused"):
    """A tool asked a person while it ran; it does not run again, their answer is its result."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    call_id: str
    tool_name: str
    duration_us: int
    tool_source: str | None = None
