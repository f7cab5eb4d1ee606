"""Spans over the wire: the tree of the demonstration, and a run that two processes share."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from footprint_core import Agent, Answer, AskPause, check_in_approved
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from footprint_observe.demo.refunds import refund_agent
from footprint_observe.demo.story import MESSAGE, StoryModel
from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from story import run

PAUSED = (
    "invoke_agent refunds",
    (
        ("middleware.decision scrub-ssns", ()),
        ("middleware.decision no-codenames", ()),
        ("chat scripted-model", ()),
        (
            "execute_tool look_up_order",
            (
                ("middleware.decision refund-ceiling", ()),
                ("middleware.decision four-eyes", ()),
                ("middleware.decision strip-pii", ()),
            ),
        ),
        ("chat scripted-model", ()),
        ("execute_tool issue_refund", (("middleware.decision refund-ceiling", ()),)),
        ("chat scripted-model", ()),
        (
            "execute_tool issue_refund",
            (("middleware.decision refund-ceiling", ()), ("middleware.decision four-eyes", ())),
        ),
    ),
)
RESUMED = (
    "invoke_agent refunds",
    (
        (
            "execute_tool issue_refund",
            (("middleware.decision four-eyes", ()), ("middleware.decision strip-pii", ())),
        ),
        ("chat scripted-model", ()),
        ("middleware.decision scrub-ssns", ()),
        ("middleware.decision no-codenames", ()),
    ),
)

ELSEWHERE = """
import asyncio, json, sys
from footprint_core import check_in_approved
from footprint_observe import SqliteLedger
from footprint_observe.demo.refunds import refund_agent
from footprint_observe.demo.story import StoryModel
from recorders.otel_spans import OtelSpans

async def main():
    checkpoint = json.load(sys.stdin)
    spans = OtelSpans.to_otlp(sys.argv[2])
    async with refund_agent(StoryModel(), SqliteLedger(sys.argv[1]), [spans]) as agent:
        answer = await agent.resume(checkpoint, check_in_approved(by="dana@ops"))
        print(json.dumps([answer.text, answer.run_id, len(answer.decisions)]))

asyncio.run(main())
"""


async def _pause(path: Path, endpoint: str) -> AskPause:
    spans = OtelSpans.to_otlp(endpoint)
    async with refund_agent(StoryModel(), SqliteLedger(path), [spans]) as agent:
        outcome = await agent.run(MESSAGE)
        assert isinstance(outcome, AskPause)
        return outcome


def test_a_paused_and_resumed_run_is_two_linked_traces_also_across_processes(tmp_path: Path) -> None:
    path = tmp_path / "footprint.db"
    with OtlpReceiver() as receiver:
        pause = run(_pause(path, receiver.endpoint))
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, str(path), receiver.endpoint],
            input=json.dumps(pause.checkpoint),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        text, run_id, decisions = json.loads(done.stdout)
        receiver.wait(22)
        assert receiver.tree() == (PAUSED, RESUMED)
        first, second = (s for s in receiver.spans if s.name == "invoke_agent refunds")
    assert (text, run_id, decisions) == (
        "I am sorry about the machine. Our refund desk has refunded you $450.",
        pause.run_id,
        12,
    )
    assert first.trace_id != second.trace_id
    assert list(second.links) == [(first.trace_id, first.span_id)]
    assert first.attributes["footprint.run.id"] == second.attributes["footprint.run.id"] == run_id
    assert second.attributes["footprint.resumed_from.trace_id"] == first.trace_id
    assert first.attributes["footprint.run.outcome"] == "paused"
    assert second.attributes["footprint.run.outcome"] == "answered"
    db = sqlite3.connect(path)
    rows = db.execute("select distinct segment, trace_id, span_id from decisions order by 1").fetchall()
    db.close()
    assert rows == [(1, first.trace_id, first.span_id), (2, second.trace_id, second.span_id)]


def test_every_proposed_call_has_a_span_that_says_whether_it_ran(tmp_path: Path) -> None:
    async def story(endpoint: str) -> None:
        spans = OtelSpans.to_otlp(endpoint)
        async with refund_agent(StoryModel(), SqliteLedger(tmp_path / "f.db"), [spans]) as agent:
            outcome = await agent.run(MESSAGE)
            assert isinstance(outcome, AskPause)
            assert isinstance(await agent.resume(outcome.checkpoint, check_in_approved(by="d")), Answer)

    with OtlpReceiver() as receiver:
        run(story(receiver.endpoint))
        spans = [s for s in receiver.wait(22) if s.name.startswith("execute_tool ")]
    told = [
        (
            s.attributes["gen_ai.tool.call.id"],
            s.attributes["footprint.tool.status"],
            s.attributes["footprint.tool.executed"],
            s.status,
        )
        for s in spans
    ]
    assert [row[:3] for row in told] == [
        ("call-1", "ran", True),
        ("call-2", "denied", False),
        ("call-3", "paused", False),
        ("call-3", "ran", True),
    ]
    assert {row[3] for row in told} == {"UNSET"}
    assert spans[1].attributes["footprint.middleware"] == "refund-ceiling"


def test_a_span_of_the_tool_itself_hangs_below_its_call(tmp_path: Path) -> None:
    with OtlpReceiver() as receiver:
        provider = TracerProvider()
        exporter = OTLPSpanExporter(endpoint=f"{receiver.endpoint}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("the tool's own")

        async def quick(n: int) -> int:
            with tracer.start_as_current_span(f"own async {n}"):
                await asyncio.sleep(0)
            return n

        def slow(n: int) -> int:
            with tracer.start_as_current_span(f"own plain {n}"):
                return n

        model = Scripted(
            [reply(calls=[call("a", "quick", {"n": 1}), call("b", "slow", {"n": 2})]), reply(text="done")]
        )
        agent = (
            Agent.create(provider=model, model="m", name="tools")
            .tool(quick, slow)
            .watch(OtelSpans(tracer_provider=provider))
            .build()
        )
        with tracer.start_as_current_span("the application"):
            run(agent.run("go"))
        receiver.wait(8)
        (tree,) = receiver.tree()
        provider.shutdown()
    assert tree == (
        "the application",
        (
            (
                "invoke_agent tools",
                (
                    ("chat m", ()),
                    ("execute_tool quick", (("own async 1", ()),)),
                    ("execute_tool slow", (("own plain 2", ()),)),
                    ("chat m", ()),
                ),
            ),
        ),
    )


def test_no_value_of_the_demonstration_is_in_a_span(tmp_path: Path) -> None:
    with OtlpReceiver() as receiver:
        run(_pause(tmp_path / "f.db", receiver.endpoint))
        receiver.wait(15)
        body = receiver.body
    for value in (
        b"123-45-6789",
        b"espresso",
        b"ada@example.com",
        b"Sample Street",
        b"not yours to give",
        b"649",
    ):
        assert value not in body
    assert b"refund-ceiling" in body
