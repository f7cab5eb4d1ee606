"""A rule that answers for the tool."""

from __future__ import annotations

from dataclasses import dataclass

from footprint_core import (
    Allow,
    MessageContext,
    MessageOutcome,
    ToolArgs,
    ToolCallContext,
    ToolCallRule,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    ToolResultRule,
    after_tool,
    allow,
    before_tool,
    deny,
    on_message,
)


@dataclass(frozen=True)
class Result:
    """An arm there is none of."""

    value: object
    kind: str = "result"


@dataclass(frozen=True)
class Deny:
    """An arm by the name of one."""

    reason: str


def text(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return "It is done."


def made_up(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType, naming Result
    return Result("It is done.")


def same_name(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType, naming Deny
    return Deny("no")


def as_a_dict(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return {"kind": "result", "value": "It is done."}


def like_an_outcome(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return {"kind": "allow"}


def yes(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return True


def nothing(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return None


# refused: mypy return, pyright reportReturnType
def forgotten(call: ToolCallContext) -> ToolOutcome:  # noqa: RET503 - the point
    if call.iteration > 1:
        return deny("Once is enough.")


def the_verb(call: ToolCallContext) -> ToolOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return allow


def another_result(call: ToolResultContext) -> ToolResultOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return "something else"


def made_up_late(call: ToolResultContext) -> ToolResultOutcome:
    # refused: mypy return-value, pyright reportReturnType, naming Result
    return Result(call.result)


def another_text(message: MessageContext) -> MessageOutcome:
    # refused: mypy return-value, pyright reportReturnType
    return message.content.upper()


def made_up_text(message: MessageContext) -> MessageOutcome:
    # refused: mypy return-value, pyright reportReturnType, naming Result
    return Result(message.content)


# refused: mypy arg-type, pyright reportArgumentType
@before_tool("decorated")
def decorated(call: ToolCallContext) -> str:
    return "It is done."


# refused: mypy arg-type, pyright reportArgumentType, naming Result
@before_tool("decorated-async")
async def decorated_async(call: ToolCallContext) -> Result:
    return Result("It is done.")


# refused: mypy arg-type, pyright reportArgumentType
@after_tool("decorated-late")
def decorated_late(call: ToolResultContext) -> object:
    return call.result


# refused: mypy arg-type, pyright reportArgumentType
@on_message("decorated-message")
def decorated_message(message: MessageContext) -> bool:
    return "please" in message.content


class Answering:
    name = "answering"

    def on_tool_call(self, call: ToolCallContext) -> Allow[ToolArgs] | Result:
        return Result("It is done.") if call.iteration > 1 else allow()

    async def on_tool_result(self, call: ToolResultContext) -> str:
        return str(call.result)


# refused: mypy assignment, pyright reportAssignmentType, naming Answering
a_call_rule: ToolCallRule = Answering()
# refused: mypy assignment, pyright reportAssignmentType, naming Answering
a_result_rule: ToolResultRule = Answering()
