"""A rule under a key whose hook it has not, and other things that are no rules."""

from __future__ import annotations

from footprint_core import (
    AgentBuilder,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    before_tool,
    on_message,
    sliding_window,
)


class OnCall:
    name = "on-call"

    def on_tool_call(self, call: ToolCallContext) -> ToolOutcome:
        return allow()


class Named:
    name = "named"


class Nameless:
    def on_tool_call(self, call: ToolCallContext) -> ToolOutcome:
        return allow()


class Numbered:
    name = 3

    def on_tool_call(self, call: ToolCallContext) -> ToolOutcome:
        return allow()


class Swapped:
    name = "swapped"

    def on_message(self, message: ToolCallContext) -> MessageOutcome:
        return allow()


@before_tool("call")
def on_call(call: ToolCallContext) -> ToolOutcome:
    return allow()


@after_tool("result")
def on_result(call: ToolResultContext) -> ToolResultOutcome:
    return allow()


@on_message("message")
def on_text(message: MessageContext) -> MessageOutcome:
    return allow()


def plain(call: ToolCallContext) -> ToolOutcome:
    return allow()


def govern(builder: AgentBuilder) -> None:
    # refused: mypy list-item, pyright reportArgumentType, naming OnCall
    builder.act(after_tool=[OnCall()])
    # refused: mypy list-item, pyright reportArgumentType, naming OnCall
    builder.act(input=[OnCall()])
    # refused: mypy list-item, pyright reportArgumentType, naming OnCall
    builder.act(output=[OnCall()])
    # refused: mypy list-item, pyright reportArgumentType, naming Named
    builder.act(before_tool=[Named()])
    # refused: mypy list-item, pyright reportArgumentType, naming Nameless
    builder.act(before_tool=[Nameless()])
    # refused: mypy list-item, pyright reportArgumentType, naming Numbered
    builder.act(before_tool=[Numbered()])
    # refused: mypy list-item, pyright reportArgumentType
    builder.act(before_tool=[OnCall])
    # refused: mypy list-item, pyright reportArgumentType, naming Swapped
    builder.act(input=[Swapped()])
    # refused: mypy list-item, pyright reportArgumentType, naming ResultRule
    builder.act(before_tool=[on_result])
    # refused: mypy list-item, pyright reportArgumentType, naming ContentRule
    builder.act(after_tool=[on_text])
    # refused: mypy list-item, pyright reportArgumentType, naming CallRule
    builder.act(input=[on_call])
    # refused: mypy list-item, pyright reportArgumentType
    builder.act(before_tool=[plain])
    # refused: mypy arg-type, pyright reportArgumentType
    builder.act(before_tool=OnCall())
    # refused: mypy arg-type, pyright reportArgumentType
    builder.act(before_tool="on-call")
    # refused: mypy arg-type, pyright reportArgumentType
    builder.act(window=OnCall())
    # refused: mypy arg-type, pyright reportArgumentType
    builder.act(window=sliding_window)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.act(window=[sliding_window(keep_recent_turns=3)])
    # refused: mypy arg-type, pyright reportArgumentType, naming Named
    builder.tool_middleware(Named())
    # refused: mypy arg-type, pyright reportArgumentType, naming ContentRule
    builder.tool_middleware(on_call, on_text)
    # refused: mypy arg-type, pyright reportArgumentType
    builder.tool_middleware([on_call])
    # refused: mypy arg-type, pyright reportArgumentType, naming CallRule
    builder.message_middleware(on_text, on_call)
    # refused: mypy arg-type, pyright reportArgumentType, naming Swapped
    builder.message_middleware(Swapped())


# refused: mypy arg-type, pyright reportArgumentType
@before_tool("takes-a-result")
def takes_a_result(call: ToolResultContext) -> ToolOutcome:
    return allow()


# refused: mypy arg-type, pyright reportArgumentType
@on_message("takes-a-call")
def takes_a_call(call: ToolCallContext) -> MessageOutcome:
    return allow()


# refused: mypy arg-type, pyright reportArgumentType
@before_tool
def not_called(call: ToolCallContext) -> ToolOutcome:
    return allow()


# refused: mypy call-arg, pyright reportCallIssue
@before_tool()
def not_named(call: ToolCallContext) -> ToolOutcome:
    return allow()
