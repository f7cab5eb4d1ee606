"""A rule that scribbles over everything it is handed changes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings

from conversations import Asked, World, asked_for, replies, turns
from footprint_core import Answer, MessageContext, ToolCallContext, ToolResultContext, allow
from story import facts_of


def scribble(value: Any) -> None:
    """Change a value everywhere it lets itself be changed."""
    if isinstance(value, dict):
        for item in list(value.values()):
            scribble(item)
        value.clear()
        value["scribbled"] = True
    elif isinstance(value, list):
        for item in value:
            scribble(item)
        value[:] = ["scribbled"]


class Rule:
    """Looks at everything it is handed, and scribbles over it when it is told to."""

    name = "rule"
    version = "1"

    def __init__(self, *, scribbles: bool) -> None:
        self._scribbles = scribbles
        self.kept: list[Any] = []

    def _look(self, context: Any, *values: Any) -> Any:
        self.kept += values
        if self._scribbles:
            for value in values:
                scribble(value)
            for message in context.history:
                for call in getattr(message, "calls", ()):
                    scribble(call.args)
        mine = {"own": ["value"]}
        self.kept.append(mine)
        return allow(why="seen")

    def on_tool_call(self, call: ToolCallContext) -> Any:
        return self._look(call, call.args, call.identity)

    def on_tool_result(self, call: ToolResultContext) -> Any:
        return self._look(call, call.args, call.result, call.identity)

    def on_message(self, message: MessageContext) -> Any:
        return self._look(message, message.identity)


class Changing:
    """Replaces a result by an object it keeps, and changes that object afterwards."""

    name = "changing"
    version = "1"

    def __init__(self, *, scribbles: bool) -> None:
        self._scribbles = scribbles
        self._kept: list[Any] = []

    def on_tool_result(self, call: ToolResultContext) -> Any:
        for value in self._kept if self._scribbles else ():
            scribble(value)
        value = {"was": call.result}
        self._kept.append(value)
        return allow(value, why="wrapped")


async def play(asked: list[list[Asked]], *, scribbles: bool) -> tuple[World, Answer, Any, Any]:
    world = World()
    rule, changing = Rule(scribbles=scribbles), Changing(scribbles=scribbles)
    act: Any = {"input": [rule], "output": [rule], "before_tool": [rule], "after_tool": [changing]}
    agent, model = world.agent(replies(asked), act)
    identity = {"user": ["ada"]}
    out = await agent.run("go", identity=identity)
    assert isinstance(out, Answer)
    return world, out, asked_for(model), identity


@settings(max_examples=80)
@given(turns)
def test_scribbling_over_what_a_rule_is_handed_changes_neither_call_nor_row_nor_request(
    asked: list[list[Asked]],
) -> None:
    calm_world, calm, calm_requests, calm_identity = asyncio.run(play(asked, scribbles=False))
    wild_world, wild, wild_requests, wild_identity = asyncio.run(play(asked, scribbles=True))
    assert wild_world.ran == calm_world.ran
    assert wild_requests == calm_requests
    assert wild_identity == calm_identity == {"user": ["ada"]}
    assert wild.text == calm.text
    assert [facts_of(row) for row in wild.decisions] == [facts_of(row) for row in calm.decisions]
