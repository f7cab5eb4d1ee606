"""The stored fold: whatever a run was, its file agrees with itself, whole and as far as a crash left it."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import Asked, World, answer, replies, turns
from file_ledger import on_file, select
from footprint_core import (
    Agent,
    Answer,
    HumanPause,
    Outcome,
    ToolCallContext,
    ToolResultContext,
    allow,
    ask,
    check_in_approved,
    check_in_declined,
    deny,
    sliding_window,
)
from footprint_observe.query.replay import Step, replay
from unguarded import cut_off, unguarded


class Rule:
    """Asks about some numbers, refuses another, and changes results."""

    name = "rule"

    def __init__(self, asking: set[int]) -> None:
        self._asking = asking

    def on_tool_call(self, call: ToolCallContext) -> Any:
        number = call.args["number"]
        if number == 7:
            return deny("not seven")
        return ask("?") if number in self._asking else allow({"number": number}, why="as it is")

    def on_tool_result(self, call: ToolResultContext) -> Any:
        return allow([call.result], why="wrapped") if call.iteration % 2 else allow()


async def finished(agent: Agent, out: Outcome, approve: bool) -> Answer:
    decision: Any = check_in_approved(by="dana") if approve else check_in_declined(by="dana", note="no")
    while not isinstance(out, Answer):
        given = answer(out.data["number"]) if isinstance(out, HumanPause) else decision
        out = await agent.resume(json.loads(json.dumps(out.checkpoint)), given)
    return out


async def play(path: Path, asked: list[list[Asked]], asking: set[int], approve: bool, parallel: bool) -> None:
    ledger = on_file(path)
    world = World(asks=True, ledger=ledger)
    said = [*replies(asked), *replies(asked)]
    act: Any = {"before_tool": [Rule(asking)]}
    agent, _ = world.agent(said, act, window=sliding_window(keep_recent_turns=2), parallel=parallel)
    await finished(agent, await agent.run("go"), approve)
    await finished(agent, await agent.follow_up("again"), approve)
    await ledger.close()


@settings(max_examples=25)
@given(turns, st.sets(st.integers(0, 9)), st.booleans(), st.booleans(), st.floats(0, 1))
def test_a_run_matches_and_so_does_all_that_a_crash_can_have_left_of_it(
    asked: list[list[Asked]], asking: set[int], approve: bool, parallel: bool, cut: float
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "l.db"
        asyncio.run(play(path, asked, asking, approve, parallel))
        runs = [run_id for (run_id,) in select(path, "SELECT DISTINCT run_id FROM facts ORDER BY run_id")]
        assert len(runs) == 2
        facts = 0
        for run_id in runs:
            steps: list[Step] = []
            found = replay(path, run_id, told=steps.append)
            assert found.matches, found.difference
            assert found.outcome == "answered"
            facts = found.facts
            assert [step.position for step in steps] == list(range(1, facts + 1))
        with unguarded(path) as connection:
            # Of the second run, which goes on behind the first, a part.
            last = 1 + int(cut * (facts - 1))
            cut_off(connection, runs[1], last)
        left = replay(path, runs[1])
        assert left.matches, left.difference
        assert left.facts == last
