"""The model is called."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from footprint_core.events.base import EventBase
from footprint_core.facts import StopReason


class IterationStarted(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.iteration_start"
):
    """A model call is about to be made."""

    type: ClassVar[str] = "agent.iteration_start"
    iteration: int


class ModelCallStarted(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.llm_start"
):
    """The request goes out."""

    type: ClassVar[str] = "stream.llm_start"
    iteration: int
    provider: str
    model: str
    server: str | None = None
    messages_count: int
    tools_count: int


class TokenStreamed(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.token"):
    """A chunk arrived: how long it is, never what it says. A signal, not in the ledger."""

    type: ClassVar[str] = "stream.token"
    iteration: int
    token_index: int
    chars: int


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens read and written."""

    input: int
    output: int


class ModelCallEnded(EventBase, frozen=True, kw_only=True, tag_field="type", tag="stream.llm_end"):
    """The reply is complete, or the call failed."""

    type: ClassVar[str] = "stream.llm_end"
    iteration: int
    tool_call_count: int
    usage: TokenUsage | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    response_model: str | None = None
    response_id: str | None = None
    first_chunk: float | None = None
    stop_reason: StopReason | None = None
    error_class: str | None = None
    duration: float
