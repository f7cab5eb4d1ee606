"""Segments, contexts and parents: pauses, parallel calls, interleaved runs, threads and providers."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from opentelemetry.context import get_current
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, ParentBased, Sampler, SamplingResult
from opentelemetry.trace import NoOpTracerProvider, StatusCode, get_current_span

from footprint_core import events as ev
from footprint_core.errors import RecorderError
from footprint_core.facts import TraceRef
from footprint_core.watch import Correlating, Enclosing, Recorder, Scope
from recorders import otel_open_segments
from recorders.otel_spans import OtelSpans
from traced import RUN, Traced, answered, asking, body, call, context, end, event, rule, start


def test_it_is_what_a_run_asks_of_a_recorder() -> None:
    watcher = OtelSpans(id="mine")
    assert watcher.id == "mine"
    assert isinstance(watcher, Correlating)
    assert isinstance(watcher, Enclosing)
    assert isinstance(watcher, Recorder)
    with pytest.raises(RecorderError, match="spans, notable, events"):
        OtelSpans(decisions=cast("Any", "all"))


def test_a_pause_ends_the_spans_and_the_resumed_segment_links_back() -> None:
    first, second = Traced(), Traced()
    first.tell(start(), call(1100, "c1", "refund"), rule(1200, "four-eyes", "c1", "refund", outcome="ask"))
    origin = first.watcher.correlation(RUN, 1)
    first.tell(asking(1300, "c1", "refund"), end(1400, "paused"))
    told = first.said("execute_tool refund")
    assert (told["footprint.tool.status"], told["footprint.tool.executed"]) == ("paused", False)
    assert (told["footprint.outcome"], told["footprint.middleware"]) == ("ask", "four-eyes")
    assert {s.status.status_code for s in first.exporter.get_finished_spans()} == {StatusCode.UNSET}
    assert [note.name for note in first.named("execute_tool refund").events] == ["pause.request"]
    agent = context(first.named("invoke_agent refunds"))
    assert origin == TraceRef(trace_id=f"{agent.trace_id:032x}", span_id=f"{agent.span_id:016x}")

    with second.tracer.start_as_current_span("the request of whoever answers"):
        second.tell(
            start(5000, segment=2, resumed=True, resumed_from=origin),
            event(ev.PauseResumed, 5100, segment=2, tool_name="refund", tool_call_id="c1", answer="approved"),
            rule(5200, "four-eyes", "c1", "refund", segment=2, answer="person"),
            answered(5300, "c1", "refund", segment=2),
            end(5400, segment=2),
        )
    resumed = second.named("invoke_agent refunds")
    assert resumed.parent is None
    assert context(resumed).trace_id != agent.trace_id
    (link,) = resumed.links
    assert (link.context.trace_id, link.context.span_id) == (agent.trace_id, agent.span_id)
    assert origin is not None
    told = second.said("invoke_agent refunds")
    assert (told["footprint.run.id"], told["footprint.segment"]) == (RUN, 2)
    assert told["footprint.resumed_from.trace_id"] == origin.trace_id
    assert told["footprint.resumed_from.span_id"] == origin.span_id
    again = second.named("execute_tool refund")
    assert (again.start_time, again.end_time) == (5_100_000, 5_300_000)
    assert second.parent("middleware.decision four-eyes") == "execute_tool refund"
    assert second.said("execute_tool refund")["footprint.tool.status"] == "ran"


def test_a_resumed_segment_opens_the_other_calls_of_its_batch_again() -> None:
    traced = Traced()
    model = event(ev.ModelCallStarted, 1500, iteration=2, model="sonnet", segment=2)
    traced.tell(
        start(1000, segment=2, resumed=True, resumed_from=TraceRef(trace_id="no hex", span_id="")),
        event(ev.PauseResumed, 1100, segment=2, tool_name="a", tool_call_id="c1"),
        rule(1200, "limit", "c2", "b", segment=2, duration=0.00005),
        answered(1300, "c1", "a", segment=2),
        answered(1400, "c2", "b", segment=2),
        model,
        rule(1600, "stray", "c1", "a", segment=2, iteration=2),
        end(1700, segment=2),
    )
    assert traced.named("invoke_agent refunds").links == ()
    assert traced.parent("middleware.decision limit") == "execute_tool b"
    assert traced.named("execute_tool b").start_time == 1_150_000
    assert traced.parent("middleware.decision stray") == "invoke_agent refunds"
    assert traced.parent("execute_tool a") == "invoke_agent refunds"


def test_parallel_calls_keep_their_own_decisions() -> None:
    traced = Traced()
    traced.tell(
        start(),
        call(1100, "c1", "a", parallel_count=2),
        call(1100, "c2", "b", parallel_count=2),
        rule(1200, "for-b", "c2", "b", outcome="deny"),
        rule(1210, "for-a", "c1", "a"),
        answered(1300, "c2", "b", status="denied", executed=False),
        answered(1400, "c1", "a"),
        call(1500, "c1", "a2", iteration=2),
        answered(1600, "c1", "a2", iteration=2),
        end(1700),
    )
    assert traced.parent("middleware.decision for-a") == "execute_tool a"
    assert traced.parent("middleware.decision for-b") == "execute_tool b"
    assert traced.said("execute_tool a")["footprint.outcome"] == "allow"
    assert traced.said("execute_tool b")["footprint.outcome"] == "deny"
    assert traced.named("execute_tool a2").start_time == 1_500_000


def test_interleaved_runs_never_swap_parents_and_leave_nothing_behind() -> None:
    traced = Traced()
    runs = [f"{number:032x}" for number in range(8)]
    gate = threading.Barrier(len(runs))

    def drive(run: str) -> None:
        gate.wait(10)
        for round_ in range(20):
            at: dict[str, Any] = {"run_id": run, "segment": round_}
            names = [f"{run}-{round_}-{number}" for number in range(5)]
            traced.tell(start(1000, agent_name=run, tools=names, **at))
            for number in range(5):
                traced.tell(call(1100, f"c{number}", f"{run}-{round_}-{number}", **at))
            for number in range(5):
                traced.tell(answered(1200, f"c{number}", f"{run}-{round_}-{number}", **at))
            traced.tell(end(1300, **at))

    with ThreadPoolExecutor(len(runs)) as pool:
        list(pool.map(drive, runs))
    spans = traced.spans
    roots = {context(s).span_id: s for s in spans if s.parent is None}
    assert len(roots) == 8 * 20
    assert len(spans) == 8 * 20 * 6
    for span in spans:
        if span.parent is not None:
            assert said_agent(roots[span.parent.span_id]) == span.name.split(" ")[1].split("-")[0]
    assert traced.watcher._segments.found == {}


def said_agent(span: ReadableSpan) -> Any:
    return (span.attributes or {})["gen_ai.agent.name"]


def test_the_span_of_the_application_is_the_parent() -> None:
    traced = Traced()
    with traced.tracer.start_as_current_span("request"):
        traced.tell(start())
    traced.tell(end(1100))
    assert traced.parent("invoke_agent refunds") == "request"


def test_what_a_tool_does_hangs_below_its_call() -> None:
    traced = Traced()
    traced.tell(start(), *(call(1100, f"c{n}", f"t{n}") for n in range(3)))

    async def in_a_task(number: int, barrier: asyncio.Barrier) -> None:
        with traced.watcher.enclose(body(f"c{number}")):
            await barrier.wait()
            with traced.tracer.start_as_current_span(f"task {number}"):
                await barrier.wait()
            await asyncio.to_thread(in_a_thread, number)
        assert not get_current_span().get_span_context().is_valid

    def in_a_thread(number: int) -> None:
        with traced.tracer.start_as_current_span(f"thread {number}"):
            pass

    async def all_of_them() -> None:
        barrier = asyncio.Barrier(3)
        await asyncio.gather(*(in_a_task(number, barrier) for number in range(3)))

    asyncio.run(all_of_them())
    traced.tell(*(answered(1200, f"c{n}", f"t{n}") for n in range(3)), end(1300))
    for number in range(3):
        assert traced.parent(f"task {number}") == f"execute_tool t{number}"
        assert traced.parent(f"thread {number}") == f"execute_tool t{number}"


def test_what_a_model_client_does_hangs_below_the_call_entered_in_a_bare_thread() -> None:
    traced = Traced()
    traced.tell(start(), event(ev.ModelCallStarted, 1100, iteration=1, model="sonnet"))

    def work() -> None:
        scope = Scope(kind="model", run_id=RUN, segment=1, iteration=1)
        with traced.watcher.enclose(scope), traced.tracer.start_as_current_span("POST"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    traced.tell(event(ev.ModelCallEnded, 1200, iteration=1), end(1300))
    assert traced.parent("POST") == "chat sonnet"


def test_what_runs_without_a_span_of_its_own_hangs_below_the_agent_and_an_unknown_run_below_nothing() -> None:
    traced = Traced()
    traced.tell(start())
    before = get_current()
    with traced.watcher.enclose(body("c9", run_id="nobody")):
        assert get_current() == before
    for number, scope in enumerate((body("c9"), Scope(kind="model", run_id=RUN, segment=1, iteration=7))):
        with traced.watcher.enclose(scope), traced.tracer.start_as_current_span(f"inside {number}"):
            pass
        assert get_current() == before
    traced.tell(end(1200))
    assert traced.parent("inside 0") == traced.parent("inside 1") == "invoke_agent refunds"
    with traced.watcher.enclose(body("c9")):
        assert get_current() == before


def test_what_is_not_sampled_breaks_nothing_and_samples_nothing_below() -> None:
    traced = Traced(sampler=ParentBased(ALWAYS_OFF))
    traced.tell(start(), call(1100, "c1", "a"), rule(1150, "r", "c1", "a"))
    assert traced.watcher.correlation(RUN, 1) is None
    with traced.watcher.enclose(body("c1")), traced.tracer.start_as_current_span("inside") as inside:
        assert not inside.is_recording()
    traced.tell(answered(1200, "c1", "a"), end(1300))
    assert traced.spans == ()
    assert traced.watcher.notices == ()


class RecordOnly(Sampler):
    """Records every span for processors of the process, and samples none for export."""

    def should_sample(self, *_: object, **__: object) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)

    def get_description(self) -> str:
        return "record only"


def test_rows_do_not_name_a_span_that_nobody_is_sent() -> None:
    traced = Traced(sampler=RecordOnly())
    traced.tell(start())
    assert traced.watcher.correlation(RUN, 1) is None


def test_a_provider_that_records_nothing_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    watcher = OtelSpans(tracer_provider=NoOpTracerProvider())
    application = Traced()
    with caplog.at_level(logging.WARNING, "footprint"), application.tracer.start_as_current_span("request"):
        for run in ("one", "two"):
            for one in (start(run_id=run), call(1100, "c1", "a", run_id=run), end(1200, run_id=run)):
                watcher.on_event(one)
            assert watcher.correlation(run, 1) is None
            with watcher.enclose(body("c1", run_id=run)):
                pass
    (notice,) = watcher.notices
    assert "records nothing" in notice
    assert [record.getMessage() for record in caplog.records] == [notice]
    assert (watcher.flush(1.0), watcher.dropped) == (True, 0)


def test_events_of_a_segment_that_was_not_begun_here_are_nothing() -> None:
    traced = Traced()
    traced.tell(call(1100, "c1", "a"), answered(1200, "c1", "a"), end(1300))
    assert traced.spans == ()


def test_runs_whose_end_is_never_told_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel_open_segments, "MAX_OPEN", 2)
    traced = Traced()
    for number in range(3):
        traced.tell(start(1000 + number, run_id=str(number)), call(2000, "c1", "a", run_id=str(number)))
    assert [traced.watcher.correlation(str(number), 1) is None for number in range(3)] == [True, False, False]
    assert traced.said("invoke_agent refunds")["footprint.run.id"] == "0"
    assert traced.named("execute_tool a").end_time == 2_000_000
    traced.watcher.close(1.0)
    traced.watcher.close(1.0)
    assert traced.watcher.correlation("2", 1) is None
    assert len(traced.spans) == 6


def test_a_call_left_open_by_a_failure_ends_with_its_segment() -> None:
    traced = Traced()
    traced.tell(
        start(), call(1100, "c1", "a"), event(ev.ModelCallStarted, 1150, iteration=2), end(1200, "failed")
    )
    span = traced.named("execute_tool a")
    assert span.end_time == 1_200_000
    assert "footprint.tool.status" not in (span.attributes or {})


def test_what_ran_before_the_pause_of_another_call_says_so() -> None:
    traced = Traced()
    traced.tell(start(), call(1100, "c1", "a"), call(1110, "c2", "b"), call(1120, "c3", "t0"))
    for call_id in ("c1", "c2"):
        with traced.watcher.enclose(body(call_id)):
            pass
    traced.tell(asking(1300, "c1", "a", kind="human", middleware=None), end(1400, "paused"))
    told = {name: traced.said(f"execute_tool {name}") for name in ("a", "b", "t0")}
    assert {one["footprint.tool.status"] for one in told.values()} == {"paused"}
    assert [one["footprint.tool.executed"] for one in told.values()] == [True, True, False]


def test_a_call_in_doubt_that_runs_again_is_named_when_its_name_is_told() -> None:
    traced = Traced()
    traced.tell(start(segment=2, resumed=True))
    with traced.watcher.enclose(body("c1", segment=2)), traced.tracer.start_as_current_span("its own"):
        pass
    later = event(ev.CredentialRequested, 1100, segment=2, tool_call_id="c2", service="bank")
    traced.tell(later, answered(1200, "c1", "a", segment=2), answered(1300, "c2", "b", segment=2))
    traced.tell(end(1400, segment=2))
    first, second = traced.named("execute_tool a"), traced.named("execute_tool b")
    assert [(s.start_time, s.end_time) for s in (first, second)] == [
        (1_000_000, 1_200_000),
        (1_100_000, 1_300_000),
    ]
    assert traced.parent("its own") == "execute_tool a"
    assert traced.said("execute_tool a")["gen_ai.tool.name"] == "a"
    assert traced.notes("execute_tool b") == [
        ("credential.requested", {"footprint.credential.service": "bank"})
    ]


def test_a_call_that_is_only_answered_in_a_segment_that_goes_on_has_a_span_there() -> None:
    traced = Traced()
    traced.tell(start(segment=2, resumed=True), answered(1200, "c1", "a", segment=2), end(1400, segment=2))
    span = traced.named("execute_tool a")
    assert (span.start_time, span.end_time) == (1_199_999, 1_200_000)
    assert traced.said("execute_tool a")["footprint.tool.status"] == "ran"


def test_behind_the_last_event_of_a_segment_there_is_none() -> None:
    traced = Traced()
    traced.tell(start(), call(1100, "c1", "a"))
    segment = traced.watcher._segments.found[RUN, 1]
    traced.watcher.close(1.0)
    traced.tell(call(1200, "c2", "b"), answered(1300, "c1", "a"), end(1400))
    # As it comes from a thread that had looked the segment up before it was closed.
    segment.take(call(1500, "c3", "t0"))
    segment.take(answered(1600, "c3", "t0"))
    segment.abandon()
    assert segment.span_of(body("c1")) is None
    assert traced.tree() == [["invoke_agent refunds", "execute_tool a"]]
    assert "footprint.run.outcome" not in traced.said("invoke_agent refunds")


@pytest.mark.parametrize(
    ("trace_id", "span_id"),
    [
        ("no hex", ""),
        ("0x" + "1" * 30, "1" * 16),
        ("0" * 32, "1" * 16),
        ("1" * 32, " " + "1" * 15),
        ("1_" * 16, "1" * 16),
    ],
)
def test_ids_from_outside_that_are_none_are_neither_linked_nor_told(trace_id: str, span_id: str) -> None:
    traced = Traced()
    origin = TraceRef(trace_id=trace_id, span_id=span_id)
    traced.tell(start(segment=2, resumed=True, resumed_from=origin), end(1200, segment=2))
    assert traced.named("invoke_agent refunds").links == ()
    assert "footprint.resumed_from.trace_id" not in traced.said("invoke_agent refunds")


def test_more_runs_than_are_kept_are_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otel_open_segments, "MAX_OPEN", 2)
    traced = Traced()
    for number in range(5):
        traced.tell(start(run_id=str(number)))
    (notice,) = traced.watcher.notices
    assert "open at once" in notice


def test_a_rule_that_ran_out_of_time_raised_nothing() -> None:
    traced = Traced()
    late = {"outcome": "deny", "answer": "timed-out", "error_class": "TimeoutError"}
    traced.tell(start(), call(1100, "c1", "a"), rule(1200, "slow", "c1", "a", **late), end(1300))
    span = traced.named("middleware.decision slow")
    assert span.status.status_code is StatusCode.UNSET
    assert "error.type" not in (span.attributes or {})
