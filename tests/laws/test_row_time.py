"""When a row says it was decided, and how long the rule took."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from file_ledger import on_file, select
from footprint_core import (
    Agent,
    Answer,
    AskPause,
    ToolCallContext,
    ToolOutcome,
    allow,
    ask,
    before_tool,
    check_in_approved,
)
from footprint_core.ledger import Batch, Receipt
from footprint_core.providers import call, reply
from footprint_observe import Redaction, SqliteLedger
from story import answered, describe, run

YES = check_in_approved(by="dana@ops", note="checked")
PAYS = [reply(calls=[call("c1", "pay", {"amount": 500})]), reply(text="done")]


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


async def paused(agent: Any) -> AskPause:
    outcome = await agent.run("hello")
    assert isinstance(outcome, AskPause)
    return outcome


class Ticking:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.value = 1_700_000_000_000_001

    def now(self) -> int:
        return self.value


class Late(SqliteLedger):
    """A ledger to which everything comes an hour late."""

    def __init__(self, path: Path, clock: Ticking) -> None:
        super().__init__(path, redact=Redaction.none(), durability="process")
        self._ticking = clock

    def append_inline(self, batch: Batch, /) -> Receipt | None:
        self._ticking.value += 3_600_000_000
        return super().append_inline(batch)


def test_a_row_has_the_time_at_which_it_was_decided_whenever_it_was_written(tmp_path: Path) -> None:
    clock = Ticking()
    decided: list[int] = []

    @before_tool("slow")
    def slow(call: ToolCallContext) -> ToolOutcome:
        clock.value += 7
        decided.append(clock.value)
        return allow()

    @before_tool("slower")
    def slower(call: ToolCallContext) -> ToolOutcome:
        clock.value += 11
        decided.append(clock.value)
        return allow()

    path = tmp_path / "l.db"
    builder, _ = describe(PAYS, pay, act={"before_tool": [slow, slower]}, ledger=Late(path, clock))
    agent = Agent(msgspec.structs.replace(builder.spec(), clock=lambda: clock))

    async def go() -> Answer:
        async with agent:
            return answered(await agent.run("hello"))

    rows = run(go()).decisions
    assert [row.recorded_us for row in rows] == decided
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    in_words = [(epoch + timedelta(microseconds=us)).isoformat(timespec="microseconds") for us in decided]
    assert [row.recorded_at for row in rows] == in_words
    assert all(text.endswith("+00:00") for text in in_words)
    assert select(path, "SELECT recorded_at FROM decisions ORDER BY id") == [(text,) for text in in_words]


def test_the_duration_is_the_rules_own_time_and_a_person_has_none(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    spent: list[float] = []

    @before_tool("busy")
    def busy(call: ToolCallContext) -> ToolOutcome:
        began = time.perf_counter()
        while time.perf_counter() - began < 0.002:
            pass
        spent.append(time.perf_counter() - began)
        return ask("sure?")

    ledger = on_file(path)
    builder, _ = describe(PAYS, pay, act={"before_tool": [busy]}, ledger=ledger)
    agent = builder.build()

    async def go() -> Answer:
        began = time.perf_counter()
        pause = await paused(agent)
        spent.append(time.perf_counter() - began)
        answer = answered(await agent.resume(pause.checkpoint, YES))
        await agent.close()
        return answer

    asked, approved = run(go()).decisions
    assert asked.duration is not None
    assert spent[0] - 0.000_001 <= asked.duration <= spent[1]
    assert asked.to_dict()["duration"] == asked.duration == (asked.duration_us or 0) / 1_000_000
    assert type(asked.to_dict()["duration"]) is float
    assert approved.duration is None
    assert "duration" not in approved.to_dict()
    columns = select(path, "SELECT duration_us, typeof(duration_us) FROM decisions ORDER BY id")
    assert columns == [(asked.duration_us, "integer"), (None, "null")]
