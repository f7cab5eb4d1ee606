"""Nothing acts on what is not durable."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from footprint_core import (
    Batch,
    LedgerBusyError,
    LedgerError,
    LedgerWriteError,
    MemoryLedger,
    Receipt,
    RunError,
    allow,
    ask,
    before_tool,
)
from footprint_core.events import FatalError, TurnEnded
from footprint_core.facts import SegmentEnded
from footprint_core.ledger import Entry
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run


class Failing(MemoryLedger):
    """Refuses the append number `at`."""

    def __init__(self, at: int, error: Exception) -> None:
        super().__init__()
        self.at, self.error, self.appends = at, error, 0

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.appends += 1
        if self.appends == self.at:
            raise self.error
        return super().append_inline(batch)


class Slow(MemoryLedger):
    """Never appends inline; counts, and lets others run meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0
        self.appending = asyncio.Event()

    def append_inline(self, batch: Batch, /) -> Any:
        return None

    async def append(self, batch: Batch, /) -> Receipt:
        self.waited += 1
        self.appending.set()
        for _ in range(5):
            await asyncio.sleep(0)
        return MemoryLedger.append_inline(self, batch)


def _story(ledger: MemoryLedger, seen: Seen | None = None) -> tuple[Any, Any, list[str]]:
    acted: list[str] = []

    def pay(amount: int) -> str:
        acted.append("paid")
        return "paid"

    builder, model = describe(
        [reply(calls=[call("1", "pay", {"amount": 3})]), reply(text="done")],
        pay,
        ledger=ledger,
        watch=[] if seen is None else [seen],
        act={"before_tool": [before_tool("look")(lambda _: allow())]},
    )
    return builder.build(), model, acted


@pytest.mark.parametrize(("at", "asked", "paid"), [(1, 0, 0), (2, 0, 0), (3, 1, 0), (4, 1, 1), (5, 2, 1)])
def test_when_an_append_fails_nothing_acts_on_it_and_the_segment_ends_failed(
    at: int, asked: int, paid: int
) -> None:
    seen = Seen()
    agent, model, acted = _story(Failing(at, LedgerBusyError("busy")), seen)
    with pytest.raises(LedgerBusyError) as caught:
        run(agent.run("go"))
    assert (len(model.requests), len(acted)) == (asked, paid)
    assert (caught.value.run_id, caught.value.segment) == (agent.last_run_id, 1)
    assert [(getattr(e, "recorded", None), type(e)) for e in seen.events[-2:]] == [
        (False, FatalError),
        (False, TurnEnded),
    ]


def test_an_error_of_a_foreign_ledger_is_told_by_its_class_only() -> None:
    agent, _, _ = _story(Failing(2, RuntimeError("value hunter2")))
    with pytest.raises(LedgerWriteError, match="RuntimeError") as caught:
        run(agent.run("go"))
    assert "hunter2" not in str(caught.value)


class Ended(MemoryLedger):
    """The program is told to end in the middle of the append number `at`."""

    def __init__(self, at: int, *, inline: bool) -> None:
        super().__init__()
        self.at, self.inline, self.appends = at, inline, 0

    def append_inline(self, batch: Batch, /) -> Any:
        return self.took(batch) if self.inline else None

    async def append(self, batch: Batch, /) -> Receipt:
        return self.took(batch)

    def took(self, batch: Batch) -> Receipt:
        self.appends += 1
        if self.appends == self.at:
            raise SystemExit(3)
        return MemoryLedger.append_inline(self, batch)


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_behind_an_append_that_a_signal_handler_ended_nothing_is_appended(at: int, inline: bool) -> None:
    seen, ledger = Seen(), Ended(at, inline=inline)
    agent, _, _ = _story(ledger, seen)
    with pytest.raises(SystemExit):
        run(agent.run("go"))
    assert ledger.appends == at
    entries = ledger.entries(agent.last_run_id or "")
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    last = seen.events[-1]
    assert (type(last), getattr(last, "recorded", None)) == (TurnEnded, False)


def test_a_ledger_in_memory_begins_a_run_with_its_first_row() -> None:
    end = SegmentEnded(outcome="cancelled", iterations=0, input_tokens=0, output_tokens=0, duration_us=1)
    batch = Batch(run_id="run", segment=1, entries=(Entry(position=2, time=1, fact=end),))
    ledger = MemoryLedger()
    with pytest.raises(LedgerWriteError, match="nothing of this run"):
        ledger.append_inline(batch)
    assert ledger.entries("run") == ()


def test_a_failed_turn_leaves_the_session_ready_for_the_next() -> None:
    agent, _, acted = _story(Failing(3, LedgerBusyError("busy")))
    with pytest.raises(LedgerError):
        run(agent.run("go"))
    assert acted == []
    assert answered(run(agent.run("go"))).text == "done"


def test_a_ledger_that_waits_gives_the_same_run() -> None:
    slow = Slow()
    agent, _, acted = _story(slow)
    outcome = answered(run(agent.run("go")))
    assert acted == ["paid"]
    assert slow.waited == 5
    assert outcome.decisions == slow.decisions(outcome.run_id)


def test_a_commit_that_has_begun_is_finished_before_a_cancellation_is_delivered() -> None:
    seen, slow = Seen(), Slow()
    agent, _, acted = _story(slow, seen)

    async def story() -> None:
        turn = asyncio.ensure_future(agent.run("go"))
        await slow.appending.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    run(story())
    assert acted == []
    assert seen.types == ["agent.run_configured", "agent.turn_end"]
    kinds = [type(e.fact).__name__ for e in slow.entries(agent.last_run_id or "")]
    assert kinds == ["RunConfigured", "SegmentEnded"]


def test_rows_are_durable_before_their_events_are_published() -> None:
    ledger = MemoryLedger()

    class Checks(Seen):
        def on_event(self, event: Any, /) -> None:
            super().on_event(event)
            assert event.sequence <= ledger.entries(event.run_id)[-1].position

    checks = Checks()
    agent, _, _ = _story(ledger, checks)
    run(agent.run("go"))
    assert agent.health().watchers[0].failures == 0
    assert checks.events


class Stepping(Slow):
    """Says which append it is at, so that a test can cancel at exactly that one."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    async def append(self, batch: Batch, /) -> Receipt:
        if self.waited + 1 < self.at:
            self.waited += 1
            return MemoryLedger.append_inline(self, batch)
        return await super().append(batch)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("asks", [False, True])
def test_a_turn_cancelled_at_any_commit_ends_exactly_once(at: int, asks: bool) -> None:
    seen, ledger = Seen(), Stepping(at)
    acted: list[str] = []

    def pay(amount: int) -> str:
        acted.append("paid")
        return "paid"

    rule = before_tool("rule")(lambda _: ask("may I?") if asks else allow())
    builder, _ = describe(
        [reply(calls=[call("1", "pay", {"amount": 3})]), reply(text="done")],
        pay,
        ledger=ledger,
        watch=[seen],
        act={"before_tool": [rule]},
    )
    agent = builder.build()

    async def story() -> bool:
        turn = asyncio.ensure_future(agent.run("go"))
        reached = asyncio.ensure_future(ledger.appending.wait())
        await asyncio.wait({turn, reached}, return_when=asyncio.FIRST_COMPLETED)
        reached.cancel()
        turn.cancel()
        try:
            await turn
        except asyncio.CancelledError:
            return True
        return False

    run(story())
    entries = ledger.entries(agent.last_run_id or "")
    ends = [e.fact for e in entries if isinstance(e.fact, SegmentEnded)]
    assert len(ends) == 1
    assert entries[-1].fact is ends[0]
    assert seen.types.count("agent.turn_end") == 1
    assert seen.types[-1] == "agent.turn_end"
    intents = sum(type(e.fact).__name__ == "ToolIntended" for e in entries)
    assert intents >= len(acted)


def test_a_foreign_errors_attributes_reach_no_event() -> None:
    class Mine(Exception):  # noqa: N818 - a user's own
        error_class = "order 41 of ada@example.com"

    class Breaks:
        name = "breaks"

        def plan(self, view: Any, /) -> Any:
            raise Mine

    seen = Seen()
    builder, _ = describe([reply(text="x")], watch=[seen])
    with pytest.raises(RunError, match="Mine"):
        run(builder.window(Breaks()).build().run("go"))
    assert [e.error_class for e in seen.of(FatalError)] == ["RunError"]


def test_a_redactor_that_fails_masks_everything_and_says_so() -> None:
    class Breaks:
        def redact(self, fact: Any) -> Any:
            raise RuntimeError("hunter2")

    ledger = MemoryLedger(redact=Breaks())
    agent, _, acted = _story(ledger)
    outcome = answered(run(agent.run("my secret is hunter2")))
    assert acted == ["paid"]
    assert "hunter2" not in repr(ledger.entries(outcome.run_id))
    assert outcome.decisions == ledger.decisions(outcome.run_id)


def test_what_a_caller_does_to_a_row_changes_no_ledger() -> None:
    ledger = MemoryLedger()

    def pay(amount: int) -> str:
        return "paid"

    act: Any = {"before_tool": [before_tool("less")(lambda _: allow({"amount": 1}, why="less"))]}
    replies = [reply(calls=[call("1", "pay", {"amount": 3})]), reply(text="done")]
    builder, _ = describe(replies, pay, ledger=ledger, act=act)
    outcome = answered(run(builder.build().run("go")))
    outcome.decisions[0].before["amount"] = "forged"
    assert ledger.decisions(outcome.run_id)[0].before == {"amount": 3}
