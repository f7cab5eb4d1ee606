"""A person is asked, and answers."""

from __future__ import annotations

from typing import ClassVar, Literal

from footprint_core.events.base import EventBase
from footprint_core.facts import PauseKind


class PauseRequested(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="pause.request"):
    """The run is about to pause."""

    type: ClassVar[str] = "pause.request"
    pause_id: str
    kind: PauseKind
    middleware: str | None = None
    tool_name: str
    tool_call_id: str
    iteration: int


class PauseResumed(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="pause.resume"):
    """A person's answer was accepted."""

    type: ClassVar[str] = "pause.resume"
    pause_id: str
    kind: PauseKind
    answer: Literal["approved", "declined", "value"]
    tool_name: str
    tool_call_id: str
    paused: float
