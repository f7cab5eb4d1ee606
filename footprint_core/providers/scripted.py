"""A model that says what it was told to say, in order. For tests and demonstrations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from footprint_core import plain
from footprint_core.errors import RunError
from footprint_core.facts import Usage
from footprint_core.messages import ToolCall
from footprint_core.providers.port import Chunk, Completed, ModelRequest, Whole


class UnexpectedRequestError(RunError):
    """A scripted model was asked more often than it has replies."""


class UnusedReplyError(RunError):
    """A scripted model has replies nobody asked for."""


class Tokens(Completed, frozen=True, kw_only=True):
    """A reply, and the chunks a scripted model that streams yields before it."""

    tokens: tuple[str, ...] = ()


def call(id: str, name: str, args: dict[str, Any], /) -> ToolCall:
    """A call for a scripted reply."""
    return ToolCall(id=id, name=name, args_json=plain.encode(args).decode())


def reply(
    *,
    text: str = "",
    tokens: Sequence[str] = (),
    calls: Sequence[ToolCall] = (),
    usage: Usage | None = Usage(input=10, output=5),  # noqa: B008 - frozen
    label: str | None = None,
) -> Completed:
    """A reply for `Scripted`.

    Args:
        text: The text.
        tokens: The chunks a streaming `Scripted` yields; the text is they joined.
        calls: The calls it asks for.
        usage: Tokens; None when the provider does not say.
        label: Names the reply when it goes unused.
    """
    return Tokens(
        text="".join(tokens) or text,
        tokens=tuple(tokens),
        tool_calls=tuple(calls),
        usage=usage,
        stop_reason="tool_use" if calls else "stop",
        response_id=label,
    )


async def _streamed(completed: Completed) -> AsyncIterator[Chunk | Completed]:
    tokens = completed.tokens if isinstance(completed, Tokens) else ()
    for text in tokens or ((completed.text,) if completed.text else ()):
        yield Chunk(text=text)
    yield completed


class Scripted:
    """Gives the replies in order and keeps the requests.

    Args:
        replies: The replies.
        streaming: Yield chunks before each reply: its tokens, or its text as one.

    Attributes:
        name: `scripted`.
        streaming: Whether it streams.
        requests: Every request so far.
    """

    name = "scripted"

    def __init__(self, replies: Sequence[Completed], *, streaming: bool = False) -> None:
        self._replies = tuple(replies)
        self.streaming = streaming
        self.requests: list[ModelRequest] = []

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """The next reply.

        Raises:
            UnexpectedRequestError: There is none left.
        """
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self._replies):
            raise UnexpectedRequestError(
                f"Request {number + 1} came, but the script has {len(self._replies)} replies; add one."
            )
        completed = self._replies[number]
        return _streamed(completed) if self.streaming else Whole(completed)

    def assert_used(self) -> None:
        """Refuse a script that was not used up.

        Raises:
            UnusedReplyError: A reply is left; it is named.
        """
        used = len(self.requests)
        if used < len(self._replies):
            unused = self._replies[used]
            named = unused.response_id or ", ".join(c.name for c in unused.tool_calls) or "a text"
            raise UnusedReplyError(f"Reply {used + 1} of {len(self._replies)} ({named}) was never asked for.")
