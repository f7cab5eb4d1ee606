"""Runs as Jaeger shows them: who hangs below whom, what links what, and what each span says."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from footprint_core import (
    Agent,
    AskPause,
    ToolCallContext,
    ToolOutcome,
    allow,
    before_tool,
    check_in_approved,
)
from footprint_core.providers import Scripted, call, reply
from footprint_observe import Redaction, SqliteLedger
from footprint_observe.demo.refunds import refund_agent
from footprint_observe.demo.story import MESSAGE, StoryModel
from recorders.otel_spans import OtelSpans
from story import answered, run
from viewers.jaeger_server import Jaeger
from viewers.jaeger_spans import Span, faults, named, tree


@pytest.fixture
def service() -> str:
    return f"tested-{uuid.uuid4().hex}"


@before_tool("looks")
def looks(given: ToolCallContext) -> ToolOutcome:
    return allow()


async def _paused_and_resumed(path: Path, spans: OtelSpans) -> None:
    ledger = SqliteLedger(path, redact=Redaction.personal())
    async with refund_agent(StoryModel(), ledger, [spans]) as agent:
        pause = await agent.run(MESSAGE)
        assert isinstance(pause, AskPause)
        answered(await agent.resume(pause.checkpoint, check_in_approved(by="dana@ops")))


@pytest.mark.parametrize("way", ["http", "grpc"])
def test_the_resumed_trace_refers_to_the_paused_one(
    jaeger: Jaeger, service: str, tmp_path: Path, way: str
) -> None:
    endpoint = {"http": jaeger.http, "grpc": jaeger.grpc}[way]
    run(_paused_and_resumed(tmp_path / "f.db", OtelSpans.to_otlp(endpoint, service_name=service)))
    paused, resumed = jaeger.wait(22, service)
    (before,), (after,) = named(paused, "invoke_agent"), named(resumed, "invoke_agent")
    assert before.trace_id != after.trace_id
    assert after.links == (before.at,)
    assert [span.name for span in (*paused, *resumed) if span.links] == ["invoke_agent refunds"]
    # Links cannot be searched, so the tags say it again.
    found = jaeger.search(service, {"footprint.resumed_from.trace_id": before.trace_id})
    assert [trace[0].trace_id for trace in found] == [after.trace_id]
    assert after.tags["footprint.resumed_from.span_id"] == before.span_id
    (group,) = jaeger.get(f"/api/v3/traces/{after.trace_id}")["result"]["resourceSpans"]
    links = [
        link for scope in group["scopeSpans"] for span in scope["spans"] for link in span.get("links", ())
    ]
    assert [(link["traceId"], link["spanId"]) for link in links] == [before.at]


def test_what_happens_inside_a_span_is_among_its_logs(jaeger: Jaeger, service: str, tmp_path: Path) -> None:
    run(_paused_and_resumed(tmp_path / "f.db", OtelSpans.to_otlp(jaeger.http, service_name=service)))
    paused, resumed = jaeger.wait(22, service)
    asked = [(span.name, log.fields) for span in paused for log in span.logs if log.name == "pause.request"]
    assert asked == [
        ("execute_tool issue_refund", {"footprint.pause.kind": "ask", "footprint.middleware": "four-eyes"})
    ]
    answers = [(span.name, log.fields) for span in resumed for log in span.logs if log.name == "pause.resume"]
    (told,) = answers
    assert told[0] == "execute_tool issue_refund"
    assert told[1].items() >= {"footprint.pause.kind": "ask", "footprint.pause.answer": "approved"}.items()
    taken_out = [log.fields for span in paused for log in span.logs if log.name == "footprint.redaction"]
    assert {fields["footprint.middleware"] for fields in taken_out} == {"scrub-ssns", "strip-pii"}
    for span in (*paused, *resumed):
        for log in span.logs:
            assert span.start <= log.time <= span.start + span.duration, (span.name, log)


def test_a_rule_faster_than_the_clock_makes_no_warning(jaeger: Jaeger, service: str, tmp_path: Path) -> None:
    # Jaeger warns of a span that ends when it begins, and a rule is often done within a microsecond.
    run(_paused_and_resumed(tmp_path / "f.db", OtelSpans.to_otlp(jaeger.http, service_name=service)))
    traces = jaeger.wait(22, service)
    assert 0 in [span.duration for trace in traces for span in named(trace, "middleware.decision")]
    assert [faults(trace) for trace in traces] == [[], []]


def test_an_agent_inside_a_tool_is_in_the_trace_of_the_agent_around_it(jaeger: Jaeger, service: str) -> None:
    spans = OtelSpans.to_otlp(jaeger.http, service_name=service)

    def look(n: int) -> int:
        return n

    model = Scripted([reply(calls=[call("i", "look", {"n": 1})]), reply(text="inner")])
    inside = (
        Agent.create(provider=model, model="small", name="clerk")
        .tool(look)
        .act(before_tool=[looks])
        .watch(spans)
        .build()
    )

    async def delegate(task: str) -> str:
        return answered(await inside.session().run(task)).text

    model = Scripted([reply(calls=[call("o", "delegate", {"task": "look"})]), reply(text="outer")])
    around = Agent.create(provider=model, model="large", name="desk").tool(delegate).watch(spans).build()

    async def story() -> None:
        async with inside, around:
            answered(await around.run("go"))

    run(story())
    (trace,) = jaeger.wait(9, service)
    clerk = (
        "invoke_agent clerk",
        (
            ("chat small", ()),
            ("execute_tool look", (("middleware.decision looks", ()),)),
            ("chat small", ()),
        ),
    )
    desk = (("chat large", ()), ("execute_tool delegate", (clerk,)), ("chat large", ()))
    assert tree(trace) == (("invoke_agent desk", desk),)
    assert faults(trace) == []
    assert len({span.tags["footprint.run.id"] for span in named(trace, "invoke_agent")}) == 2


def test_a_run_hangs_below_the_span_of_the_application_around_it(jaeger: Jaeger, service: str) -> None:
    theirs = TracerProvider(resource=Resource.create({"service.name": f"{service}-web"}))
    theirs.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{jaeger.http}/v1/traces")))
    spans = OtelSpans.to_otlp(jaeger.http, service_name=service)

    async def story() -> None:
        builder = Agent.create(provider=Scripted([reply(text="hello")]), model="m", name="greeter")
        async with builder.watch(spans).build() as agent:
            with theirs.get_tracer("web").start_as_current_span("GET /hello"):
                answered(await agent.run("hello"))

    run(story())
    theirs.shutdown()
    (trace,) = jaeger.wait(3, service)
    assert tree(trace) == (("GET /hello", (("invoke_agent greeter", (("chat m", ()),)),)),)
    assert [span.resource["service.name"] for span in trace] == [f"{service}-web", service, service]
    assert faults(trace) == []


SESSIONS = 20


def test_sessions_at_once_with_calls_at_once_do_not_mix(jaeger: Jaeger, service: str) -> None:
    spans = OtelSpans.to_otlp(jaeger.grpc, service_name=service)
    together = asyncio.Barrier(SESSIONS)

    async def waits(n: int) -> int:
        await together.wait()
        return n

    def threaded(n: int) -> int:
        return n

    async def talk(n: int) -> None:
        model = Scripted(
            [
                reply(calls=[call(f"a-{n}", "waits", {"n": n}), call(f"b-{n}", "threaded", {"n": n})]),
                reply(text="done"),
            ]
        )
        builder = Agent.create(provider=model, model="m", name=f"agent-{n}", parallel_tools=True)
        agent = builder.tool(waits, threaded).act(before_tool=[looks]).watch(spans).build()
        answered(await agent.session(conversation_id=f"talk-{n}").run("go"))

    async def story() -> None:
        await asyncio.gather(*(talk(n) for n in range(SESSIONS)))

    with spans:
        run(story())
    traces = jaeger.wait(SESSIONS * 7, service)
    assert len(traces) == SESSIONS
    said = sorted(_whose(trace) for trace in traces)
    assert said == sorted((f"talk-{n}", f"agent-{n}", f"a-{n}", f"b-{n}") for n in range(SESSIONS))


def _whose(trace: tuple[Span, ...]) -> tuple[str, ...]:
    """The one conversation and agent of a whole trace, and its calls."""
    assert faults(trace) == []
    ((name, below),) = tree(trace)
    call_of = (("middleware.decision looks", ()),)
    assert sorted(below) == [
        ("chat m", ()),
        ("chat m", ()),
        ("execute_tool threaded", call_of),
        ("execute_tool waits", call_of),
    ]
    (talk,) = {span.tags["gen_ai.conversation.id"] for span in trace}
    (agent,) = {span.tags["gen_ai.agent.name"] for span in trace}
    assert name == f"invoke_agent {agent}"
    calls = {span.span_id: span.tags["gen_ai.tool.call.id"] for span in named(trace, "execute_tool")}
    for span in named(trace, "middleware.decision"):
        assert span.tags["footprint.tool.call.id"] == calls[span.parent or ""]
    return (talk, agent, *sorted(calls.values()))
