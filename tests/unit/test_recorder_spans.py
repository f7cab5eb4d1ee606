"""A run as a tree of spans: what hangs where, and what each span says."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import (
    SpanKind,
    StatusCode,
)

from footprint_core import events as ev
from footprint_observe import semconv
from recorders.otel_spans import OtelSpans

RUN = "0" * 31 + "1"
E = TypeVar("E", bound=ev.Event)


def event(cls: type[E], time: int = 0, /, **known: Any) -> E:
    """An event; what is not said is blank, or None where it may be."""
    fields = {f.name: blank(f.type) for f in msgspec.structs.fields(cls) if f.required}
    return msgspec.convert({**fields, "run_id": RUN, "segment": 1, "time": time, **known}, cls)


def blank(annotation: Any) -> Any:
    origin = get_origin(annotation) or annotation
    if origin in {Union, types.UnionType}:
        inner = get_args(annotation)
        return None if type(None) in inner else blank(inner[0])
    return get_args(annotation)[0] if origin is Literal else origin()


def recorder(**options: Any) -> tuple[OtelSpans, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return OtelSpans(tracer_provider=provider, **options), exporter


def told(watcher: OtelSpans, events: Iterable[ev.Event]) -> None:
    for one in events:
        watcher.on_event(one)


def tree(spans: Iterable[ReadableSpan]) -> list[Any]:
    """The names as nested lists, by start."""
    ordered = sorted(spans, key=lambda s: (s.start_time or 0, -(s.end_time or 0)))

    def below(parent: int | None) -> list[Any]:
        mine = [s for s in ordered if (s.parent.span_id if s.parent else None) == parent]
        return [[s.name, *children] if (children := below(span_id(s))) else s.name for s in mine]

    return below(None)


def span_id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def named(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [s for s in exporter.get_finished_spans() if s.name == name]
    return found


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def decided(time: int, moment: str, rule: str, **known: Any) -> ev.DecisionFiled:
    at = "message" if moment in {"input", "output"} else "tool"
    call = {"tool_name": "refund", "tool_call_id": "c1"} if at == "tool" else {}
    base: dict[str, Any] = {"iteration": int(moment != "input"), "duration": 0.00001, "row": time}
    return event(ev.DecisionFiled, time, moment=moment, middleware=rule, at=at, **{**base, **call, **known})


def start(time: int = 1000, **known: Any) -> ev.AgentConfigured:
    fields = {"agent_name": "refunds", "provider": "anthropic", "model": "sonnet"}
    return event(ev.AgentConfigured, time, **{**fields, **known})


def model_call(time: int, iteration: int = 1, **known: Any) -> list[ev.Event]:
    usage = ev.TokenUsage(input=30, output=4)
    return [
        event(ev.SlotComposed, time, slot="messages", iteration=iteration),
        event(ev.IterationStarted, time, iteration=iteration),
        event(ev.ModelCallStarted, time, iteration=iteration, provider="anthropic", model="sonnet"),
        event(ev.TokenStreamed, time + 5, iteration=iteration),
        event(
            ev.ModelCallEnded,
            time + 90,
            **{"iteration": iteration, "usage": usage, "stop_reason": "tool_use", **known},
        ),
    ]


def tool_start(time: int, call: str = "c1", name: str = "refund", **known: Any) -> ev.ToolCallStarted:
    return event(ev.ToolCallStarted, time, tool_name=name, tool_call_id=call, **{"iteration": 1, **known})


def tool_end(time: int, call: str = "c1", name: str = "refund", **known: Any) -> ev.ToolCallEnded:
    fields: dict[str, Any] = {"tool_type": "function", "status": "ran", "executed": True, "iteration": 1}
    return event(ev.ToolCallEnded, time, tool_name=name, tool_call_id=call, **{**fields, **known})


def end(time: int, outcome: str = "answered", **known: Any) -> ev.TurnEnded:
    return event(ev.TurnEnded, time, outcome=outcome, **known)


def governed() -> list[ev.Event]:
    """One tool, and a rule at every moment."""
    return [
        start(1000, rules={"before-tool": [{"name": "ceiling", "version": "3"}]}),
        decided(1100, "input", "scrub", changed=True, redactions={"mask": 2, "drop": 1}),
        event(ev.TurnStarted, 1110),
        *model_call(1200),
        event(ev.RouteDecided, 1290, iteration=1, chosen="tool-calls"),
        tool_start(1300, tool_source="billing"),
        decided(1400, "before-tool", "ceiling", tool_source="billing"),
        decided(1500, "after-tool", "pii", changed=True),
        tool_end(1600, tool_source="billing", result_type="object", result_bytes=41, args_known_keys=2),
        event(ev.IterationFinished, 1610, iteration=1),
        *model_call(1700, 2, stop_reason="stop", response_id="msg_1", response_model="sonnet-4"),
        decided(1900, "output", "codenames", outcome="deny", iteration=2),
        end(2000, "denied", iteration_count=2, total_input_tokens=60, total_output_tokens=8),
    ]


def test_a_governed_run_is_one_tree() -> None:
    watcher, exporter = recorder()
    told(watcher, governed())
    assert tree(exporter.get_finished_spans()) == [
        [
            "invoke_agent refunds",
            "middleware.decision scrub",
            "chat sonnet",
            ["execute_tool refund", "middleware.decision ceiling", "middleware.decision pii"],
            "chat sonnet",
            "middleware.decision codenames",
        ]
    ]
    assert {s.kind for s in exporter.get_finished_spans() if s.name == "chat sonnet"} == {SpanKind.CLIENT}
    assert {s.status.status_code for s in exporter.get_finished_spans()} == {StatusCode.UNSET}


def test_the_agent_span_says_what_the_run_was_and_came_to() -> None:
    watcher, exporter = recorder()
    told(watcher, governed())
    span = named(exporter, "invoke_agent refunds")
    assert (span.start_time, span.end_time, span.kind) == (1_000_000, 2_000_000, SpanKind.INTERNAL)
    assert said(span) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "refunds",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "sonnet",
        "footprint.run.id": RUN,
        "footprint.segment": 1,
        "footprint.run.outcome": "denied",
        "footprint.iterations": 2,
        "footprint.decisions.allow": 3,
        "footprint.decisions.deny": 1,
        "footprint.decisions.ask": 0,
        "footprint.usage.total.input_tokens": 60,
        "footprint.usage.total.output_tokens": 8,
    }


def test_a_call_span_says_what_became_of_the_call() -> None:
    watcher, exporter = recorder()
    told(watcher, governed())
    span = named(exporter, "execute_tool refund")
    assert (span.start_time, span.end_time) == (1_300_000, 1_600_000)
    assert said(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "refunds",
        "gen_ai.tool.name": "refund",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "footprint.tool.source": "billing",
        "footprint.tool.executed": True,
        "footprint.tool.status": "ran",
        "footprint.outcome": "allow",
        "footprint.args.changed": False,
        "footprint.args.known_keys": 2,
        "footprint.args.unknown_keys": 0,
        "footprint.result.type": "object",
        "footprint.result.size": 41,
    }


def test_a_decision_span_is_as_long_as_its_rule_ran() -> None:
    watcher, exporter = recorder()
    told(watcher, governed())
    span = named(exporter, "middleware.decision ceiling")
    assert (span.start_time, span.end_time) == (1_390_000, 1_400_000)
    assert said(span) == {
        "gen_ai.agent.name": "refunds",
        "footprint.moment": "before-tool",
        "footprint.middleware": "ceiling",
        "footprint.outcome": "allow",
        "footprint.changed": False,
        "footprint.iteration": 1,
        "footprint.tool.name": "refund",
        "footprint.tool.source": "billing",
        "footprint.tool.call.id": "c1",
        "footprint.row": 1400,
        "footprint.version": "3",
        "openinference.span.kind": "GUARDRAIL",
    }
    assert said(named(exporter, "middleware.decision scrub"))["footprint.redactions"] == 3
    assert [n.name for n in named(exporter, "invoke_agent refunds").events] == ["footprint.redaction"]


def test_a_model_span_carries_the_usage_and_no_other_span_does() -> None:
    watcher, exporter = recorder()
    reply: dict[str, Any] = {
        "cache_read": 20,
        "cache_write": 5,
        "first_chunk": 0.25,
        "response_id": "r",
        "stop_reason": "stop",
    }
    told(watcher, [start(conversation_id="conv"), *model_call(1100, **reply), end(1300)])
    assert said(named(exporter, "chat sonnet")) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": "refunds",
        "gen_ai.conversation.id": "conv",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "sonnet",
        "gen_ai.response.id": "r",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_creation.input_tokens": 5,
    }
    agent = said(named(exporter, "invoke_agent refunds"))
    assert agent["gen_ai.conversation.id"] == "conv"
    assert not [name for name in agent if name.startswith("gen_ai.usage.")]


def test_every_attribute_has_its_name_from_the_table_and_every_span_the_agent() -> None:
    for decisions in ("spans", "notable", "events"):
        watcher, exporter = recorder(decisions=decisions)
        told(watcher, governed())
        known = set(semconv.NAMES.values())
        for span in exporter.get_finished_spans():
            assert span.name.split(" ")[0] in semconv.SPANS
            assert said(span).keys() <= known
            assert len(said(span)) < 64
            assert said(span)["gen_ai.agent.name"] == "refunds"
            assert {name for note in span.events for name in note.attributes or {}} <= known


def test_a_denied_call_is_no_error_and_names_its_rule() -> None:
    watcher, exporter = recorder()
    told(
        watcher,
        [
            start(),
            tool_start(1100),
            decided(1200, "before-tool", "ceiling", outcome="deny", answer="raised", error_class="KeyError"),
            tool_end(
                1300, status="denied", executed=False, decided_by_rule="ceiling", error_class="KeyError"
            ),
            end(1400),
        ],
    )
    call, rule = named(exporter, "execute_tool refund"), named(exporter, "middleware.decision ceiling")
    assert call.status.status_code is StatusCode.UNSET
    assert said(call)["footprint.tool.status"] == "denied"
    assert said(call)["footprint.tool.executed"] is False
    assert said(call)["footprint.outcome"] == "deny"
    assert said(call)["footprint.middleware"] == "ceiling"
    assert (rule.status.status_code, rule.status.description) == (StatusCode.ERROR, None)
    assert said(rule)["error.type"] == "KeyError"
    assert named(exporter, "invoke_agent refunds").status.status_code is StatusCode.UNSET


def test_what_raised_is_an_error_with_its_class_and_nothing_else() -> None:
    watcher, exporter = recorder()
    told(
        watcher,
        [
            start(),
            tool_start(1100),
            tool_end(1300, status="failed", error_class="OSError"),
            *model_call(1400, 2, error_class="APIError", usage=None, stop_reason=None),
            event(ev.FatalError, 1500, error_class="ProviderError", stage="model"),
            end(1600, "failed"),
        ],
    )
    expected = {"execute_tool refund": "OSError", "chat sonnet": "APIError"}
    for name, error in {**expected, "invoke_agent refunds": "ProviderError"}.items():
        span = named(exporter, name)
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert said(span)["error.type"] == error
    (note,) = named(exporter, "invoke_agent refunds").events
    assert (note.name, note.timestamp) == ("error.fatal", 1_500_000)


def test_a_cancelled_model_call_is_no_error() -> None:
    watcher, exporter = recorder()
    told(watcher, [start(), *model_call(1400, error_class="CancelledError"), end(1600, "cancelled")])
    assert {s.status.status_code for s in exporter.get_finished_spans()} == {StatusCode.UNSET}


def test_what_happens_inside_is_an_event_on_its_span() -> None:
    watcher, exporter = recorder()
    left = event(ev.ContextEvicted, 1150, slot="messages", reason="budget", sequence=4)
    later = msgspec.structs.replace(left, sequence=9)
    budget: dict[str, Any] = {
        "reason": "max-iterations",
        "limit": 1,
        "pending_tool_calls": 2,
        "action": "cut-short",
    }
    told(
        watcher,
        [
            start(),
            *(left, left, left, later),
            tool_start(1200),
            event(ev.ArgsInvalid, 1300, tool_call_id="c1", iteration=1, issues=2),
            tool_end(1300, status="invalid", executed=False),
            event(ev.BudgetSpent, 1400, **budget),
            event(ev.ObserverError, 1400, watcher="w", event="stream.token", error_class="KeyError"),
            end(1500),
        ],
    )
    agent = [
        (note.name, dict(note.attributes or {})) for note in named(exporter, "invoke_agent refunds").events
    ]
    window = {"footprint.window.slot": "messages", "footprint.window.reason": "budget"}
    assert agent[0] == (
        "context.evicted",
        {**window, "footprint.window.messages": 3, "footprint.iteration": 0},
    )
    assert agent[1][1]["footprint.window.messages"] == 1
    assert [name for name, _ in agent[2:]] == ["agent.budget_exhausted", "observer.error"]
    (note,) = named(exporter, "execute_tool refund").events
    assert (note.name, dict(note.attributes or {})) == (
        "validation.args_invalid",
        {"footprint.args.issues": 2},
    )


def test_notable_leaves_out_plain_allows_only() -> None:
    watcher, exporter = recorder(decisions="notable")
    told(watcher, governed())
    names = [s.name for s in exporter.get_finished_spans() if s.name.startswith("middleware")]
    assert names == ["middleware.decision scrub", "middleware.decision pii", "middleware.decision codenames"]
    assert said(named(exporter, "invoke_agent refunds"))["footprint.decisions.allow"] == 3


def test_decisions_as_events_stand_on_what_they_are_about() -> None:
    watcher, exporter = recorder(decisions="events")
    told(watcher, governed())
    assert not [s for s in exporter.get_finished_spans() if s.name.startswith("middleware")]
    notes = [n for n in named(exporter, "execute_tool refund").events if n.name == "middleware.decision"]
    assert [(dict(n.attributes or {}))["footprint.middleware"] for n in notes] == ["ceiling", "pii"]
    notes = [n for n in named(exporter, "invoke_agent refunds").events if n.name == "middleware.decision"]
    assert [(dict(n.attributes or {}))["footprint.row"] for n in notes] == [1100, 1900]


def test_a_shadow_decision_says_so_and_counts_for_nothing() -> None:
    watcher, exporter = recorder()
    shadow = decided(1200, "before-tool", "trial", outcome="deny", shadow=True)
    told(watcher, [start(), tool_start(1100), shadow, tool_end(1300), end(1400)])
    assert said(named(exporter, "middleware.decision trial"))["footprint.shadow"] is True
    assert "footprint.outcome" not in said(named(exporter, "execute_tool refund"))
    assert said(named(exporter, "invoke_agent refunds"))["footprint.decisions.deny"] == 0


def test_values_the_sdk_cannot_hold_are_made_fit() -> None:
    watcher, exporter = recorder()
    usage = ev.TokenUsage(input=2**70, output=-(2**70))
    reply: dict[str, Any] = {"usage": usage, "response_model": "m\ud800" + "x" * 300}
    told(watcher, [start(agent_name="\udfff" + "a" * 400), *model_call(1100, **reply), end(1300)])
    chat = said(named(exporter, "chat sonnet"))
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (2**63 - 1, -(2**63))
    assert chat["gen_ai.response.model"] == "m?" + "x" * 254
    assert chat["gen_ai.agent.name"] == "?" + "a" * 255
    assert all(len(s.name) <= 256 and s.name.encode() for s in exporter.get_finished_spans())
