"""Behind a pause in a batch, the calls of the next batch are taken up like any."""

from __future__ import annotations

from typing import Any

from footprint_core import MemoryLedger, Pause, ask_human, tool
from footprint_core.events import ToolCallEnded, ToolCallStarted
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run


@tool
def choose() -> str:
    """Ask."""
    ask_human("Which?")


@tool
def look(n: int) -> int:
    """Look."""
    return n


def test_each_call_of_the_next_batch_starts_and_ends_where_calls_had_run_before_the_answer() -> None:
    # The second call ran beside the one that asked, and is taken up once; so is the second of the next batch.
    said = [
        reply(calls=[call("a", "choose", {}), call("b", "look", {"n": 1})]),
        reply(calls=[call("c", "look", {"n": 2}), call("d", "look", {"n": 3})]),
        reply(text="done"),
    ]
    seen = Seen()
    builder, _ = describe(said, choose, look, ledger=MemoryLedger(), watch=[seen], parallel_tools=True)
    agent = builder.build()
    paused: Any = run(agent.run("go"))
    assert isinstance(paused, Pause)
    answered(run(agent.resume(paused.checkpoint, "blue")))
    assert [event.tool_call_id for event in seen.of(ToolCallStarted)] == ["a", "b", "c", "d"]
    assert [event.tool_call_id for event in seen.of(ToolCallEnded)] == ["a", "b", "c", "d"]
