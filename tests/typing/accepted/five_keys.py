"""`.act()` with all of its keys, with none, and with a dict of them; moments and keys matched to the last."""

from __future__ import annotations

import asyncio
from typing import assert_never, assert_type

from footprint_core import (
    ACT_KEYS,
    LOOP_MOMENTS,
    ActKey,
    ActOptions,
    Agent,
    AgentBuilder,
    LoopMoment,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    act_key_for,
    after_tool,
    allow,
    before_tool,
    on_message,
    sliding_window,
)
from footprint_core.providers import Scripted, reply


@before_tool("calls")
def calls(call: ToolCallContext) -> ToolOutcome:
    return allow()


@after_tool("results")
def results(call: ToolResultContext) -> ToolResultOutcome:
    return allow()


@on_message("messages")
def messages(message: MessageContext) -> MessageOutcome:
    return allow()


def begun() -> AgentBuilder:
    return Agent.create(provider=Scripted([reply(text="Hello.")]), model="m", name="governed")


everything: ActOptions = {
    "input": [messages],
    "before_tool": [calls],
    "after_tool": [results],
    "window": sliding_window(keep_recent_turns=4),
    "output": [messages],
}
some: ActOptions = {"before_tool": [calls]}


def where(moment: LoopMoment) -> str:
    match moment:
        case "input" | "output":
            return "message"
        case "before-tool" | "after-tool":
            return "tool"
        case "window":
            return "window"
        case _:
            assert_never(moment)


def spelled(key: ActKey) -> LoopMoment:
    match key:
        case "input":
            return "input"
        case "before_tool":
            return "before-tool"
        case "after_tool":
            return "after-tool"
        case "window":
            return "window"
        case "output":
            return "output"
        case _:
            assert_never(key)


async def main() -> None:
    window = sliding_window(keep_recent_turns=4)
    five = begun().act(
        input=[messages], before_tool=[calls], after_tool=[results], window=window, output=[messages]
    )
    assert_type(five, AgentBuilder)
    await five.build().run("Hello")
    for options in (everything, some, ActOptions()):
        await begun().act(**options).build().run("Hello")
    await begun().act().build().run("Hello")
    nothing = begun().act(input=None, before_tool=None, after_tool=None, window=None, output=None)
    await nothing.build().run("Hello")

    assert_type(LOOP_MOMENTS, tuple[LoopMoment, ...])
    assert_type(ACT_KEYS, tuple[ActKey, ...])
    assert_type(act_key_for("before-tool"), ActKey)
    assert tuple(spelled(act_key_for(moment)) for moment in LOOP_MOMENTS) == LOOP_MOMENTS
    assert {where(moment) for moment in LOOP_MOMENTS} == {"message", "tool", "window"}


if __name__ == "__main__":
    asyncio.run(main())
