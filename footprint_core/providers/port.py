"""The port to a model: shaped for streaming, so that a plain provider is the simple case of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol

import msgspec

from footprint_core.facts import StopReason, Usage
from footprint_core.messages import Messages, ToolCall
from footprint_core.plain import Json


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model is told of it; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Json]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is asked.

    Attributes:
        system: The system prompt, or empty.
        messages: The conversation, an immutable view.
        tools: The tools it may ask for.
        model: The model's name.
    """

    system: str
    messages: Messages
    tools: tuple[ToolOffer, ...]
    model: str


class Chunk(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A piece of text, as it arrives."""

    text: str


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """The whole reply; always the last thing a provider yields.

    Attributes:
        text: All of the text.
        tool_calls: The calls it asks for.
        usage: Tokens; None when the provider does not say.
        stop_reason: Why it stopped. The calls alone decide where the loop goes.
        response_id: The provider's id of the reply.
        response_model: The model that answered, as the provider names it.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    stop_reason: StopReason = "stop"
    response_id: str | None = None
    response_model: str | None = None


class Whole(AsyncIterator[Chunk | Completed]):
    """A reply that comes in one piece: what a provider returns that does not stream.

    An async generator would do the same, and cost the event loop a few microseconds for each call.
    """

    __slots__ = ("_completed",)

    def __init__(self, completed: Completed) -> None:
        self._completed: Completed | None = completed

    async def __anext__(self) -> Chunk | Completed:
        """The reply, once."""
        completed, self._completed = self._completed, None
        if completed is None:
            raise StopAsyncIteration
        return completed


class Provider(Protocol):
    """A model provider.

    `streaming` (bool) and `server` (str, host and port) may also be given as attributes.
    """

    @property
    def name(self) -> str:
        """The provider's name, as telemetry spells it."""
        ...

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """Zero or more chunks, then one `Completed`."""
        ...
