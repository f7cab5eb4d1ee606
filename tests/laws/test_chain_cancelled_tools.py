"""What becomes of a tool's body when its turn is cancelled while it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import pytest

from footprint_core import Agent, MemoryLedger, Tool, ToolResultContext, allow, tool
from footprint_core.events import ToolCallEnded, TurnEnded
from footprint_core.facts import CallAnswered, SegmentEnded, ToolFinished, ToolIntended
from footprint_core.providers import Scripted, call, reply
from story import Seen, describe, run

LONG = 20.0
PARALLEL = pytest.mark.parametrize("parallel", [False, True], ids=["one by one", "together"])


class Looks:
    """A result rule that must not be asked any more."""

    name = "looks"

    def __init__(self) -> None:
        self.asked = 0

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self.asked += 1
        return allow()


class Turn:
    """A turn of one call, or of two at the same time, that is cancelled while its body runs."""

    def __init__(self, body: Tool, *, parallel: bool = False) -> None:
        self.ledger, self.seen, self.rule = MemoryLedger(), Seen(), Looks()
        calls = [call(f"c{n}", body.name, {}) for n in range(2 if parallel else 1)]
        builder, self.model = describe(
            [reply(calls=calls), reply(text="done")],
            body,
            ledger=self.ledger,
            watch=[self.seen],
            parallel_tools=parallel,
        )
        self.agent: Agent = builder.tool_middleware(self.rule).build()
        self.scripted: Scripted = self.model

    def facts(self, kind: type[Any]) -> list[Any]:
        entries = self.ledger.entries(self.agent.last_run_id or "")
        return [entry.fact for entry in entries if isinstance(entry.fact, kind)]

    async def cancelled(self, entered: Awaitable[object], *, times: int = 1, let_go: Any = None) -> None:
        """Cancel once the body has begun; a second cancellation, if any, comes while it still runs."""
        turn = asyncio.ensure_future(self.agent.run("go"))
        await entered
        for _ in range(times):
            turn.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
        if let_go is not None:
            assert not turn.done()
            let_go()
        with pytest.raises(asyncio.CancelledError):
            await turn

    def ended(self) -> None:
        """Refuse a turn that went on, or that ended otherwise than cancelled."""
        assert len(self.model.requests) == 1
        assert self.rule.asked == 0
        assert self.seen.of(ToolCallEnded) == []
        assert [end.outcome for end in self.facts(SegmentEnded)] == ["cancelled"]
        assert [end.outcome for end in self.seen.of(TurnEnded)] == ["cancelled"]


async def _count(entered: asyncio.Semaphore, count: int) -> None:
    for _ in range(count):
        await entered.acquire()


@PARALLEL
def test_an_async_body_is_cancelled_and_its_outcome_says_so(parallel: bool) -> None:
    entered, stopped = asyncio.Semaphore(0), list[str]()

    @tool
    async def pay() -> str:
        entered.release()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append("told")
            raise
        return "paid"

    turn = Turn(pay, parallel=parallel)
    count = 2 if parallel else 1
    run(turn.cancelled(_count(entered, count)))
    assert stopped == ["told"] * count
    assert [(fact.cancelled, fact.failed) for fact in turn.facts(ToolFinished)] == [(True, True)] * count
    turn.ended()


@PARALLEL
def test_an_async_body_that_swallows_its_cancellation_has_an_outcome_and_the_turn_ends_all_the_same(
    parallel: bool,
) -> None:
    entered = asyncio.Semaphore(0)

    @tool
    async def pay() -> str:
        entered.release()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "paid in spite of it"

    turn = Turn(pay, parallel=parallel)
    count = 2 if parallel else 1
    run(turn.cancelled(_count(entered, count)))
    results = [(fact.cancelled, fact.result) for fact in turn.facts(ToolFinished)]
    assert results == [(False, "paid in spite of it")] * count
    turn.ended()


class Gate:
    """A plain body in a thread that waits to be let go."""

    def __init__(self, count: int, error: BaseException | None = None) -> None:
        self._count, self._error = count, error
        self._entered, self.let_go = threading.Semaphore(0), threading.Event()

    def body(self) -> Tool:
        @tool
        def pay() -> str:
            self._entered.release()
            assert self.let_go.wait(LONG)
            if self._error is not None:
                raise self._error
            return "paid"

        return pay

    async def entered(self) -> None:
        def wait() -> None:
            for _ in range(self._count):
                assert self._entered.acquire(timeout=LONG)

        await asyncio.to_thread(wait)


@PARALLEL
@pytest.mark.parametrize("error", [None, ValueError("no money"), GeneratorExit("odd")], ids=repr)
def test_a_body_in_a_thread_is_waited_for_and_its_outcome_filed_before_the_cancellation_goes_on(
    error: BaseException | None, parallel: bool
) -> None:
    count = 2 if parallel else 1
    gate = Gate(count, error)
    turn = Turn(gate.body(), parallel=parallel)
    run(turn.cancelled(gate.entered(), let_go=gate.let_go.set))
    result = "paid" if error is None else str(error)
    filed = [(fact.cancelled, fact.failed, fact.result) for fact in turn.facts(ToolFinished)]
    assert filed == [(False, error is not None, result)] * count
    kinds = [type(entry.fact) for entry in turn.ledger.entries(turn.agent.last_run_id or "")]
    assert kinds[-1] is SegmentEnded
    turn.ended()


@PARALLEL
def test_a_second_cancellation_stops_waiting_and_leaves_the_call_in_doubt(parallel: bool) -> None:
    count = 2 if parallel else 1
    gate = Gate(count)
    turn = Turn(gate.body(), parallel=parallel)
    try:
        run(turn.cancelled(gate.entered(), times=2))
    finally:
        gate.let_go.set()
    assert len(turn.facts(ToolIntended)) == count
    assert turn.facts(ToolFinished) == turn.facts(CallAnswered) == []
    turn.ended()


@PARALLEL
def test_a_cancellation_that_comes_with_the_end_of_a_body_in_a_thread_loses_neither(parallel: bool) -> None:
    """Its value is there, and nobody has looked at it yet."""
    count = 2 if parallel else 1
    gate = Gate(count)
    turn = Turn(gate.body(), parallel=parallel)

    async def story() -> None:
        task = asyncio.ensure_future(turn.agent.run("go"))
        await gate.entered()
        gate.let_go.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(story())
    assert [fact.result for fact in turn.facts(ToolFinished)] == ["paid"] * count
    turn.ended()


def test_a_plain_body_whose_awaitable_was_not_awaited_any_more_has_not_run() -> None:
    gate, ran = Gate(1), list[str]()

    async def pays() -> str:
        ran.append("paid")
        return "paid"

    waiting = gate.body()

    @tool(name="pay")
    def pay() -> Any:
        waiting.body()
        return pays()

    turn = Turn(pay)
    run(turn.cancelled(gate.entered(), let_go=gate.let_go.set))
    assert ran == []
    assert [(fact.cancelled, fact.failed) for fact in turn.facts(ToolFinished)] == [(True, True)]
    turn.ended()


def test_of_bodies_that_run_together_each_has_the_outcome_it_came_to_when_the_turn_was_cancelled() -> None:
    gate, entered = Gate(1), asyncio.Event()

    @tool
    async def quick() -> str:
        return "quick"

    @tool
    async def hangs() -> str:
        entered.set()
        await asyncio.Event().wait()
        return "never"

    ledger = MemoryLedger()
    calls = [call(name, name, {}) for name in ("hangs", "pay", "quick")]
    builder, model = describe(
        [reply(calls=calls)], quick, hangs, gate.body(), ledger=ledger, parallel_tools=True
    )
    agent = builder.build()

    async def story() -> None:
        turn = asyncio.ensure_future(agent.run("go"))
        await entered.wait()
        await gate.entered()
        turn.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        # The one that was cancelled is on record while another still runs.
        facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
        filed = {fact.call_id: fact.cancelled for fact in facts if isinstance(fact, ToolFinished)}
        assert filed == {"quick": False, "hangs": True}
        gate.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await turn

    run(story())
    facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
    results = {fact.call_id: fact.result for fact in facts if isinstance(fact, ToolFinished)}
    assert {id: results[id] for id in ("pay", "quick")} == {"pay": "paid", "quick": "quick"}
    assert len(model.requests) == 1
