"""The live fold: what a file holds, folded again, is what the run was at each position."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import Asked, World, answer, replies, turns
from footprint_core import (
    Answer,
    HumanPause,
    MessageContext,
    ToolCallContext,
    ToolResultContext,
    allow,
    ask,
    check_in_approved,
    check_in_declined,
    sliding_window,
)
from footprint_core.session import Session
from footprint_core.state import RunState
from footprint_observe import Redaction, SqliteLedger
from story import Seen


class Rule:
    """Changes messages, args and results, and asks about some numbers."""

    name = "rule"

    def __init__(self, asking: set[int]) -> None:
        self._asking = asking

    def on_message(self, message: MessageContext) -> Any:
        return allow(message.content + "!", why="louder")

    def on_tool_call(self, call: ToolCallContext) -> Any:
        return ask("?") if call.args["number"] in self._asking else allow()

    def on_tool_result(self, call: ToolResultContext) -> Any:
        return allow([call.result], why="wrapped") if call.iteration % 2 else allow()


class Snapshots(Seen):
    """At each event, what the run is and the position of the last fact in it."""

    def __init__(self) -> None:
        super().__init__()
        self.turn: Any = None
        self.taken: dict[int, Any] = {}

    def on_event(self, event: Any, /) -> None:
        super().on_event(event)
        self.taken[self.turn.writer.position] = plain(self.turn.state)


def plain(state: RunState) -> Any:
    return json.loads(json.dumps(state.to_plain()))


async def play(
    folder: Path, asked: list[list[Asked]], asking: set[int], *, approve: bool, parallel: bool
) -> tuple[Answer, Snapshots, SqliteLedger]:
    ledger = SqliteLedger(folder / "l.db", redact=Redaction.none(), durability="process")
    seen = Snapshots()
    made = Session._turn

    def turn(self: Any, *args: Any, **options: Any) -> Any:
        seen.turn = made(self, *args, **options)
        return seen.turn

    world = World(asks=True, ledger=ledger)
    rule = Rule(asking)
    act: Any = {"input": [rule], "output": [rule], "before_tool": [rule]}
    agent, _ = world.agent(
        replies(asked), act, watch=[seen], window=sliding_window(keep_recent_turns=2), parallel=parallel
    )
    decision: Any = check_in_approved(by="dana") if approve else check_in_declined(by="dana", note="no")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "_turn", turn)
        out = await agent.run("go")
        while not isinstance(out, Answer):
            given = answer(out.data["number"]) if isinstance(out, HumanPause) else decision
            out = await agent.resume(json.loads(json.dumps(out.checkpoint)), given)
    return out, seen, ledger


@settings(max_examples=40)
@given(turns, st.sets(st.integers(0, 9)), st.booleans(), st.booleans())
def test_folding_what_the_file_holds_gives_the_run_as_it_was_at_every_position(
    asked: list[list[Asked]], asking: set[int], approve: bool, parallel: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        out, seen, ledger = asyncio.run(play(Path(folder), asked, asking, approve=approve, parallel=parallel))
        entries = ledger.entries(out.run_id)
        asyncio.run(ledger.close())
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    assert max(seen.taken) == len(entries)
    state = RunState()
    compared = 0
    for entry in entries:
        state.apply(entry.fact)
        if (then := seen.taken.get(entry.position)) is not None:
            assert plain(state) == then
            compared += 1
    assert compared == len(seen.taken) > 2
