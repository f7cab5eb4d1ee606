"""Runs whose process died, that were given up, or whose end never comes: no span is left open or made up."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from footprint_core import Agent, MemoryLedger, RunTakenOverError, allow, before_tool, tool
from footprint_core.facts import CallTaken, Decided, ModelReplied, ToolIntended
from footprint_core.ledger import Batch
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from prefixes import cut_behind
from story import answered, run
from traced import Traced, context, said

TESTS = Path(__file__).parents[2]
REPLIES = [
    reply(calls=[call("c1", "pay", {"amount": 1}), call("c2", "pay", {"amount": 2})]),
    reply(text="Paid."),
]
CHILD = """
import asyncio, os, sys
from footprint_core import Agent, tool
from footprint_core.providers import Scripted
from footprint_observe import SqliteLedger
from story import run
from telling.spans.test_interrupted import REPLIES, desk
from traced import Traced

traced = Traced()

@tool(idempotent=True)
async def pay(amount: int) -> int:
    if amount == 2:
        os.kill(os.getpid(), 9)
    return amount

run(desk(traced, pay, SqliteLedger(sys.argv[1]), REPLIES).run("go"))
"""


def desk(traced: Traced, pay: Any, ledger: Any, replies: Any = REPLIES[1:], **options: Any) -> Agent:
    rules = [before_tool("looks", version="1")(lambda _: allow())]
    builder = Agent.create(provider=Scripted(replies), model="m", name="refunds", **options)
    return builder.tool(pay).act(before_tool=rules).watch(traced.watcher).ledger(ledger).build()


def test_a_run_of_a_process_that_was_killed_goes_on_in_a_trace_linked_to_that_of_the_dead(
    tmp_path: Path,
) -> None:
    path, traced = tmp_path / "l.db", Traced()
    died = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        env={"PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert died.returncode == -9, died.stderr
    with sqlite3.connect(path) as db:
        ((run_id, trace_id, span_id),) = db.execute(
            "select distinct run_id, trace_id, span_id from decisions"
        ).fetchall()
    db.close()

    @tool(idempotent=True)
    async def pay(amount: int) -> int:
        with traced.tracer.start_as_current_span("own"):
            return amount

    async def recover() -> None:
        async with desk(traced, pay, SqliteLedger(path)) as agent:
            assert answered(await agent.recover(run_id)).text == "Paid."

    run(recover())
    # The end of the dead segment was told here, and nothing of it is a span.
    assert traced.tree() == [
        ["invoke_agent refunds", ["execute_tool pay", "own"], "chat m"],
    ]
    root = traced.named("invoke_agent refunds")
    (link,) = root.links
    assert (f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") == (trace_id, span_id)
    told = said(root)
    assert (told["footprint.run.id"], told["footprint.segment"]) == (run_id, 2)
    assert told["footprint.resumed_from.trace_id"] == trace_id
    again = traced.said("execute_tool pay")
    assert (again["gen_ai.tool.call.id"], again["footprint.tool.status"]) == ("c2", "ran")


@pytest.mark.parametrize("kind", [CallTaken, Decided, ToolIntended, ModelReplied])
@pytest.mark.parametrize("parallel", [False, True])
def test_a_run_cut_off_anywhere_goes_on_in_a_whole_tree(kind: type[Any], parallel: bool) -> None:
    @tool(idempotent=True)
    async def pay(amount: int) -> int:
        return amount

    ledger, before, after = MemoryLedger(), Traced(), Traced()
    out = answered(run(desk(before, pay, ledger, REPLIES, parallel_tools=parallel).run("go")))
    left = cut_behind(ledger, out.run_id, kind)
    agent = desk(after, pay, left, parallel_tools=parallel)
    answered(run(agent.recover(out.run_id)))
    ids = {context(span).span_id for span in after.spans}
    (root,) = after.all_named("invoke_agent refunds")
    assert root.parent is None
    assert all(span.parent and span.parent.span_id in ids for span in after.spans if span is not root)
    calls = [said(span) for span in after.all_named("execute_tool pay")]
    assert sorted(one["gen_ai.tool.call.id"] for one in calls) == ["c1", "c2"]
    assert after.watcher._segments.found == {}


def test_a_run_that_is_given_up_while_it_runs_leaves_no_span_open() -> None:
    traced, ledger = Traced(), MemoryLedger()
    entered = asyncio.Event()
    go_on = asyncio.Event()

    async def pay(amount: int) -> int:
        """Pay."""
        entered.set()
        await go_on.wait()
        return amount

    agent = desk(traced, pay, ledger, REPLIES)

    async def story() -> None:
        running = asyncio.ensure_future(agent.session().run("go"))
        await entered.wait()
        run_id = next(iter(traced.watcher._segments.found))[0]
        await agent.abandon(run_id, by="dana@ops", reason="too slow")
        assert traced.watcher._segments.found == {}
        go_on.set()
        with pytest.raises(RunTakenOverError):
            await running

    run(story())
    assert traced.tree() == [
        ["invoke_agent refunds", "chat m", ["execute_tool pay", "middleware.decision looks"]]
    ]
    assert traced.said("invoke_agent refunds")["footprint.run.outcome"] == "abandoned"
    assert traced.said("execute_tool pay")["footprint.tool.executed"] is True
    assert {status.name for status in traced.statuses()} == {"UNSET"}


def test_a_cancelled_run_is_no_error_and_leaves_no_span_open() -> None:
    traced = Traced()
    entered = asyncio.Event()

    async def pay(amount: int) -> int:
        """Pay."""
        entered.set()
        await asyncio.Event().wait()
        return amount

    async def story() -> None:
        running = asyncio.ensure_future(desk(traced, pay, MemoryLedger(), REPLIES).run("go"))
        await entered.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(story())
    assert traced.said("invoke_agent refunds")["footprint.run.outcome"] == "cancelled"
    assert {status.name for status in traced.statuses()} == {"UNSET"}
    assert traced.watcher._segments.found == {}


def test_a_run_whose_end_is_never_told_ends_when_the_recorder_is_closed() -> None:
    traced = Traced()
    entered = asyncio.Event()

    async def pay(amount: int) -> int:
        """Pay."""
        entered.set()
        await asyncio.Event().wait()
        return amount

    async def story() -> None:
        agent = desk(traced, pay, MemoryLedger(), REPLIES)
        running = asyncio.ensure_future(agent.session().run("go"))
        await entered.wait()
        traced.watcher.close(1.0)
        assert "invoke_agent refunds" in [span.name for span in traced.spans]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(story())
    assert len(traced.all_named("invoke_agent refunds")) == 1
    assert "footprint.run.outcome" not in traced.said("invoke_agent refunds")


def test_a_ledger_that_takes_nothing_any_more_is_said_to_have_no_end_on_record() -> None:
    class Full(MemoryLedger):
        full = False

        def append_inline(self, batch: Batch, /) -> Any:
            if self.full:
                raise OSError("no space left on device")
            return super().append_inline(batch)

    traced, ledger = Traced(), Full()

    async def pay(amount: int) -> int:
        """Pay."""
        ledger.full = True
        return amount

    with pytest.raises(Exception, match="append"):
        run(desk(traced, pay, ledger, REPLIES).run("go"))
    root = traced.named("invoke_agent refunds")
    assert (root.status.status_code.name, root.status.description) == ("ERROR", None)
    ((name, told),) = traced.notes("invoke_agent refunds")
    assert (name, told["footprint.recorded"]) == ("error.fatal", False)
    assert b"no space left" not in str([span.to_json() for span in traced.spans]).encode()
