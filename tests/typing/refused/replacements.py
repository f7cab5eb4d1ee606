"""A value that goes on in place of another: without a reason, or of a type that cannot stand there."""

from __future__ import annotations

from footprint_core import (
    Allow,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    allow,
    ask,
    before_tool,
    deny,
    on_message,
)


def no_reason(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy call-overload, pyright reportArgumentType
    return allow({"amount": 1})


def no_reason_late(call: ToolResultContext) -> ToolResultOutcome:
    # refused: mypy call-overload, pyright reportArgumentType
    return allow(str(call.result))


def no_reason_message(message: MessageContext) -> MessageOutcome:
    # refused: mypy call-overload, pyright reportArgumentType
    return allow(message.content)


def reason_that_is_none(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy call-overload, pyright reportCallIssue
    return allow({"amount": 1}, why=None)


def by_keyword(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy call-overload, pyright reportCallIssue
    return allow(value={"amount": 1}, why="less")


def text_for_arguments(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy arg-type, pyright reportReturnType
    return allow("amount=1", why="less")


def nothing_for_arguments(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy arg-type, pyright reportReturnType
    return allow(None, why="none")


def numbered_arguments(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy dict-item, pyright reportReturnType
    return allow({1: "one"}, why="a key is text")


def arguments_for_text(message: MessageContext) -> MessageOutcome:
    # refused: mypy arg-type, pyright reportReturnType
    return allow({"content": "hello"}, why="shorter")


def number_for_text(message: MessageContext) -> MessageOutcome:
    # refused: mypy arg-type, pyright reportReturnType
    return allow(3, why="shorter")


# refused: mypy arg-type, pyright reportArgumentType
@before_tool("decorated")
def decorated(call: ToolCallContext) -> Allow[str]:
    return allow("amount=1", why="less")


# refused: mypy arg-type, pyright reportArgumentType
@on_message("decorated-message")
async def decorated_message(message: MessageContext) -> Allow[bytes]:
    return allow(b"hello", why="shorter")


# refused: mypy call-arg, pyright reportCallIssue
deny()
# refused: mypy arg-type, pyright reportArgumentType
deny(None)
# refused: mypy call-arg, pyright reportCallIssue
ask()
# refused: mypy call-arg, pyright reportCallIssue
ask("May it?", "detail")
