"""Resuming from every pause of a random conversation equals the run in which nobody was asked."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import Asked, World, answer, asked_for, replies, turns
from footprint_core import (
    Answer,
    AskPause,
    HumanPause,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
)
from story import facts_of


def rules(asking: set[int]) -> Any:
    """A rule that asks about some numbers, between two that change what they are shown."""

    @before_tool("double", version="1")
    def double(call: ToolCallContext) -> ToolOutcome:
        return allow({"number": call.args["number"] * 2}, why="doubled")

    @before_tool("gate", version="1")
    def gate(call: ToolCallContext) -> ToolOutcome:
        number = call.args["number"]
        return ask(f"{number}?", detail={"number": number}) if number in asking else allow()

    @before_tool("more", version="1")
    def more(call: ToolCallContext) -> ToolOutcome:
        return allow({"number": call.args["number"] + 1}, why="one more")

    @after_tool("look", version="1")
    def look(call: ToolResultContext) -> ToolResultOutcome:
        return allow({"seen": call.result, "failed": call.failed}, why="wrapped")

    return {"before_tool": [double, gate, more], "after_tool": [look]}


async def play(world: World, said: Any, asking: set[int], *, parallel: bool) -> tuple[Answer, list[Any], int]:
    """To the answer, each pause answered by a new agent from a checkpoint that went through JSON."""
    requests: list[Any] = []
    agent, model = world.agent(said, rules(asking), parallel=parallel)
    out = await agent.run("go", identity={"user": "ada"})
    pauses = 0
    while not isinstance(out, Answer):
        pauses += 1
        requests += asked_for(model)
        text = json.dumps(out.checkpoint)
        checkpoint = json.loads(text)
        assert checkpoint == out.checkpoint
        assert json.dumps(checkpoint) == text
        decision: Any = check_in_approved(by="dana")
        if isinstance(out, HumanPause):
            decision = answer(out.data["number"])
        else:
            assert isinstance(out, AskPause)
            assert out.detail == {"number": out.args["number"]}
        agent, model = world.agent(said[len(requests) :], rules(asking), parallel=parallel)
        out = await agent.resume(checkpoint, decision)
    return out, requests + asked_for(model), pauses


@settings(max_examples=120)
@given(turns, st.sets(st.integers(0, 18)), st.booleans())
def test_every_pause_resumed_elsewhere_equals_the_run_without_one(
    asked: list[list[Asked]], asking: set[int], parallel: bool
) -> None:
    said = replies(asked)
    # A person answers a tool only where no person was asked about the call before: one call, one question.
    asking -= {one.number * 2 for batch in asked for one in batch if one.tool == "person"}
    plain, broken = World(), World(asks=True)
    undisturbed, requests, none = asyncio.run(play(plain, said, set(), parallel=parallel))
    resumed, again, pauses = asyncio.run(play(broken, said, asking, parallel=parallel))

    assert none == 0
    expected = sum(one.tool == "person" or one.number * 2 in asking for batch in asked for one in batch)
    assert pauses == expected
    assert resumed.text == undisturbed.text
    assert again == requests
    if not parallel:
        assert broken.ran == plain.ran
    assert sorted(broken.ran) == sorted(plain.ran)

    def kept(rows: Any) -> list[Any]:
        return [
            {key: value for key, value in facts_of(row).items() if key not in _PLACE}
            for row in rows
            if not (row.middleware == "gate" and (row.outcome == "ask" or row.answer == "person"))
        ]

    gate = [row for row in undisturbed.decisions if row.middleware == "gate"]
    wanted = [row for row in kept(undisturbed.decisions) if row["middleware"] != "gate"]
    got = [row for row in kept(resumed.decisions) if row["middleware"] != "gate"]
    if parallel:
        # Gates of calls behind a question are walked when it is answered.
        wanted, got = sorted(wanted, key=json.dumps), sorted(got, key=json.dumps)
    assert got == wanted
    assert len(gate) == sum(row.middleware == "gate" and row.answer != "person" for row in resumed.decisions)


_PLACE = {"position", "segment", "after_approval"}
