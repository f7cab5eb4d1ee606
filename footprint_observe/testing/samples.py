"""An event of every class with every field set, in the order a segment could tell them."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from footprint_core.events import (
    AgentConfigured,
    ArgsInvalid,
    BudgetPressure,
    BudgetSpent,
    CheckInDecided,
    CheckInRequested,
    ContextEvicted,
    ContextInjected,
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    DecisionFiled,
    Event,
    FatalError,
    FrozenDict,
    IterationFinished,
    IterationStarted,
    ModelCallEnded,
    ModelCallStarted,
    ObserverError,
    OutputRetried,
    OutputUnmet,
    PauseRequested,
    PauseResumed,
    PermissionAnswered,
    PermissionHalted,
    RouteDecided,
    SlotComposed,
    TokenStreamed,
    TokenUsage,
    ToolCallEnded,
    ToolCallStarted,
    ToolsOffered,
    TurnEnded,
    TurnStarted,
)
from footprint_core.facts import EarlyStop, RuleRef, TraceRef

_RUN = "0198c0de" * 4
_NOON = 1_767_268_800_000_000
_STEP = 1000


class _At(TypedDict):
    run_id: str
    segment: int
    sequence: int
    time: int


class _Call(TypedDict):
    tool_name: str
    tool_call_id: str


# Their place is given to them together.
_at: _At = {"run_id": _RUN, "segment": 2, "sequence": 0, "time": 0}
_call: _Call = {"tool_name": "issue_refund", "tool_call_id": "call-1"}


def sample_events(run_id: str = _RUN) -> tuple[Event, ...]:
    """One event of every class, with every field set; a millisecond lies between two of them.

    Args:
        run_id: The run they are told of.
    """
    events = (
        *_begun(),
        *_decided(),
        *_composed(),
        *_asked_model(),
        *_taken_call(),
        *_answered_call(),
        *_ended(),
    )
    return tuple(
        msgspec.structs.replace(event, run_id=run_id, sequence=place, time=_NOON + place * _STEP)
        for place, event in enumerate(events, 1)
    )


def _begun() -> tuple[Event, ...]:
    return (
        AgentConfigured(
            **_at,
            agent_id="refunds-1",
            agent_name="refunds",
            conversation_id="conversation-7",
            provider="scripted",
            model="model-1",
            window="sliding-window",
            rules=FrozenDict({"before-tool": (RuleRef(name="refund-ceiling", version="2"),)}),
            tools=("issue_refund",),
            streaming=True,
            resumed=True,
            resumed_from=TraceRef(trace_id="a" * 32, span_id="b" * 16),
        ),
        PauseResumed(**_at, **_call, pause_id="c" * 32, kind="check-in", answer="approved", paused=3600.5),
        CheckInDecided(**_at, **_call, iteration=1, approved=True),
    )


def _decided() -> tuple[Event, ...]:
    return (
        DecisionFiled(
            **_at,
            **_call,
            middleware="refund-ceiling",
            moment="before-tool",
            at="tool",
            phase="before-tool",
            tool_source="billing",
            iteration=1,
            outcome="deny",
            changed=True,
            shadow=True,
            answer="raised",
            error_class="KeyError",
            redactions=FrozenDict({"mask": 2}),
            row=4,
            duration=0.0025,
        ),
        TurnStarted(**_at, turn_index=1, message_chars=42),
    )


def _composed() -> tuple[Event, ...]:
    return (
        ContextEvicted(**_at, slot="messages", reason="budget", iteration=1),
        BudgetPressure(
            **_at,
            slot="messages",
            unit="tokens",
            cap=1000,
            projected=1200,
            overflow_by=200,
            plan_action="summarize",
            iteration=1,
        ),
        ContextInjected(**_at, slot="messages", pieces=1, iteration=1),
        SlotComposed(**_at, slot="messages", iteration=1, pieces=3, chars=420),
        ToolsOffered(**_at, iteration=1, offered=("issue_refund",), count=1),
    )


def _asked_model() -> tuple[Event, ...]:
    return (
        IterationStarted(**_at, iteration=1),
        ModelCallStarted(
            **_at,
            iteration=1,
            provider="scripted",
            model="model-1",
            server="localhost",
            messages_count=3,
            tools_count=1,
        ),
        TokenStreamed(**_at, iteration=1, token_index=0, chars=5),
        ModelCallEnded(
            **_at,
            iteration=1,
            tool_call_count=1,
            usage=TokenUsage(input=300, output=20),
            cache_read=100,
            cache_write=50,
            response_model="model-1b",
            response_id="response-9",
            first_chunk=0.125,
            stop_reason="tool_use",
            error_class="TimeoutError",
            duration=0.75,
        ),
        RouteDecided(**_at, iteration=1, chosen="tool-calls"),
    )


def _taken_call() -> tuple[Event, ...]:
    return (
        ToolCallStarted(**_at, **_call, tool_source="billing", iteration=1, parallel_count=2),
        PermissionAnswered(
            **_at,
            capability="tool_call",
            target="issue_refund",
            result="halt",
            policy_rule_id="P-7",
            checker="roles",
            tool_call_id="call-1",
            iteration=1,
        ),
        PermissionHalted(**_at, target="issue_refund", tool_call_id="call-1", iteration=1, checker="roles"),
        ArgsInvalid(**_at, **_call, iteration=1, issues=2),
        CheckInRequested(**_at, **_call, iteration=1),
        PauseRequested(**_at, **_call, pause_id="d" * 32, kind="ask", middleware="four-eyes", iteration=1),
    )


def _answered_call() -> tuple[Event, ...]:
    return (
        CredentialRequested(**_at, service="bank", tool_call_id="call-1"),
        CredentialAcquired(**_at, service="bank", kind="bearer", tool_call_id="call-1"),
        CredentialFailed(**_at, service="bank", error_class="KeyError", tool_call_id="call-1"),
        ToolCallEnded(
            **_at,
            **_call,
            tool_source="billing",
            tool_type="function",
            iteration=1,
            status="failed",
            executed=True,
            decided_by_rule="refund-ceiling",
            args_changed=True,
            args_known_keys=2,
            args_unknown_keys=1,
            result_type="object",
            result_bytes=64,
            error_class="LookupError",
            duration=0.25,
        ),
        IterationFinished(**_at, iteration=1, tool_call_count=1),
    )


def _ended() -> tuple[Event, ...]:
    return (
        OutputRetried(**_at, attempt=1, retries_remaining=1, iteration=2, stage="json-parse"),
        OutputUnmet(**_at, attempts=2, iteration=3, stage="schema-validate", broken_by="decorate"),
        BudgetSpent(
            **_at, reason="max-iterations", iteration=3, limit=3, pending_tool_calls=1, action="wrapped-up"
        ),
        FatalError(**_at, error_class="OSError", stage="dispatch", recorded=False),
        ObserverError(**_at, watcher="slow", error_class="KeyError", event="stream.token", count=1),
        TurnEnded(
            **_at,
            outcome="failed",
            iteration_count=3,
            total_input_tokens=900,
            total_output_tokens=60,
            duration=2.5,
            stopped_early=EarlyStop(
                reason="max-iterations", iteration=3, pending_tool_calls=1, wrapped_up=True
            ),
            recorded=False,
        ),
    )
