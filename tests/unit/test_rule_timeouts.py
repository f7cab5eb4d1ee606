"""A rule with a timeout answers in time, or its silence is a denial."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from footprint_core import (
    Agent,
    BuilderError,
    Decision,
    MemoryLedger,
    MessageDeniedError,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    before_tool,
    deny,
    on_message,
)
from footprint_core.facts import Decided, SegmentEnded
from footprint_core.providers import call, reply
from footprint_core.threads import MAX_LEFT_BEHIND, THREADS
from story import answered, describe, run

LIMIT = 0.05
LONG = 20.0
PAYS = [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")]


def _agent(act: Any, *, ledger: MemoryLedger | None = None) -> tuple[Agent, Any, list[int]]:
    paid: list[int] = []

    def pay(amount: int) -> dict[str, Any]:
        paid.append(amount)
        return {"paid": amount}

    builder, model = describe(PAYS, pay, act=act, ledger=ledger)
    return builder.build(), model, paid


def _ruled(hook: Any, *, timeout: float = LIMIT) -> tuple[Decision, Any, list[int]]:
    """The first row of a run under a rule before the tool, with the model and what was paid."""
    agent, model, paid = _agent({"before_tool": [before_tool("slow", timeout=timeout)(hook)]})
    return answered(run(agent.run("go"))).decisions[0], model, paid


@contextmanager
def _hung() -> Iterator[Callable[[Any], Any]]:
    """A plain hook that answers when the block is left; the threads it held have ended then."""
    release = threading.Event()

    def hook(_: Any) -> Any:
        release.wait(LONG)
        return allow()

    try:
        yield hook
    finally:
        release.set()
        run(_nobody_left())


async def _nobody_left() -> None:
    while THREADS.left_behind:  # noqa: ASYNC110 - a count of threads sets no event
        await asyncio.sleep(0)


async def _forever(_: Any) -> Any:
    await asyncio.Event().wait()


def test_a_plain_rule_that_does_not_answer_in_time_is_a_denial_that_names_it_and_the_limit() -> None:
    with _hung() as hook:
        row, model, paid = _ruled(hook)
    assert (row.outcome, row.answer, row.error_class, row.changed) == ("deny", "timed-out", None, False)
    assert row.why == "The rule slow did not answer within 0.05 s, so it counts as a denial."
    assert row.duration is not None
    assert row.duration >= LIMIT
    assert model.requests[1].messages[-1].text == row.why
    assert paid == []


def test_an_async_rule_that_does_not_answer_in_time_is_cancelled_and_a_denial() -> None:
    ended: list[str] = []

    async def hook(_: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    row, _, paid = _ruled(hook)
    assert (row.outcome, row.answer, row.error_class) == ("deny", "timed-out", None)
    assert (ended, paid) == (["cancelled"], [])


def test_a_result_whose_rule_does_not_answer_in_time_is_withheld() -> None:
    agent, model, paid = _agent({"after_tool": [after_tool("slow", timeout=LIMIT)(_forever)]})
    row = answered(run(agent.run("go"))).decisions[0]
    assert (row.outcome, row.answer, row.before, row.after) == ("deny", "timed-out", {"paid": 5}, row.why)
    assert model.requests[1].messages[-1].text == row.why
    assert paid == [5]


@pytest.mark.parametrize("phase", ["input", "output"])
def test_a_message_whose_rule_does_not_answer_in_time_is_refused(phase: str) -> None:
    agent, model, _ = _agent({phase: [on_message("slow", timeout=LIMIT)(_forever)]})
    with pytest.raises(MessageDeniedError, match=r"slow did not answer within 0\.05 s") as caught:
        run(agent.run("go"))
    assert (caught.value.phase, caught.value.middleware) == (phase, "slow")
    assert len(model.requests) == (0 if phase == "input" else 2)


def test_a_rule_that_answers_in_time_decides_and_a_plain_one_does_so_in_a_daemon_thread() -> None:
    ran: list[tuple[bool, bool]] = []

    def plain(_: ToolCallContext) -> ToolOutcome:
        here = threading.current_thread()
        ran.append((here is threading.main_thread(), here.daemon))
        return allow({"amount": 1}, why="less")

    async def later(_: ToolCallContext) -> ToolOutcome:
        await asyncio.sleep(0)
        ran.append((threading.current_thread() is threading.main_thread(), False))
        return allow({"amount": 1}, why="less")

    for hook in (plain, later):
        row, _, paid = _ruled(hook, timeout=LONG)
        assert (row.answer, row.after, paid) == ("given", {"amount": 1}, [1])
    assert ran == [(False, True), (True, False)]


def test_a_rule_without_a_timeout_runs_on_the_loops_own_thread() -> None:
    where: list[threading.Thread] = []

    @before_tool("plain")
    def plain(_: ToolCallContext) -> ToolOutcome:
        where.append(threading.current_thread())
        return allow()

    agent, _, _ = _agent({"before_tool": [plain]})
    run(agent.run("go"))
    assert where == [threading.main_thread()]


def test_the_limit_also_holds_where_plain_rules_run_in_the_callers_thread() -> None:
    with _hung() as hook:
        agent, _, paid = _agent({"before_tool": [before_tool("slow", timeout=LIMIT)(hook)]})
        row = answered(agent.run_sync("go")).decisions[0]
    assert (row.answer, paid) == ("timed-out", [])


def test_what_a_plain_rule_returns_may_be_awaited_for_the_time_that_is_left() -> None:
    async def soon() -> ToolOutcome:
        await asyncio.sleep(0)
        return deny("looked up")

    row, _, _ = _ruled(lambda _: soon(), timeout=LONG)
    assert (row.answer, row.why) == ("given", "looked up")
    row, _, _ = _ruled(_forever_from_a_thread)
    assert row.answer == "timed-out"


def _forever_from_a_thread(context: Any) -> Any:
    return _forever(context)


def test_a_rule_that_swallows_its_cancellation_is_not_waited_for_and_its_answer_is_ignored() -> None:
    async def story() -> tuple[Decision, list[int]]:
        free, gave = asyncio.Event(), asyncio.Event()

        async def hook(_: Any) -> Any:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await free.wait()
            gave.set()
            return allow()

        agent, _, paid = _agent({"before_tool": [before_tool("slow", timeout=LIMIT)(hook)]})
        row: Decision = answered(await agent.run("go")).decisions[0]
        assert not gave.is_set()
        free.set()
        await gave.wait()
        return row, paid

    row, paid = run(story())
    assert (row.outcome, row.answer, paid) == ("deny", "timed-out", [])


def test_a_coroutine_that_comes_too_late_is_closed() -> None:
    release = threading.Event()

    def hook(context: Any) -> Any:
        release.wait(LONG)
        return _forever(context)

    agent, _, _ = _agent({"before_tool": [before_tool("slow", timeout=LIMIT)(hook)]})

    async def story() -> Decision:
        row: Decision = answered(await agent.run("go")).decisions[0]
        release.set()
        await _nobody_left()
        return row

    assert run(story()).answer == "timed-out"
    # Python warns of a coroutine nobody awaited when it is collected, and a warning is an error here.
    gc.collect()


@pytest.mark.parametrize("error", [ValueError("no such tier"), StopIteration(), StopAsyncIteration()])
def test_a_rule_with_a_timeout_that_raises_is_a_denial_like_any_other(error: Exception) -> None:
    def plain(_: Any) -> Any:
        raise error

    row, _, _ = _ruled(plain, timeout=LONG)
    assert (row.outcome, row.answer, row.error_class) == ("deny", "raised", type(error).__name__)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_an_interrupt_in_a_rule_with_a_timeout_is_no_denial_and_stops_no_event_loop(
    kind: str, error: type[BaseException]
) -> None:
    def plain(_: Any) -> Any:
        raise error

    async def later(_: Any) -> Any:
        raise error

    ledger = MemoryLedger()
    rule: Any = before_tool("slow", timeout=LONG)(plain if kind == "plain" else later)
    agent, _, paid = _agent({"before_tool": [rule]}, ledger=ledger)

    async def story() -> str:
        with pytest.raises(error):
            await agent.run("go")
        return "goes on"

    assert run(story()) == "goes on"
    facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
    assert not [fact for fact in facts if isinstance(fact, Decided)]
    assert paid == []


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_cancelling_a_run_while_a_rule_with_a_timeout_is_pending_is_a_cancellation(kind: str) -> None:
    ledger = MemoryLedger()
    entered = threading.Event()
    release = threading.Event()

    def plain(_: Any) -> Any:
        entered.set()
        release.wait(LONG)
        return allow()

    async def later(_: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    rule: Any = before_tool("slow", timeout=LONG)(plain if kind == "plain" else later)
    agent, _, paid = _agent({"before_tool": [rule]}, ledger=ledger)

    async def story() -> int:
        turn = asyncio.ensure_future(agent.run("go"))
        await THREADS.call(partial(entered.wait, LONG))
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        left = THREADS.left_behind
        release.set()
        await _nobody_left()
        return left

    assert run(story()) == (1 if kind == "plain" else 0)
    facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
    assert not [fact for fact in facts if isinstance(fact, Decided)]
    assert [fact.outcome for fact in facts if isinstance(fact, SegmentEnded)] == ["cancelled"]
    assert paid == []


def test_threads_left_behind_are_counted_and_beyond_the_cap_a_rule_is_a_denial_at_once() -> None:
    asked: list[str] = []
    with _hung() as hook:

        def counted(context: Any) -> Any:
            asked.append("asked")
            return hook(context)

        rule = before_tool("slow", timeout=LIMIT)(counted)
        agents = [_agent({"before_tool": [rule]})[0] for _ in range(MAX_LEFT_BEHIND + 1)]

        async def story() -> tuple[list[Decision], Decision, int]:
            first = await asyncio.gather(*(agent.run("go") for agent in agents[:-1]))
            left = THREADS.left_behind
            last = await agents[-1].run("go")
            return [answered(one).decisions[0] for one in first], answered(last).decisions[0], left

        rows, refused, left = run(story())
        assert left == len(asked) == MAX_LEFT_BEHIND
        assert all("did not answer within" in str(row.why) for row in rows)
        assert (refused.outcome, refused.answer) == ("deny", "timed-out")
        assert refused.why == (
            "The rule slow was not asked, since 32 rules that ran out of time are still running, so it "
            "counts as a denial."
        )
        # An async rule needs no thread, and is asked all the same.
        row, _, _ = _ruled(_forever)
        assert "did not answer within" in str(row.why)
    assert THREADS.left_behind == 0
    row, _, _ = _ruled(lambda _: allow(why="asked again"), timeout=LONG)
    assert row.why == "asked again"


@pytest.mark.parametrize(
    "wrong", [0, -1, 0.0, float("nan"), float("inf"), True, False, "1", [1], 10**400, 1e300]
)
def test_a_timeout_that_is_no_number_of_seconds_is_refused_by_the_rules_name(wrong: Any) -> None:
    builder, _ = describe(PAYS)
    with pytest.raises(BuilderError, match="'slow' has a timeout"):
        builder.act(before_tool=[before_tool("slow", timeout=wrong)(lambda _: allow())])
    with pytest.raises(BuilderError, match="'slow' has a timeout"):
        builder.tool_middleware(after_tool("slow", timeout=wrong)(lambda _: allow()))
    with pytest.raises(BuilderError, match="'slow' has a timeout"):
        builder.message_middleware(on_message("slow", timeout=wrong)(lambda _: allow()))


def test_a_timeout_is_read_once() -> None:
    class Rule:
        name = "slow"
        timeout: Any = LIMIT

        async def on_tool_result(self, call: ToolResultContext) -> ToolResultOutcome:
            await asyncio.Event().wait()
            return allow()

    rule = Rule()
    agent, _, _ = _agent({"after_tool": [rule]})
    rule.timeout = None
    assert answered(run(agent.run("go"))).decisions[0].answer == "timed-out"


PROGRAM = """
import asyncio, sys, time
from footprint_core import Agent, allow, before_tool
from footprint_core.providers import Scripted, call, reply

@before_tool("plain", timeout=0.2)
def plain(_):
    time.sleep(3600)

@before_tool("async", timeout=0.2)
async def later(_):
    await asyncio.sleep(3600)

async def pay() -> str:
    return "paid"

replies = [reply(calls=[call("c1", "pay", {})]), reply(text="done")]
rule = {"plain": plain, "async": later}[sys.argv[1]]
agent = Agent.create(provider=Scripted(replies), model="m", name="a")
agent = agent.tool(pay).act(before_tool=[rule]).build()
answer = agent.run_sync("go") if sys.argv[2] == "sync" else asyncio.run(agent.run("go"))
print(answer.decisions[0].answer, time.time(), flush=True)
"""


@pytest.mark.parametrize("rule", ["plain", "async"])
@pytest.mark.parametrize("door", ["sync", "loop"])
def test_a_rule_that_never_answers_does_not_hold_the_program_open(rule: str, door: str) -> None:
    command = [sys.executable, "-c", PROGRAM, rule, door]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    ended = time.time()
    kind, answered_at = done.stdout.split()
    assert kind == "timed-out"
    assert ended - float(answered_at) < 3
