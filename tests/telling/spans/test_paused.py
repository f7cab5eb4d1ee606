"""A run that pauses in one process and is resumed in another: two traces with a link, and one run."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from footprint_core import (
    Agent,
    AskPause,
    CheckInPause,
    HumanPause,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from otlp_receiver import OtlpReceiver, ReceivedSpan
from recorders.otel_spans import OtelSpans
from story import answered, run
from traced import Traced

TESTS = Path(__file__).parents[2]
CHILD = """
import asyncio, json, sys
from footprint_core import check_in_approved
from recorders.otel_spans import OtelSpans
from story import answered
from telling.spans.test_paused import desk
from footprint_observe import SqliteLedger
from footprint_core.providers import reply

async def main():
    spans = OtelSpans.to_otlp(sys.argv[2])
    async with desk([reply(text="Paid.")], spans, SqliteLedger(sys.argv[1])) as agent:
        out = answered(await agent.resume(json.load(sys.stdin), check_in_approved(by="dana@ops")))
        print(out.run_id)

asyncio.run(main())
"""
PAUSED = (
    "invoke_agent refunds",
    (
        ("chat m", ()),
        ("execute_tool look", (("middleware.decision four-eyes", ()), ("middleware.decision ceiling", ()))),
        ("execute_tool pay", (("middleware.decision four-eyes", ()),)),
    ),
)
RESUMED = (
    "invoke_agent refunds",
    (
        ("execute_tool pay", (("middleware.decision four-eyes", ()), ("middleware.decision ceiling", ()))),
        ("execute_tool look", (("middleware.decision four-eyes", ()), ("middleware.decision ceiling", ()))),
        ("chat m", ()),
    ),
)


def look(key: str) -> str:
    """Look up."""
    return key


async def pay(amount: int) -> int:
    """Pay."""
    return amount


def desk(
    replies: Any, spans: OtelSpans, ledger: Any = None, *, parallel: bool = False, **model: Any
) -> Agent:
    builder = Agent.create(
        provider=Scripted(replies, **model), model="m", name="refunds", parallel_tools=parallel
    )
    asks = before_tool("four-eyes", version="1")(
        lambda c: ask("Really?") if c.tool_name == "pay" else allow()
    )
    rules = [asks, before_tool("ceiling", version="1")(lambda _: allow())]
    builder.tool(look, pay).act(before_tool=rules).watch(spans)
    return (builder if ledger is None else builder.ledger(ledger)).build()


BATCH = [
    reply(
        calls=[
            call("c1", "look", {"key": "a"}),
            call("c2", "pay", {"amount": 9}),
            call("c3", "look", {"key": "b"}),
        ]
    )
]


def roots(receiver: OtlpReceiver) -> tuple[ReceivedSpan, ReceivedSpan]:
    first, second = (s for s in receiver.spans if s.name == "invoke_agent refunds")
    return first, second


@pytest.mark.parametrize("streaming", [False, True])
def test_the_trees_of_both_processes_are_linked_and_of_one_run(tmp_path: Path, streaming: bool) -> None:
    path = tmp_path / "l.db"

    async def pause(endpoint: str) -> AskPause:
        spans = OtelSpans.to_otlp(endpoint)
        async with desk(BATCH, spans, SqliteLedger(path), streaming=streaming) as agent:
            outcome = await agent.run("Refund me.")
            assert isinstance(outcome, AskPause)
            return outcome

    with OtlpReceiver() as receiver:
        paused = run(pause(receiver.endpoint))
        resumed = subprocess.run(
            [sys.executable, "-c", CHILD, str(path), receiver.endpoint],
            input=json.dumps(paused.checkpoint),
            env={"PYTHONPATH": f"{TESTS}:{TESTS.parent}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert resumed.returncode == 0, resumed.stderr
        receiver.wait(15)
        assert receiver.tree() == (PAUSED, RESUMED)
        first, second = roots(receiver)
        assert {span.status for span in receiver.spans} == {"UNSET"}
    assert first.trace_id != second.trace_id
    assert list(second.links) == [(first.trace_id, first.span_id)]
    assert second.attributes["footprint.resumed_from.trace_id"] == first.trace_id
    assert second.attributes["footprint.resumed_from.span_id"] == first.span_id
    assert {s.attributes["footprint.run.id"] for s in (first, second)} == {resumed.stdout.strip()}
    assert [s.attributes["footprint.segment"] for s in (first, second)] == [1, 2]
    assert [s.attributes["footprint.run.outcome"] for s in (first, second)] == ["paused", "answered"]
    with sqlite3.connect(path) as db:
        query = "select distinct segment, trace_id, span_id from decisions order by 1"
        rows = db.execute(query).fetchall()
    db.close()
    assert rows == [(1, first.trace_id, first.span_id), (2, second.trace_id, second.span_id)]


def test_c083_a_call_that_waits_for_a_person_is_no_error_and_says_that_it_waits() -> None:
    traced = Traced()
    paused = run(desk(BATCH, traced.watcher).run("Refund me."))
    assert isinstance(paused, AskPause)
    told = traced.said("execute_tool pay")
    assert (told["footprint.tool.status"], told["footprint.tool.executed"]) == ("paused", False)
    assert (told["footprint.outcome"], told["footprint.middleware"]) == ("ask", "four-eyes")
    assert traced.notes("execute_tool pay")[-1][0] == "pause.request"
    assert {status.name for status in traced.statuses()} == {"UNSET"}
    assert not [span for span in traced.spans if span.status.description or "exception" in str(span.events)]


@pytest.mark.parametrize("approved", [True, False])
def test_what_a_person_decided_is_a_decision_of_the_rule_that_asked(approved: bool) -> None:
    traced = Traced()
    agent = desk([*BATCH, reply(text="Done.")], traced.watcher)

    async def story() -> None:
        paused = await agent.run("Refund me.")
        assert isinstance(paused, AskPause)
        word = check_in_approved(by="dana@ops") if approved else check_in_declined(by="dana@ops", note="no")
        answered(await agent.resume(paused.checkpoint, word))

    run(story())
    _, again = traced.all_named("execute_tool pay")
    told = dict(again.attributes or {})
    assert told["footprint.tool.status"] == ("ran" if approved else "denied")
    assert told["footprint.tool.executed"] is approved
    note = again.events[0]
    assert note.name == "pause.resume"
    word = "approved" if approved else "declined"
    assert dict(note.attributes or {})["footprint.pause.answer"] == word
    assert {status.name for status in traced.statuses()} == {"UNSET"}


def test_a_check_in_is_told_on_its_call_in_both_segments() -> None:
    traced = Traced()

    @tool(check_in="always")
    async def wire(amount: int) -> int:
        """Wire."""
        return amount

    model = Scripted([reply(calls=[call("c1", "wire", {"amount": 1})]), reply(text="Done.")])
    agent = Agent.create(provider=model, model="m", name="refunds").tool(wire).watch(traced.watcher).build()

    async def story() -> None:
        paused = await agent.run("go")
        assert isinstance(paused, CheckInPause)
        answered(await agent.resume(paused.checkpoint, check_in_approved(by="dana@ops")))

    run(story())
    first, second = traced.all_named("execute_tool wire")
    assert [note.name for note in first.events] == ["checkin.request", "pause.request"]
    assert [note.name for note in second.events] == ["pause.resume", "checkin.decision"]


def test_what_ran_beside_a_call_that_asked_while_it_ran_says_that_it_ran() -> None:
    traced = Traced()

    async def asks() -> str:
        """Ask a person."""
        ask_human("Which one?")

    model = Scripted(
        [
            reply(calls=[call("c1", "asks", {}), call("c2", "look", {"key": "a"})]),
            reply(text="Done."),
        ]
    )
    builder = Agent.create(provider=model, model="m", name="refunds", parallel_tools=True)
    agent = builder.tool(asks, look).watch(traced.watcher).build()

    async def story() -> None:
        paused = await agent.run("go")
        assert isinstance(paused, HumanPause)
        answered(await agent.resume(paused.checkpoint, "the first"))

    run(story())
    for name in ("asks", "look"):
        first, second = (dict(s.attributes or {}) for s in traced.all_named(f"execute_tool {name}"))
        assert (first["footprint.tool.status"], first["footprint.tool.executed"]) == ("paused", True)
        assert (second["footprint.tool.status"], second["footprint.tool.executed"]) == ("ran", True)
