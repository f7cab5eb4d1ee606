"""Events in the suite's words: which are compared, and in which fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from conformance.values import Json
from conformance.words import camel, stopped
from footprint_core.events import Event, TurnEnded

TURN_END: Final = "agent.turn_end"

COMPARED: Final[dict[str, tuple[str, ...]]] = {
    "agent.turn_start": (),
    "middleware.decision": (
        "middleware",
        "moment",
        "at",
        "phase",
        "toolName",
        "toolCallId",
        "iteration",
        "outcome",
        "changed",
    ),
    "context.evicted": ("slot", "reason"),
    "stream.llm_start": ("iteration", "messagesCount", "toolsCount"),
    "stream.token": ("iteration", "tokenIndex"),
    "stream.llm_end": ("iteration", "toolCallCount", "usage", "stopReason"),
    "agent.route_decided": ("iterIndex", "chosen"),
    "stream.tool_start": ("toolName", "toolCallId", "parallelCount"),
    "permission.check": ("capability", "target", "result", "policyRuleId"),
    "credential.requested": ("service",),
    "credential.acquired": ("service", "kind"),
    "stream.tool_end": ("toolCallId", "error"),
    "agent.iteration_end": ("iterIndex", "toolCallCount"),
    TURN_END: ("totalInputTokens", "totalOutputTokens", "iterationCount", "stoppedEarly"),
    "agent.output_schema_retry": ("attempt", "retriesRemaining", "iteration", "stage"),
}
"""The events that count, each with its fields; what is not named is text, or the product's own."""

_OF_CONTEXT: Final = frozenset({"context.slot_composed", "context.injected"})

_FAILED: Final = frozenset({"failed", "invalid", "unknown", "blocked"})


def expected_events(events: Sequence[Json]) -> list[Json]:
    """The events that count, in the fields that count. One nobody knows counts too: it never came."""
    return [
        {key: event[key] for key in ("type", *COMPARED.get(event["type"], ())) if key in event}
        for event in events
        if event["type"] not in _OF_CONTEXT
    ]


def seen_events(events: Sequence[Event]) -> list[Json]:
    """The same of what the product told its watchers, and the outcome of a turn's end."""
    return [_seen(event) for event in events if event.type in COMPARED]


def _seen(event: Event) -> Json:
    # A field that does not apply is None in the product, and absent here.
    told = {camel(key): value for key, value in msgspec.to_builtins(event).items() if value is not None}
    if "iteration" in told:
        told["iterIndex"] = told["iteration"]
    if told.get("status") in _FAILED:
        told["error"] = True
    out = {key: told[key] for key in COMPARED[event.type] if key in told}
    if isinstance(event, TurnEnded):
        out["turnOutcome"] = event.outcome
        if event.stopped_early is not None:
            out["stoppedEarly"] = stopped(event.stopped_early)
    return {"type": event.type, **out}
