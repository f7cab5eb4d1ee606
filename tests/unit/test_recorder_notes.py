"""Events on spans: what happens inside one, where it stands, and how many there are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from footprint_core import events as ev
from footprint_observe import semconv
from traced import Traced, answered, asking, call, decided, end, event, governed, model_call, said, start


def test_what_happens_inside_is_an_event_on_its_span() -> None:
    traced = Traced()
    left = event(ev.ContextEvicted, 1150, slot="messages", reason="budget", sequence=4)
    later = msgspec.structs.replace(left, sequence=9)
    window: dict[str, Any] = {"cap": 100, "projected": 120, "overflow_by": 20, "plan_action": "evict"}
    pressure = event(ev.BudgetPressure, 1150, slot="messages", unit="tokens", sequence=9, **window)
    budget: dict[str, Any] = {
        "reason": "max-iterations",
        "limit": 1,
        "pending_tool_calls": 2,
        "action": "cut-short",
    }
    traced.tell(
        start(),
        *(left, left, left, later),
        pressure,
        *model_call(1160),
        call(1200),
        event(ev.ArgsInvalid, 1300, tool_call_id="c1", iteration=1, issues=2),
        answered(1300, status="invalid", executed=False),
        event(ev.BudgetSpent, 1400, **budget),
        event(ev.ObserverError, 1400, watcher="w", event="stream.token", error_class="KeyError"),
        end(1500),
    )
    agent = [(note.name, dict(note.attributes or {})) for note in traced.named("invoke_agent refunds").events]
    assert [name for name, _ in agent] == ["agent.budget_exhausted", "observer.error"]
    notes = [(note.name, dict(note.attributes or {})) for note in traced.named("chat sonnet").events]
    about = {"footprint.window.slot": "messages", "footprint.iteration": 0}
    left_together = {**about, "footprint.window.reason": "budget", "footprint.window.messages": 3}
    pressed = {
        **about,
        "footprint.window.unit": "tokens",
        "footprint.window.cap": 100,
        "footprint.window.projected": 120,
        "footprint.window.overflow_by": 20,
        "footprint.window.action": "evict",
    }
    assert notes == [
        ("context.evicted", left_together),
        ("context.evicted", {**left_together, "footprint.window.messages": 1}),
        ("context.budget_pressure", pressed),
    ]
    (note,) = traced.named("execute_tool refund").events
    assert (note.name, dict(note.attributes or {})) == (
        "validation.args_invalid",
        {"footprint.args.issues": 2},
    )


def test_decisions_as_events_stand_on_what_they_are_about() -> None:
    traced = Traced(decisions="events")
    traced.tell(*governed())
    assert not [s for s in traced.spans if s.name.startswith("middleware")]
    notes = [n for n in traced.named("execute_tool refund").events if n.name == "middleware.decision"]
    assert [(dict(n.attributes or {}))["footprint.middleware"] for n in notes] == ["ceiling", "pii"]
    notes = [n for n in traced.named("invoke_agent refunds").events if n.name == "middleware.decision"]
    assert [(dict(n.attributes or {}))["footprint.row"] for n in notes] == [1100, 1900]


def about(**known: Any) -> dict[str, Any]:
    """The call an event is about."""
    return {"tool_call_id": "c1", "iteration": 1, **known}


IN_A_CALL: list[tuple[ev.Event, dict[str, Any]]] = [
    (
        event(
            ev.PermissionAnswered,
            1200,
            **about(target="refund", result="deny", checker="roles", policy_rule_id="P-7"),
        ),
        {
            "footprint.permission.result": "deny",
            "footprint.permission.checker": "roles",
            "footprint.permission.policy_rule_id": "P-7",
        },
    ),
    (
        event(ev.PermissionHalted, 1200, **about(target="refund", checker="roles")),
        {"footprint.permission.checker": "roles"},
    ),
    (event(ev.ArgsInvalid, 1200, **about(tool_name="refund", issues=2)), {"footprint.args.issues": 2}),
    (event(ev.CheckInRequested, 1200, **about(tool_name="refund")), {}),
    (
        event(ev.CheckInDecided, 1200, **about(tool_name="refund", approved=False)),
        {"footprint.check_in.approved": False},
    ),
    (asking(1200), {"footprint.pause.kind": "ask", "footprint.middleware": "four-eyes"}),
    (
        event(ev.CredentialRequested, 1200, tool_call_id="c1", service="bank"),
        {"footprint.credential.service": "bank"},
    ),
    (
        event(ev.CredentialAcquired, 1200, tool_call_id="c1", service="bank", kind="bearer"),
        {"footprint.credential.service": "bank", "footprint.credential.kind": "bearer"},
    ),
    (
        event(ev.CredentialFailed, 1200, tool_call_id="c1", service="bank", error_class="OSError"),
        {"footprint.credential.service": "bank", "error.type": "OSError"},
    ),
]


@pytest.mark.parametrize(("told", "expected"), IN_A_CALL, ids=lambda one: getattr(one, "type", ""))
def test_what_happens_to_a_call_is_an_event_on_its_span(told: ev.Event, expected: dict[str, Any]) -> None:
    traced = Traced()
    traced.tell(start(), call(1100), call(1100, "c2", "a"), told, answered(1300), end(1400))
    assert traced.notes("execute_tool refund") == [(told.type, expected)]
    assert traced.named("execute_tool refund").events[0].timestamp == 1_200_000
    assert traced.notes("execute_tool a") == traced.notes("invoke_agent refunds") == []


IN_A_RUN: list[tuple[ev.Event, dict[str, Any]]] = [
    (
        event(ev.OutputRetried, 1200, attempt=1, retries_remaining=2, iteration=3, stage="json-parse"),
        {
            "footprint.output.attempt": 1,
            "footprint.output.retries_remaining": 2,
            "footprint.output.stage": "json-parse",
            "footprint.iteration": 3,
        },
    ),
    (
        event(ev.OutputUnmet, 1200, attempts=3, iteration=3, stage="schema-validate", broken_by="polish"),
        {
            "footprint.output.attempt": 3,
            "footprint.output.stage": "schema-validate",
            "footprint.output.broken_by": "polish",
            "footprint.iteration": 3,
        },
    ),
    (
        event(ev.FatalError, 1200, error_class="OSError", stage="model", recorded=False),
        {"error.type": "OSError", "footprint.stage": "model", "footprint.recorded": False},
    ),
]


@pytest.mark.parametrize(("told", "expected"), IN_A_RUN, ids=lambda one: getattr(one, "type", ""))
def test_what_happens_to_a_run_is_an_event_on_the_agent_span(
    told: ev.Event, expected: dict[str, Any]
) -> None:
    traced = Traced()
    traced.tell(start(), call(1100), told, answered(1300), end(1400))
    assert traced.notes("invoke_agent refunds") == [(told.type, expected)]


def test_every_event_is_on_a_span_or_makes_one_or_is_said_to_be_silent() -> None:
    spans = {
        *(ev.AgentConfigured, ev.TurnEnded, ev.ModelCallStarted, ev.ModelCallEnded),
        *(ev.ToolCallStarted, ev.ToolCallEnded, ev.DecisionFiled),
    }
    silent = {
        *(ev.ContextInjected, ev.SlotComposed, ev.ToolsOffered, ev.TokenStreamed),
        *(ev.IterationStarted, ev.IterationFinished, ev.RouteDecided, ev.TurnStarted),
    }
    for kind in ev.EVENTS.values():
        traced = Traced()
        traced.tell(start(), *model_call(1100), call(1200))
        if kind not in spans:
            traced.tell(event(kind, 1300))
        traced.tell(end(1400))
        told = {note.name for span in traced.spans for note in span.events}
        assert told == (set() if kind in silent | spans else {kind.type}), kind


def test_a_pause_says_for_how_long_a_person_was_waited_for() -> None:
    traced = Traced()
    answer: dict[str, Any] = {"kind": "ask", "answer": "approved", "paused": 12.5, "tool_call_id": "c1"}
    resumed = event(ev.PauseResumed, 1100, tool_name="refund", **answer)
    traced.tell(start(resumed=True), resumed, answered(1300), end(1400))
    assert traced.notes("execute_tool refund") == [
        (
            "pause.resume",
            {
                "footprint.pause.kind": "ask",
                "footprint.pause.answer": "approved",
                "footprint.pause.duration": 12.5,
            },
        )
    ]


def test_a_window_that_no_model_call_followed_stands_on_the_agent_span() -> None:
    traced = Traced()
    left = event(ev.ContextEvicted, 1100, slot="messages", reason="budget", iteration=1)
    traced.tell(start(), left, left, end(1200, "failed"))
    ((name, told),) = traced.notes("invoke_agent refunds")
    assert (name, told["footprint.window.messages"]) == ("context.evicted", 2)


def test_a_redaction_stands_on_what_was_decided_about() -> None:
    traced = Traced()
    redacted: dict[str, Any] = {"redactions": {"mask": 2, "drop": 1}}
    about_call = decided(1200, "before-tool", "scrub", **redacted)
    traced.tell(start(), decided(1050, "input", "scrub", **redacted), call(1100), about_call, end(1400))
    told = {"footprint.middleware": "scrub", "footprint.redactions": 3}
    assert traced.notes("execute_tool refund") == [
        ("footprint.redaction", {**told, "footprint.moment": "before-tool", "footprint.row": 1200})
    ]
    assert traced.notes("invoke_agent refunds") == [
        ("footprint.redaction", {**told, "footprint.moment": "input", "footprint.row": 1050})
    ]


def test_decisions_say_the_same_as_spans_and_as_events() -> None:
    of_a_span = {"gen_ai.agent.name", "openinference.span.kind"}
    spans, events = Traced(), Traced(decisions="events")
    for traced in (spans, events):
        traced.tell(*governed())
    decisions = [s for s in spans.spans if s.name.startswith("middleware.decision")]
    told = [
        (note.timestamp, dict(note.attributes or {}))
        for span in events.spans
        for note in span.events
        if note.name == "middleware.decision"
    ]
    expected = [
        (s.end_time, {name: fact for name, fact in said(s).items() if name not in of_a_span})
        for s in decisions
    ]
    assert sorted(told, key=str) == sorted(expected, key=str)


def test_the_first_events_of_a_long_span_stay_and_those_left_out_are_counted() -> None:
    traced = Traced(decisions="events")
    rules = [decided(1200 + n, "before-tool", f"rule {n}") for n in range(1_000)]
    traced.tell(start(), call(1100), *rules, answered(20_000), end(30_000))
    span = traced.named("execute_tool refund")
    assert (len(span.events), span.dropped_events) == (120, 0)
    assert said(span)[semconv.EVENTS_LEFT_OUT] == 880
    assert dict(span.events[0].attributes or {})["footprint.middleware"] == "rule 0"
    assert semconv.EVENTS_LEFT_OUT not in traced.said("invoke_agent refunds")
    assert traced.said("invoke_agent refunds")["footprint.decisions.allow"] == 1_000


def test_what_a_run_failed_of_is_told_however_long_it_was() -> None:
    traced = Traced()
    raised = [
        event(ev.ObserverError, 1100, watcher=f"w{n}", event="x", error_class="KeyError") for n in range(500)
    ]
    fatal = event(ev.FatalError, 1200, error_class="OSError", stage="model")
    traced.tell(start(), *raised, fatal, end(1300, "failed"))
    span = traced.named("invoke_agent refunds")
    assert span.events[-1].name == "error.fatal"
    assert (len(span.events), said(span)[semconv.EVENTS_LEFT_OUT]) == (121, 380)


def test_a_call_id_that_came_back_in_a_later_reply_is_another_call() -> None:
    traced = Traced()
    requested = event(ev.CredentialRequested, 1500, tool_call_id="c1", service="bank")
    traced.tell(start(), call(1100), answered(1200), call(1400, iteration=2), requested)
    traced.tell(answered(1600, iteration=2), end(1700))
    first, second = traced.all_named("execute_tool refund")
    assert ([n.name for n in first.events], [n.name for n in second.events]) == (
        [],
        ["credential.requested"],
    )


def test_a_watcher_attached_late_knows_no_span_to_put_an_event_on() -> None:
    traced = Traced()
    traced.tell(asking(1100), msgspec.structs.replace(asking(1200), segment=7), end(1300))
    assert traced.spans == ()
