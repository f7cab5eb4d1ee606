"""What a turn costs does not grow with its conversation: counted in calls, facts, events and bytes."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from complaints.windows import Summarizer
from file_ledger import on_file
from footprint_core import (
    Batch,
    Ledger,
    MemoryLedger,
    Receipt,
    allow,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.providers import ModelRequest, Whole, call, reply
from story import Seen, answered, describe, run

EARLY, LATE = 10, 1000
STEP = (reply(text="I look", calls=[call("c", "look", {"n": 1})]), reply(text="done " * 20))


class Talks:
    """A model that says the same in every turn and keeps nothing."""

    name = "talks"

    def __init__(self) -> None:
        self.asked = 0

    def reply(self, _request: ModelRequest, /) -> Whole:
        self.asked += 1
        return Whole(STEP[(self.asked + 1) % 2])


class Passes:
    """A rule at every moment that reads what it is shown."""

    name = "passes"

    def on_message(self, message: Any, /) -> Any:
        return allow(why=str(len(message.content)))

    def on_tool_call(self, asked: Any, /) -> Any:
        return allow(why=str(len(asked.args)))

    def on_tool_result(self, ended: Any, /) -> Any:
        return allow(why=str(len(ended.result)))


class Weighs:
    """A ledger that notes what of each append would grow."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.facts: Counter[str] = Counter()
        self.bytes = 0

    def append_inline(self, batch: Batch, /) -> Receipt | None:
        self.facts.update(str(entry.fact.__struct_config__.tag) for entry in batch.entries)
        self.bytes += len(msgspec.json.encode(batch.entries))
        return self.ledger.append_inline(batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)


class Calls:
    """Counts what is entered and left while it is on: functions of Python and of C."""

    def __enter__(self) -> Self:
        self.count = 0
        gc.collect()
        gc.disable()
        sys.setprofile(self._one)
        return self

    def _one(self, *_: Any) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        gc.enable()


WINDOWS: dict[str, Any] = {
    "no window": lambda: None,
    "sliding": lambda: sliding_window(keep_recent_turns=3),
    "tokens": lambda: token_budget(threshold_tokens=5, keep_recent_turns=3),
    "summaries": lambda: summarize_oldest(
        threshold_tokens=5, keep_recent_turns=3, summarizer=Summarizer(), model="small"
    ),
}


@pytest.mark.parametrize(
    ("name", "kept"),
    [*((name, "memory") for name in WINDOWS), ("no window", "file"), ("sliding", "file")],
)
def test_c100_the_thousandth_turn_costs_what_the_tenth_did(name: str, kept: str, tmp_path: Path) -> None:
    async def look(n: int) -> dict[str, int]:
        return {"n": n}

    ledger: Any = Weighs(MemoryLedger() if kept == "memory" else on_file(tmp_path / "f.db"))
    seen = Seen()
    rule, plan = Passes(), WINDOWS[name]()
    builder, _ = describe([], look, ledger=ledger, watch=[seen])
    builder._provider = Talks()
    builder.tool_middleware(rule).message_middleware(rule)
    agent = (builder if plan is None else builder.window(plan)).build()
    cost: dict[int, tuple[int, int, Counter[str], int]] = {}

    async def story() -> None:
        outcome = await agent.run("go")
        for turn in range(2, LATE + 1):
            ledger.facts.clear()
            ledger.bytes = 0
            seen.events.clear()
            if turn in {EARLY, LATE}:
                with Calls() as calls:
                    outcome = await agent.follow_up("go")
                cost[turn] = calls.count, ledger.bytes, ledger.facts.copy(), len(seen.events)
            else:
                outcome = await agent.follow_up("go")
        assert len(answered(outcome).decisions) == 4

    run(story())
    (calls, size, facts, events), (late_calls, late_size, late_facts, late_events) = cost[EARLY], cost[LATE]
    assert late_calls <= calls
    assert late_facts == facts
    assert late_events <= events
    # Positions and counts have more digits by then, and that is all.
    assert late_size < size + 100


FIRST = """
import asyncio, sys
from footprint_core import Agent, allow, before_tool, on_message, sliding_window
from footprint_core.providers import Scripted, call, reply

async def look(n: int) -> int:
    return n

def agent():
    said = [reply(calls=[call("c", "look", {"n": 1})]), reply(text="done")]
    builder = Agent.create(provider=Scripted(said), model="m", name="first").tool(look)
    passing = before_tool("b")(lambda c: allow()), on_message("m")(lambda m: allow())
    return builder.tool_middleware(passing[0]).message_middleware(passing[1]).build()

first = agent()
before = set(sys.modules)
asyncio.run(first.run("go"))
print(sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_c100_the_first_turn_loads_nothing_that_the_build_had_not_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(eval(done.stdout))
    assert not loaded & {"pydantic", "jsonschema", "sqlite3", "opentelemetry", "mcp", "footprint_core"}
    assert loaded <= set(sys.stdlib_module_names)


def test_c100_what_is_counted_is_what_grows() -> None:
    with Calls() as few:
        sum(len(m) for m in ["x"] * 10)
    with Calls() as many:
        sum(len(m) for m in ["x"] * 1000)
    assert many.count > few.count + 1000
