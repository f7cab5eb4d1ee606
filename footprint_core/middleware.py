"""Rules: what they are handed, the hooks they may have, and the decorators that make one of a function.

Any rule may also have two attributes that are read once, when the agent is built. `version` stands in its
rows; without one they carry a hash of its hooks' code. `timeout` is how many seconds a hook may take: when
they have passed the answer is a denial, and what the hook answers later is ignored. A plain hook with a
timeout runs in a thread of its own, so what it shares with others must bear that; an async one is
cancelled. Without a timeout a hook runs on the event loop, and there is no limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from footprint_core import plain
from footprint_core.messages import Messages
from footprint_core.outcomes import MessageOutcome, ToolArgs, ToolOutcome, ToolResultOutcome
from footprint_core.plain import Json

Phase: TypeAlias = Literal["input", "output"]
"""Which of the two messages a message rule is shown."""

_UNREAD: Final = object()


class ToolCallContext:
    """What a rule sees before a tool runs. Values are copied when they are first read.

    Attributes:
        tool_name: The tool the model asked for.
        tool_source: The server it comes from; None for a tool of this program.
        tool_call_id: The call, unique within its iteration.
        iteration: The model call that asked for it, from 1.
        history: The conversation so far, with the assistant turn that made the call.
    """

    __slots__ = (
        "_args",
        "_copied_args",
        "_copied_identity",
        "_identity",
        "history",
        "iteration",
        "tool_call_id",
        "tool_name",
        "tool_source",
    )

    def __init__(
        self,
        *,
        tool_name: str,
        tool_source: str | None,
        tool_call_id: str,
        iteration: int,
        args: ToolArgs,
        history: Messages,
        identity: Json,
    ) -> None:
        self.tool_name = tool_name
        self.tool_source = tool_source
        self.tool_call_id = tool_call_id
        self.iteration = iteration
        self.history = history
        self._args = args
        self._copied_args: ToolArgs | None = None
        self._identity = identity
        self._copied_identity: Json = _UNREAD

    @property
    def args(self) -> ToolArgs:
        """The arguments as the rule before left them: a copy of the rule's own."""
        copied = self._copied_args
        if copied is None:
            copied = self._copied_args = plain.copy(self._args)
        return copied

    @property
    def identity(self) -> Json:
        """What the caller passed to `run` as identity, or None: a copy."""
        if self._copied_identity is _UNREAD:
            self._copied_identity = plain.copy(self._identity)
        return self._copied_identity


class ToolResultContext(ToolCallContext):
    """What a rule sees after a tool ran and before the model reads.

    Attributes:
        failed: Whether the tool raised; `result` is then its message.
    """

    __slots__ = ("_copied_result", "_result", "failed")

    def __init__(
        self,
        *,
        tool_name: str,
        tool_source: str | None,
        tool_call_id: str,
        iteration: int,
        args: ToolArgs,
        history: Messages,
        identity: Json,
        result: Json,
        failed: bool,
    ) -> None:
        super().__init__(
            tool_name=tool_name,
            tool_source=tool_source,
            tool_call_id=tool_call_id,
            iteration=iteration,
            args=args,
            history=history,
            identity=identity,
        )
        self._result = result
        self._copied_result: Json = _UNREAD
        self.failed = failed

    @property
    def result(self) -> Json:
        """The result as the rule before left it, as plain JSON: a copy of the rule's own."""
        if self._copied_result is _UNREAD:
            self._copied_result = plain.copy(self._result)
        return self._copied_result


class MessageContext:
    """What a rule sees of a message.

    Attributes:
        phase: `input` for the user's message, `output` for the answer.
        content: The text as the rule before left it.
        history: Empty at input; at output the conversation without the answer.
    """

    __slots__ = ("_copied_identity", "_identity", "content", "history", "phase")

    def __init__(self, *, phase: Phase, content: str, history: Messages, identity: Json) -> None:
        self.phase: Phase = phase
        self.content = content
        self.history = history
        self._identity = identity
        self._copied_identity: Json = _UNREAD

    @property
    def identity(self) -> Json:
        """What the caller passed to `run` as identity, or None: a copy."""
        if self._copied_identity is _UNREAD:
            self._copied_identity = plain.copy(self._identity)
        return self._copied_identity


@runtime_checkable
class ToolCallRule(Protocol):
    """Decides before a tool runs."""

    @property
    def name(self) -> str:
        """A non-blank name, unique in its chain."""
        ...

    def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome | Awaitable[ToolOutcome]:
        """Allow, deny or ask."""
        ...


@runtime_checkable
class ToolResultRule(Protocol):
    """Decides before the model reads a result."""

    @property
    def name(self) -> str:
        """A non-blank name, unique in its chain."""
        ...

    def on_tool_result(self, call: ToolResultContext, /) -> ToolResultOutcome | Awaitable[ToolResultOutcome]:
        """Allow or deny."""
        ...


@runtime_checkable
class MessageRule(Protocol):
    """Decides about the user's message and about the answer."""

    @property
    def name(self) -> str:
        """A non-blank name, unique in its chain."""
        ...

    def on_message(self, message: MessageContext, /) -> MessageOutcome | Awaitable[MessageOutcome]:
        """Allow or deny."""
        ...


OnToolCall: TypeAlias = Callable[[ToolCallContext], ToolOutcome | Awaitable[ToolOutcome]]
OnToolResult: TypeAlias = Callable[[ToolResultContext], ToolResultOutcome | Awaitable[ToolResultOutcome]]
OnMessage: TypeAlias = Callable[[MessageContext], MessageOutcome | Awaitable[MessageOutcome]]


class CallRule(msgspec.Struct, frozen=True, kw_only=True):
    """A function as a rule before a tool runs."""

    name: str
    on_tool_call: OnToolCall
    version: str | None = None
    timeout: float | None = None


class ResultRule(msgspec.Struct, frozen=True, kw_only=True):
    """A function as a rule before a result is read."""

    name: str
    on_tool_result: OnToolResult
    version: str | None = None
    timeout: float | None = None


class ContentRule(msgspec.Struct, frozen=True, kw_only=True):
    """A function as a rule about messages."""

    name: str
    on_message: OnMessage
    version: str | None = None
    timeout: float | None = None


def before_tool(
    name: str, /, *, version: str | None = None, timeout: float | None = None
) -> Callable[[OnToolCall], CallRule]:
    """Make a rule of a function that decides before a tool runs.

    Args:
        name: A non-blank name, unique in its chain.
        version: What its rows say of its version; a hash of its code when it is not given.
        timeout: Seconds it may take to answer; no limit when it is not given.
    """

    def made(hook: OnToolCall) -> CallRule:
        return CallRule(name=name, on_tool_call=hook, version=version, timeout=timeout)

    return made


def after_tool(
    name: str, /, *, version: str | None = None, timeout: float | None = None
) -> Callable[[OnToolResult], ResultRule]:
    """Make a rule of a function that decides before the model reads a result; see `before_tool`."""

    def made(hook: OnToolResult) -> ResultRule:
        return ResultRule(name=name, on_tool_result=hook, version=version, timeout=timeout)

    return made


def on_message(
    name: str, /, *, version: str | None = None, timeout: float | None = None
) -> Callable[[OnMessage], ContentRule]:
    """Make a rule of a function that decides about messages, see `before_tool`; it reads `message.phase`."""

    def made(hook: OnMessage) -> ContentRule:
        return ContentRule(name=name, on_message=hook, version=version, timeout=timeout)

    return made
