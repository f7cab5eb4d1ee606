"""The product's values in the suite's words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from conformance.messages import told
from conformance.values import Json
from footprint_core import (
    Answer,
    AskPause,
    CheckInPause,
    Decision,
    HumanPause,
    Outcome,
)
from footprint_core.facts import EarlyStop, Fact, OutputJudged, WindowVisited
from footprint_core.providers import ModelRequest


def camel(name: str) -> str:
    """`tool_call_id` as `toolCallId`."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


_NOT_IN_THE_SUITE: Final = frozenset(
    {
        "run_id",
        "segment",
        "position",
        "recorded_at",
        "tool_source",
        "duration",
        "redacted",
        "version",
        "decided_by",
        "after_approval",
        "imported",
        "shadow",
        "error_class",
        "detail",
    }
)
"""Fields of a row that only the product has."""


def row(decision: Decision) -> Json:
    """A decision row."""
    return {camel(key): value for key, value in decision.to_dict().items() if key not in _NOT_IN_THE_SUITE}


def outcome(given: Outcome) -> Json:
    """What a turn gave its caller."""
    if isinstance(given, Answer):
        return {"type": "text", "text": given.text}
    paused: Json = {"type": "paused", "toolName": given.tool_name, "toolCallId": given.tool_call_id}
    match given:
        case AskPause():
            asked = {"kind": "ask", "middleware": given.middleware, "question": given.question}
            detail = {} if given.detail is None else {"detail": given.detail}
            return {**paused, **asked, **detail}
        case CheckInPause():
            return {**paused, "kind": "check-in", "args": given.args}
        case HumanPause():
            return {**paused, "kind": "human", "data": given.data}


_FACTS_OF_ERRORS: Final = (
    "phase",
    "middleware",
    "reason",
    "iteration",
    "proposed",
    "checker_id",
    "gate",
    "tool_name",
    "tool_call_id",
    "provider",
)


def error(raised: Exception) -> Json:
    """An error a door raised, with the facts it carries."""
    found = {camel(name): getattr(raised, name, None) for name in _FACTS_OF_ERRORS}
    facts = {name: value for name, value in found.items() if value is not None}
    return {"type": "error", "kind": type(raised).__name__, "fields": facts, "message": str(raised)}


def request(asked: ModelRequest) -> Json:
    """A request to the model."""
    out: Json = {
        "tools": [offer.name for offer in asked.tools],
        "messages": [told(message) for message in asked.messages],
    }
    if asked.system:
        out["system"] = asked.system
    return out


def stopped(early: EarlyStop) -> Json:
    """Why a turn ended before the model was done."""
    out: Json = {
        "reason": early.reason,
        "iteration": early.iteration,
        "pendingToolCalls": early.pending_tool_calls,
    }
    if early.wrapped_up:
        out["wrappedUp"] = True
    return out


def windows(facts: Iterable[Fact]) -> list[Json]:
    """The window records of a run. One that refers to an earlier visit repeats its refusals."""
    visits = [fact for fact in facts if isinstance(fact, WindowVisited)]
    full = {visit.iteration: visit for visit in visits if visit.same_as is None}
    return [_window(visit, visit if visit.same_as is None else full[visit.same_as]) for visit in visits]


def _window(visit: WindowVisited, full: WindowVisited) -> Json:
    refusals = [
        {"reason": one.reason, "turnIndex": one.turn_index, "messageIndex": one.message_index}
        for one in full.refusals
    ]
    out: Json = {
        "strategy": visit.strategy,
        "iteration": visit.iteration,
        "removedMessageCount": visit.removed_messages,
        "refusals": refusals,
        **{camel(name): figure for name, figure in visit.figures.items()},
    }
    if visit.dropped_observations:
        out["droppedObservations"] = list(visit.dropped_observations)
    if full.refusals_more:
        # Taken away again by the comparison: a long list is cut, and the rest of it counted.
        out["refusalsMore"] = full.refusals_more
    return out


def attempts(facts: Iterable[Fact]) -> list[Json]:
    """How the answers of a run were judged by their schema."""
    return [_attempt(fact) for fact in facts if isinstance(fact, OutputJudged)]


def _attempt(judged: OutputJudged) -> Json:
    out: Json = {"attempt": judged.attempt, "iteration": judged.iteration, "outcome": judged.outcome}
    if judged.stage is not None:
        out["stage"] = judged.stage
        out["error"] = judged.error
    if judged.broken_by is not None:
        out["brokenBy"] = judged.broken_by
    return out
