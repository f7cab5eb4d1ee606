"""The messages of a recording as turns: what the user said, and the replies and results that followed.

A call and its result are paired where they stand, in the reply and behind it, and never by the id alone:
ids repeat in recordings. A recording that lost a message on the way is refused and not guessed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from footprint_core import plain
from footprint_core.errors import RunError
from footprint_core.messages import harmless_id
from footprint_core.plain import Json
from footprint_observe.backtest.chat import (
    AssistantChat,
    ChatCall,
    ChatMessage,
    SystemChat,
    ToolChat,
    UserChat,
)


class BrokenRecordingError(RunError):
    """The messages are no complete conversation; the text goes on a sentence that names the line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call, and what the tool gave for it.

    Attributes:
        id: Its id; one the loop would replace is replaced by its place in the recording.
        name: The tool.
        args_json: The arguments, JSON text.
        result: The result as it was recorded.
    """

    id: str
    name: str
    args_json: str
    result: str

    @property
    def value(self) -> Json:
        """What the tool gave: JSON where the text is JSON, else the text."""
        try:
            return plain.decode(self.result)
        except (ValueError, RecursionError):
            return self.result


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReply:
    """What the model said; with calls it is not the end of its turn."""

    text: str
    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """What a user said, and every reply until the model had no more calls, or the recording ended."""

    text: str
    replies: tuple[RecordedReply, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether the recording holds an answer to the user."""
        return bool(self.replies) and not self.replies[-1].calls


def turns_of(messages: Sequence[ChatMessage]) -> tuple[str, tuple[RecordedTurn, ...]]:
    """The system prompt, or empty, and the turns.

    Raises:
        BrokenRecordingError: A message is missing, or stands where it cannot.
    """
    system = ""
    reading = _Reading()
    for at, message in enumerate(messages, 1):
        match message:
            case SystemChat():
                if at > 1:
                    raise _broken(at, "is a system message behind another message", "put it first")
                system = message.content
            case UserChat():
                reading.user(message, at)
            case AssistantChat():
                reading.assistant(message, at)
            case ToolChat():
                reading.tool(message, at)
    return system, reading.end()


def _broken(at: int, what: str, todo: str) -> BrokenRecordingError:
    return BrokenRecordingError(f"has a message {at} that {what}; {todo}")


class _Reading:
    """A walk over the messages of one conversation, which keeps the reply whose results are being read."""

    def __init__(self) -> None:
        self._turns: list[RecordedTurn] = []
        self._reply: AssistantChat | None = None
        self._at = 0
        self._results: list[str | None] = []
        self._calls = 0

    def user(self, message: UserChat, at: int) -> None:
        self._close()
        if self._turns and not self._turns[-1].answered:
            raise _broken(at, "is the user's, and the reply before it is missing", "put it back")
        if not message.content.strip():
            raise _broken(at, "is the user's, and empty", "give it text or take it out")
        self._turns.append(RecordedTurn(text=message.content))

    def assistant(self, message: AssistantChat, at: int) -> None:
        self._close()
        if not self._turns or self._turns[-1].answered:
            raise _broken(at, "is a reply, and the user's message before it is missing", "put it back")
        if message.content is None and not message.tool_calls:
            raise _broken(at, "is a reply without text and without calls", "complete it")
        self._reply, self._at = message, at
        self._results = [None for _ in message.tool_calls or ()]

    def tool(self, message: ToolChat, at: int) -> None:
        calls = (self._reply and self._reply.tool_calls) or ()
        for index, call in enumerate(calls):
            if self._results[index] is None and call.id == message.tool_call_id:
                self._results[index] = message.content
                return
        raise _broken(at, "is a result, and the call it belongs to is missing", "put it back")

    def end(self) -> tuple[RecordedTurn, ...]:
        self._close()
        if not self._turns:
            raise BrokenRecordingError("has no message of a user; begin with one")
        return tuple(self._turns)

    def _close(self) -> None:
        """End the reply whose results were being read."""
        if self._reply is None:
            return
        calls = tuple(map(self._call, self._reply.tool_calls or (), self._results))
        reply = RecordedReply(text=self._reply.content or "", calls=calls)
        self._turns[-1] = replace(self._turns[-1], replies=(*self._turns[-1].replies, reply))
        self._reply = None

    def _call(self, call: ChatCall, result: str | None) -> RecordedCall:
        if result is None:
            raise _broken(self._at, "has a call whose result is missing", "put it back")
        try:
            plain.decode(call.function.arguments)
        except (ValueError, RecursionError):
            raise _broken(self._at, "has a call whose arguments are no JSON text", "correct them") from None
        self._calls += 1
        harmless = harmless_id(call.id)
        return RecordedCall(
            id=call.id if harmless else f"recorded-{self._calls}",
            name=call.function.name,
            args_json=call.function.arguments,
            result=result,
        )
