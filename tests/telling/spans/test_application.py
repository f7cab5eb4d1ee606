"""The spans and the context of the application around a run, which stay its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry import baggage
from opentelemetry.context import Context, attach, create_key, detach, get_current, get_value, set_value
from opentelemetry.sdk.trace import Span, SpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    get_current_span,
    set_span_in_context,
    use_span,
)

from footprint_core import Agent, AskPause, ask, before_tool, check_in_approved
from footprint_core.providers import Scripted, call, reply
from story import answered, run
from traced import Traced, context, said

KEY = create_key("the application's own")


def agent(traced: Traced, seen: list[Any], **act: Any) -> Agent:
    async def look() -> str:
        """Look up."""
        seen.append((baggage.get_baggage("tenant"), get_value(KEY), get_current_span().get_span_context()))
        return "found"

    model = Scripted([reply(calls=[call("c1", "look", {})]), reply(text="done")])
    made = Agent.create(provider=model, model="m", name="refunds").tool(look).watch(traced.watcher)
    return made.act(**act).build() if act else made.build()


@pytest.mark.parametrize("sync", [True, False], ids=["run_sync", "run"])
def test_the_active_span_is_the_parent(sync: bool) -> None:
    traced = Traced()
    with traced.tracer.start_as_current_span("request"):
        made = agent(traced, [])
        answered(made.run_sync("go") if sync else run(made.run("go")))
    assert traced.tree() == [
        ["request", ["invoke_agent refunds", "chat m", "execute_tool look", "chat m"]],
    ]


def test_a_remote_parent_is_one() -> None:
    traced = Traced()
    remote = SpanContext(7, 9, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    with use_span(NonRecordingSpan(remote)):
        answered(run(agent(traced, []).run("go")))
    root = traced.named("invoke_agent refunds")
    assert root.parent is not None
    assert (root.parent.span_id, context(root).trace_id) == (9, 7)


@pytest.mark.parametrize("is_remote", [True, False])
def test_below_what_is_not_sampled_nothing_is(is_remote: bool) -> None:
    traced = Traced()
    seen: list[Any] = []
    with use_span(NonRecordingSpan(SpanContext(7, 9, is_remote=is_remote, trace_flags=TraceFlags(0)))):
        out = answered(run(agent(traced, seen).run("go")))
    assert traced.spans == ()
    # What the tool calls elsewhere is told so, too.
    ((_, _, inside),) = seen
    assert (inside.trace_id, inside.trace_flags.sampled) == (7, False)
    assert out.decisions == ()


def test_a_sampler_of_the_application_decides_by_the_parent() -> None:
    traced = Traced(sampler=ParentBased(ALWAYS_OFF, remote_parent_sampled=ALWAYS_ON))
    answered(run(agent(traced, []).run("go")))
    assert traced.spans == ()
    sampled = SpanContext(7, 9, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    with use_span(NonRecordingSpan(sampled)):
        answered(run(agent(traced, []).run("go")))
    assert len(traced.spans) == 4


@pytest.mark.parametrize("sync", [True, False], ids=["run_sync", "run"])
def test_baggage_and_whatever_else_the_context_holds_are_there_in_the_tool_and_behind_the_run(
    sync: bool,
) -> None:
    traced = Traced()
    seen: list[Any] = []
    token = attach(set_value(KEY, "kept", baggage.set_baggage("tenant", "acme")))
    before = get_current()
    try:
        made = agent(traced, seen)
        answered(made.run_sync("go") if sync else run(made.run("go")))
        assert get_current() is before
    finally:
        detach(token)
    ((tenant, own, inside),) = seen
    assert (tenant, own) == ("acme", "kept")
    assert inside.span_id == context(traced.named("execute_tool look")).span_id


class Tenants(SpanProcessor):
    """Copies baggage to every span that starts, as processors of other packages do."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attribute("tenant", str(baggage.get_baggage("tenant", parent_context)))


def test_a_resumed_run_is_a_trace_of_its_own_and_has_the_baggage_of_whoever_answers() -> None:
    traced = Traced()
    traced.provider.add_span_processor(Tenants())
    seen: list[Any] = []
    asks = before_tool("four-eyes")(lambda _: ask("Really?"))
    made = agent(traced, seen, before_tool=[asks])

    async def story() -> None:
        pause = await made.run("go")
        assert isinstance(pause, AskPause)
        around = set_span_in_context(traced.tracer.start_span("desk"), baggage.set_baggage("tenant", "acme"))
        token = attach(around)
        try:
            answered(await made.resume(pause.checkpoint, check_in_approved(by="dana@ops")))
        finally:
            detach(token)

    run(story())
    first, second = traced.all_named("invoke_agent refunds")
    assert second.parent is None
    assert context(first).trace_id != context(second).trace_id
    ((tenant, _, inside),) = seen
    assert (tenant, inside.trace_id) == ("acme", context(second).trace_id)
    again = [span for span in traced.spans if context(span).trace_id == context(second).trace_id]
    assert {said(span)["tenant"] for span in again} == {"acme"}


def test_tasks_of_the_application_that_outlive_a_call_keep_the_context_they_began_with() -> None:
    traced = Traced()
    left: list[asyncio.Task[None]] = []
    gate = asyncio.Event()

    async def later() -> None:
        await gate.wait()
        with traced.tracer.start_as_current_span("later"):
            pass

    async def starts() -> str:
        """Start something."""
        left.append(asyncio.create_task(later()))
        return "started"

    model = Scripted([reply(calls=[call("c1", "starts", {})]), reply(text="done")])
    made = Agent.create(provider=model, model="m", name="refunds").tool(starts).watch(traced.watcher).build()

    async def story() -> None:
        answered(await made.run("go"))
        gate.set()
        await asyncio.gather(*left)

    run(story())
    assert traced.parent("later") == "execute_tool starts"
