"""The port to a model: shaped for streaming, so that a plain provider is the simple case of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Protocol

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


def whole(completed: Completed | None, who: str) -> Completed:
    """The last thing a provider yielded, when it is a whole reply.

    Args:
        completed: It, or None.
        who: What to call the provider.

    Raises:
        EOFError: There is none.
        TypeError: A part of it is not of its type; nothing of it is quoted.
    """
    if completed is None:
        raise EOFError(f"The {who} ended its reply without a Completed.")
    # Looked at as what anybody may have put there, whatever their types say.
    said: Any = completed
    if not isinstance(said.text, str) or not _are_calls(said.tool_calls):
        raise TypeError(f"The Completed of the {who} holds a text that is none, or calls that are none.")
    if said.usage is not None and not _is_usage(said.usage):
        raise TypeError(f"The Completed of the {who} holds a usage that is none.")
    for name in (said.response_id, said.response_model):
        if name is not None and not isinstance(name, str):
            raise TypeError(f"The Completed of the {who} holds a name that is no text.")
    return completed


def _are_calls(calls: Any) -> bool:
    if type(calls) is not tuple:
        return False
    held: tuple[Any, ...] = calls  # pyright: ignore[reportUnknownVariableType]
    for call in held:
        if type(call) is not ToolCall or not _are_texts(call.id, call.name, call.args_json):
            return False
    return True


def _are_texts(one: object, two: object, three: object) -> bool:
    return isinstance(one, str) and isinstance(two, str) and isinstance(three, str)


def _is_usage(usage: object) -> bool:
    if not isinstance(usage, Usage):
        return False
    return (
        type(usage.input) is int
        and type(usage.output) is int
        and (usage.cache_read is None or type(usage.cache_read) is int)
        and (usage.cache_write is None or type(usage.cache_write) is int)
    )


class Whole(AsyncIterator[Chunk | Completed]):
    """A reply that comes in one piece: what a provider returns that does not stream.

    An async generator would do the same, and cost the event loop a few microseconds for each call.
    """

    __slots__ = ("_completed",)

    def __init__(self, completed: Completed) -> None:
        self._completed: Completed | None = completed

    async def __anext__(self) -> Chunk | Completed:
        """The reply, once."""
        completed = self.take()
        if completed is None:
            raise StopAsyncIteration
        return completed

    def take(self) -> Completed | None:
        """The reply, once, without waiting."""
        completed, self._completed = self._completed, None
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
