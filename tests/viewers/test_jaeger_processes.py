"""A run whose process was killed, as Jaeger shows it once another process has gone on with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import uuid
from pathlib import Path

from file_ledger import select
from viewers.jaeger_server import Jaeger
from viewers.jaeger_spans import faults, named, tree

BEHIND_A_CALL = """
import asyncio, os, signal, sys
from footprint_core import AskPause, check_in_approved
from footprint_core.events import ToolCallEnded
from footprint_observe import SqliteLedger
from footprint_observe.demo.refunds import refund_agent
from footprint_observe.demo.story import MESSAGE, StoryModel
from recorders.otel_spans import OtelSpans

path, endpoint, service, run_id = sys.argv[1:]
spans = OtelSpans.to_otlp(endpoint, service_name=service)

class Dies:
    id = "dies"

    def on_event(self, event):
        if isinstance(event, ToolCallEnded) and event.tool_call_id == "call-2":
            assert spans.flush(30)
            os.kill(os.getpid(), signal.SIGKILL)

async def main():
    watchers = [spans] if run_id else [spans, Dies()]
    async with refund_agent(StoryModel(), SqliteLedger(path), watchers) as agent:
        out = await (agent.recover(run_id) if run_id else agent.run(MESSAGE))
        while isinstance(out, AskPause):
            out = await agent.resume(out.checkpoint, check_in_approved(by="dana@ops"))
        print(out.text)

asyncio.run(main())
"""

IN_A_BODY = """
import asyncio, os, signal, sys
from footprint_core import Agent
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from recorders.otel_spans import OtelSpans

path, endpoint, service, run_id = sys.argv[1:]
spans = OtelSpans.to_otlp(endpoint, service_name=service)

def note(n: int) -> int:
    return n

def pay(n: int) -> int:
    assert spans.flush(30)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    calls = [call("c1", "note", {"n": 1}), call("c2", "pay", {"n": 2}), call("c3", "note", {"n": 3})]
    replies = [reply(text="done")] if run_id else [reply(calls=calls)]
    builder = Agent.create(provider=Scripted(replies), model="m", name="dies").tool(note, pay).watch(spans)
    async with builder.ledger(SqliteLedger(path)).build() as agent:
        await (agent.recover(run_id) if run_id else agent.run("go"))

asyncio.run(main())
"""


def _child(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_what_was_recovered_is_whole_and_linked_to_what_was_seen_before_the_kill(
    jaeger: Jaeger, tmp_path: Path
) -> None:
    service, path = f"killed-{uuid.uuid4().hex}", tmp_path / "f.db"
    died = _child(BEHIND_A_CALL, str(path), jaeger.http, service, "")
    assert (died.returncode, died.stderr) == (-signal.SIGKILL, "")
    (before,) = jaeger.wait(10, service)
    ((run_id,),) = select(path, "SELECT run_id FROM runs")
    done = _child(BEHIND_A_CALL, str(path), jaeger.http, service, run_id)
    assert (done.returncode, done.stderr) == (0, "")
    assert "refunded you $450" in done.stdout

    recovered, resumed = jaeger.wait(12, service, {"footprint.run.id": run_id})
    assert [faults(trace) for trace in (recovered, resumed)] == [[], []]
    (first,), (second,) = named(recovered, "invoke_agent"), named(resumed, "invoke_agent")
    assert [span.tags["footprint.run.outcome"] for span in (first, second)] == ["paused", "answered"]
    assert [span.tags["footprint.segment"] for span in (first, second)] == [2, 3]
    assert second.links == (first.at,)

    # The span of the killed segment never ended, so it is not there; what had ended says whose child it is.
    (link,) = first.links
    assert link == (
        first.tags["footprint.resumed_from.trace_id"],
        first.tags["footprint.resumed_from.span_id"],
    )
    assert {span.trace_id for span in before} == {link[0]}
    assert {name for name, _ in tree(before)} == {
        "middleware.decision scrub-ssns",
        "middleware.decision no-codenames",
        "chat scripted-model",
        "execute_tool look_up_order",
        "execute_tool issue_refund",
    }
    known = {span.span_id for span in before}
    assert {span.parent for span in before if span.parent not in known} == {link[1]}
    calls = {
        span.tags["gen_ai.tool.call.id"]
        for trace in (before, recovered)
        for span in named(trace, "execute_tool")
    }
    assert calls == {"call-1", "call-2", "call-3"}


def test_a_call_that_may_have_run_stands_in_the_recovered_trace_once(jaeger: Jaeger, tmp_path: Path) -> None:
    service, path = f"killed-{uuid.uuid4().hex}", tmp_path / "f.db"
    died = _child(IN_A_BODY, str(path), jaeger.http, service, "")
    assert (died.returncode, died.stderr) == (-signal.SIGKILL, "")
    (before,) = jaeger.wait(2, service)
    assert [span.name for span in before] == ["chat m", "execute_tool note"]
    ((run_id,),) = select(path, "SELECT run_id FROM runs")
    done = _child(IN_A_BODY, str(path), jaeger.http, service, run_id)
    assert (done.returncode, done.stderr) == (0, "")
    (recovered,) = jaeger.wait(4, service, {"footprint.run.id": run_id})
    calls = (("execute_tool pay", ()), ("execute_tool note", ()))
    assert tree(recovered) == (("invoke_agent dies", (*calls, ("chat m", ()))),)
    assert faults(recovered) == []
    in_doubt, after = named(recovered, "execute_tool")
    assert in_doubt.tags["footprint.tool.status"] == "blocked"
    assert in_doubt.tags["gen_ai.tool.call.id"] == "c2"
    assert after.tags["footprint.tool.status"] == "ran"
