"""Bodies of one model turn that run at the same time: what is together, and what stays in call order."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from footprint_core import (
    Answer,
    Batch,
    LedgerWriteError,
    MemoryLedger,
    Receipt,
    Tool,
    ToolCallContext,
    ToolContext,
    ToolMessage,
    ToolResultContext,
    allow,
    deny,
    tool,
)
from footprint_core.events import DecisionFiled, ToolCallEnded, ToolCallStarted, TurnEnded
from footprint_core.facts import CallAnswered, SegmentEnded, ToolFinished, ToolIntended
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

LONG = 5.0


class Batches(MemoryLedger):
    """A ledger that keeps its batches apart, and may refuse one."""

    def __init__(self, refuses: int = 0) -> None:
        super().__init__()
        self.batches: list[list[Any]] = []
        self._refuses = refuses

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.batches.append([entry.fact for entry in batch.entries])
        if len(self.batches) == self._refuses:
            raise LedgerWriteError("The disk is full.")
        return super().append_inline(batch)

    def all_of(self, kind: type[Any]) -> list[Any]:
        return [fact for batch in self.batches for fact in batch if isinstance(fact, kind)]


class Log:
    """A rule at both tool moments that says when it is asked."""

    name = "log"

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []
        self.histories: list[list[str]] = []

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        self.steps.append(("before", asked.tool_call_id))
        self.histories.append([message.role for message in asked.history])
        return deny("not that one") if asked.args.get("deny") else allow()

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self.steps.append(("after", ended.tool_call_id))
        return allow(why="looked")


def together(*calls: Any, tools: Any, rules: Any = (), parallel: bool = True, **options: Any) -> Any:
    builder, model = describe(
        [reply(calls=calls), reply(text="done")], *tools, parallel_tools=parallel, **options
    )
    return builder.tool_middleware(*rules), model


def three(name: str = "meet") -> list[Any]:
    return [call(f"c{n}", name, {}) for n in range(3)]


def results(model: Any) -> list[tuple[str, str]]:
    return [(m.call_id, m.text) for m in model.requests[1].messages if isinstance(m, ToolMessage)]


@pytest.mark.parametrize("count", [2, 3])
def test_async_bodies_run_at_the_same_time(count: int) -> None:
    meeting = asyncio.Barrier(count)

    async def meet() -> str:
        async with asyncio.timeout(LONG), meeting:
            return "met"

    builder, model = together(*three()[:count], tools=[meet])
    run(builder.build().run("go"))
    assert results(model) == [(f"c{n}", "met") for n in range(count)]


def test_plain_bodies_run_at_the_same_time() -> None:
    meeting = threading.Barrier(3)

    def meet() -> str:
        meeting.wait(LONG)
        return "met"

    builder, model = together(*three(), tools=[meet])
    run(builder.build().run("go"))
    assert results(model) == [("c0", "met"), ("c1", "met"), ("c2", "met")]
    # Without an event loop of the caller's too.
    builder, model = together(*three(), tools=[meet])
    answered(builder.build().run_sync("go"))
    assert [text for _, text in results(model)] == ["met"] * 3


@pytest.mark.parametrize("options", [{}, {"parallel_tools": False}])
def test_unless_it_is_asked_for_one_body_runs_after_another(options: dict[str, Any]) -> None:
    running: list[int] = []

    async def meet() -> str:
        running.append(1)
        for _ in range(5):
            await asyncio.sleep(0)
        assert running == [1]
        running.clear()
        return "alone"

    replies = [reply(calls=three()), reply(text="done")]
    builder, model = describe(replies, meet, **options)
    run(builder.build().run("go"))
    assert [text for _, text in results(model)] == ["alone"] * 3


class Backwards:
    """Bodies that end in the order opposite to their calls."""

    def __init__(self, count: int) -> None:
        self.ended: list[str] = []
        self._turns = [asyncio.Event() for _ in range(count)]
        self._turns[-1].set()

    def tool(self) -> Tool:
        @tool(name="back")
        async def back(n: int, context: ToolContext) -> int:
            await self._turns[n].wait()
            self.ended.append(context.call_id)
            if n:
                self._turns[n - 1].set()
            return n

        return back


def test_gates_come_first_in_call_order_then_the_bodies_then_the_results_in_call_order() -> None:
    back, log, seen = Backwards(3), Log(), Seen()
    calls = [call(f"c{n}", "back", {"n": n}) for n in range(3)]
    builder, model = together(*calls, tools=[back.tool()], rules=[log], watch=[seen])
    out = answered(run(builder.build().run("go")))
    ids = ["c0", "c1", "c2"]
    assert back.ended == ids[::-1]
    assert log.steps == [("before", id) for id in ids] + [("after", id) for id in ids]
    assert [(row.moment, row.tool_call_id) for row in out.decisions] == [
        *[("before-tool", id) for id in ids],
        *[("after-tool", id) for id in ids],
    ]
    assert results(model) == [("c0", "0"), ("c1", "1"), ("c2", "2")]
    assert [event.tool_call_id for event in seen.of(ToolCallStarted)] == ids
    assert [event.tool_call_id for event in seen.of(ToolCallEnded)] == ids
    told = [(type(e), e.tool_call_id) for e in seen.events if isinstance(e, DecisionFiled | ToolCallEnded)]
    assert told[3:] == [(kind, id) for id in ids for kind in (DecisionFiled, ToolCallEnded)]


def test_no_rule_before_a_tool_is_shown_a_result_of_the_same_batch() -> None:
    back, log = Backwards(3), Log()
    calls = [call(f"c{n}", "back", {"n": n}) for n in range(3)]
    builder, _ = together(*calls, tools=[back.tool()], rules=[log])
    run(builder.build().run("go"))
    assert log.histories == [["user", "assistant"]] * 3


def test_one_commit_holds_the_intents_of_all_calls_that_passed_before_any_body_is_entered() -> None:
    ledger, entered = Batches(), list[int]()

    async def meet() -> str:
        entered.append(len(ledger.all_of(ToolIntended)))
        return "met"

    refused = call("c1", "meet", {"deny": True})
    calls = [*three()[:1], refused, call("c9", "nope", {}), *three()[2:], call("bad", "meet", {"x": 1})]
    builder, _ = together(*calls, tools=[meet], rules=[Log()], ledger=ledger)
    run(builder.build().run("go"))
    intents = [[fact.call_id for fact in batch if isinstance(fact, ToolIntended)] for batch in ledger.batches]
    assert [ids for ids in intents if ids] == [["c0", "c2"]]
    assert entered == [2, 2]


def test_each_outcome_is_filed_when_its_body_ends() -> None:
    ledger, filed = Batches(), list[list[str]]()
    back = Backwards(3)
    inner = back.tool()

    @tool(name="back")
    async def looks(n: int, context: ToolContext) -> Any:
        waits: Any = inner.body(n=n, context=context)
        value = await waits
        filed.append([fact.call_id for fact in ledger.all_of(ToolFinished)])
        return value

    calls = [call(f"c{n}", "back", {"n": n}) for n in range(3)]
    builder, _ = together(*calls, tools=[looks], ledger=ledger)
    run(builder.build().run("go"))
    assert filed == [[], ["c2"], ["c2", "c1"]]
    assert [fact.call_id for fact in ledger.all_of(CallAnswered)] == ["c0", "c1", "c2"]


def test_a_refusal_at_a_gate_neither_stops_the_gates_nor_the_bodies_of_the_others() -> None:
    meeting = asyncio.Barrier(2)

    async def meet(deny: bool = False) -> str:
        async with asyncio.timeout(LONG), meeting:
            return "met"

    log = Log()
    calls = [
        call("denied", "meet", {"deny": True}),
        call("a", "meet", {}),
        call("unknown", "nope", {}),
        call("a", "meet", {}),
        call("bad", "meet", {"deny": "x"}),
        call("b", "meet", {}),
    ]
    builder, model = together(*calls, tools=[meet], rules=[log])
    run(builder.build().run("go"))
    read = results(model)
    assert [text for id, text in read if id in {"a", "b"}] == ["met", "met"]
    assert len(read) == len(calls)
    assert [id for step, id in log.steps if step == "after"] == ["a", "b"]


class Odd(BaseException):
    """No Exception, and nobody's."""


RAISED: list[type[BaseException]] = [
    ValueError,
    Odd,
    GeneratorExit,
    StopIteration,
    StopAsyncIteration,
    asyncio.CancelledError,
    TimeoutError,
]
HOW = pytest.mark.parametrize("plain", [False, True], ids=["async", "in a thread"])


def _raising(error: type[BaseException], *, plain: bool) -> list[Tool]:
    """A tool that raises at once, and one that ends behind it, when the event loop has gone around."""

    @tool(name="raises")
    def raises() -> None:
        raise error("canary")

    @tool(name="raises")
    async def raises_async() -> None:
        raise error("canary")

    @tool
    async def slow() -> str:
        for _ in range(10):
            await asyncio.sleep(0)
        return "to its end"

    return [raises if plain else raises_async, slow]


@HOW
@pytest.mark.parametrize("error", RAISED)
def test_whatever_a_body_raises_becomes_its_result_and_ends_no_other(
    error: type[BaseException], plain: bool
) -> None:
    calls = [call("a", "slow", {}), call("b", "raises", {}), call("c", "slow", {})]
    log = Log()
    builder, model = together(*calls, tools=_raising(error, plain=plain), rules=[log])
    assert answered(run(builder.build().run("go"))).text == "done"
    # Python itself turns a StopIteration that leaves a coroutine into an error of its own.
    read = "coroutine raised StopIteration" if error is StopIteration and not plain else "canary"
    assert results(model) == [("a", "to its end"), ("b", read), ("c", "to its end")]
    assert [id for step, id in log.steps if step == "after"] == ["a", "b", "c"]


@HOW
@pytest.mark.parametrize("error", [KeyboardInterrupt])
def test_an_interrupt_in_a_body_ends_the_turn_when_the_others_have_ended_and_are_on_record(
    error: type[BaseException], plain: bool
) -> None:
    ledger, seen = Batches(), Seen()
    calls = [call("a", "slow", {}), call("b", "raises", {}), call("c", "slow", {})]
    builder, model = together(*calls, tools=_raising(error, plain=plain), ledger=ledger, watch=[seen])
    agent = builder.build()

    async def caught() -> BaseException | None:
        # Let out of the task, it would stop the event loop.
        try:
            await agent.run("go")
        except BaseException as raised:  # noqa: BLE001 - looked at below
            return raised
        return None

    assert type(run(caught())) is error
    finished = {fact.call_id: fact.cancelled for fact in ledger.all_of(ToolFinished)}
    assert finished == {"a": False, "b": True, "c": False}
    assert [fact.outcome for fact in ledger.all_of(SegmentEnded)] == ["cancelled"]
    assert [event.outcome for event in seen.of(TurnEnded)] == ["cancelled"]
    assert len(model.requests) == 1


def test_a_body_that_cancels_its_own_task_cancels_no_other_body() -> None:
    ledger = Batches()

    @tool(name="raises")
    async def cancels() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
        return "never"

    calls = [call("a", "slow", {}), call("b", "raises", {}), call("c", "slow", {})]
    slow = _raising(ValueError, plain=False)[1]
    builder, model = together(*calls, tools=[cancels, slow], ledger=ledger)
    agent = builder.build()

    async def story() -> None:
        with pytest.raises(asyncio.CancelledError):
            await agent.run("go")
        # The caller was not cancelled: the turn was, by its own tool.
        await asyncio.sleep(0)

    run(story())
    filed = {fact.call_id: (fact.cancelled, fact.failed) for fact in ledger.all_of(ToolFinished)}
    assert filed == {"a": (False, False), "b": (True, True), "c": (False, False)}
    assert [fact.outcome for fact in ledger.all_of(SegmentEnded)] == ["cancelled"]
    assert len(model.requests) == 1


def test_behind_an_append_that_failed_bodies_end_and_nothing_more_is_written() -> None:
    # The opening, the model call, the intents, then one append for each body that ends.
    ledger, log, ended = Batches(refuses=4), Log(), list[str]()

    async def meet(context: ToolContext) -> str:
        for _ in range(int(context.call_id[1])):
            await asyncio.sleep(0)
        ended.append(context.call_id)
        return "met"

    builder, model = together(*three(), tools=[meet], rules=[log], ledger=ledger)
    with pytest.raises(LedgerWriteError):
        run(builder.build().run("go"))
    assert ended == ["c0", "c1", "c2"]
    assert len(ledger.batches) == 4
    assert [step for step, _ in log.steps] == ["before"] * 3
    assert len(model.requests) == 1


def test_a_batch_of_one_runs_like_any_call() -> None:
    back, log = Backwards(1), Log()
    builder, model = together(call("c0", "back", {"n": 0}), tools=[back.tool()], rules=[log])
    out: Answer = answered(run(builder.build().run("go")))
    assert results(model) == [("c0", "0")]
    assert [row.moment for row in out.decisions] == ["before-tool", "after-tool"]
