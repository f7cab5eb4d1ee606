"""A question where there is nobody left to ask."""

from __future__ import annotations

from footprint_core import (
    Ask,
    MessageContext,
    MessageOutcome,
    MessageRule,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    ToolResultRule,
    after_tool,
    allow,
    ask,
    on_message,
)


def after_the_fact(call: ToolResultContext) -> ToolResultOutcome:
    # refused: mypy return-value, pyright reportReturnType, naming Ask
    return ask("Was that right?")


async def after_the_fact_async(call: ToolResultContext) -> ToolResultOutcome:
    # refused: mypy return-value, pyright reportReturnType, naming Ask
    return allow() if call.failed else ask("Was that right?")


def about_a_message(message: MessageContext) -> MessageOutcome:
    # refused: mypy return-value, pyright reportReturnType, naming Ask
    return ask("May it say that?") if message.phase == "output" else allow()


# refused: mypy arg-type, pyright reportArgumentType
@after_tool("decorated")
def decorated(call: ToolResultContext) -> ToolOutcome:
    return allow()


# refused: mypy arg-type, pyright reportArgumentType, naming Ask
@on_message("decorated-message")
async def decorated_message(message: MessageContext) -> Ask:
    return ask("May it say that?")


class Asking:
    name = "asking"

    def on_tool_result(self, call: ToolResultContext) -> Ask:
        return ask("Was that right?")

    async def on_message(self, message: MessageContext) -> MessageOutcome | Ask:
        return ask("May it say that?")


# refused: mypy assignment, pyright reportAssignmentType, naming Asking
a_result_rule: ToolResultRule = Asking()
# refused: mypy assignment, pyright reportAssignmentType, naming Asking
a_message_rule: MessageRule = Asking()
