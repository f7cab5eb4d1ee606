"""The model is asked, and replies or fails."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from footprint_core.facts.words import Route, StopReason, Usage
from footprint_core.messages import ToolCall
from footprint_core.plain import Json


class ModelAsked(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="model.asked"):
    """A request is about to go out. All figures are counters, none is a scan."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    provider: str
    model: str
    server: str | None
    messages: int
    message_chars: int
    new_messages: int
    system_chars: int
    tools: tuple[str, ...]
    tool_chars: int
    first: bool


class ModelReplied(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="model.replied"
):
    """The reply is complete."""

    values: ClassVar[tuple[str, ...]] = ("text", "calls")
    iteration: int
    call_count: int
    stop_reason: StopReason
    duration_us: int
    route: Route | None = None
    usage: Usage | None = None
    response_id: str | None = None
    response_model: str | None = None
    first_chunk_us: int | None = None
    text: Json = msgspec.UNSET
    calls: tuple[ToolCall, ...] | Json = ()


class ModelFailed(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="model.failed"):
    """The provider raised, or the call was cancelled, before the reply was complete."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    error_class: str
    duration_us: int
