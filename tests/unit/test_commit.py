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
    allow,
    before_tool,
)
from footprint_core.events import FatalError, TurnEnded
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
