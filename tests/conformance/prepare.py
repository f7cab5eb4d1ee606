"""Brings both sides of a kind into the form in which they have to be equal."""

from __future__ import annotations

from conformance.events import TURN_END, expected_events
from conformance.matching import ABSENT
from conformance.values import Json


def prepared(
    kind: str, expected: dict[str, Json], observed: dict[str, Json], remote: frozenset[str]
) -> tuple[Json, Json]:
    """The two sides of one kind of a step; an absent side is `ABSENT`.

    Args:
        kind: What is compared.
        expected: The expected step.
        observed: The observed step.
        remote: Names of the tools that came from a server.
    """
    if kind == "summarizerCalls":
        # Where there is no summarizer it was never asked.
        return expected.get(kind, 0), observed.get(kind, 0)
    one, other = expected.get(kind, ABSENT), observed.get(kind, ABSENT)
    if one is ABSENT or other is ABSENT:
        return one, other
    match kind:
        case "outcome":
            return _outcomes(one, other)
        case "events":
            return _events(one, other, expected["outcome"])
        case "toolExecutions":
            return _executions(one, other, remote)
        case "window":
            return _windows(one, other)
        case _:
            return one, other


def _outcomes(expected: Json, observed: Json) -> tuple[Json, Json]:
    if expected["type"] != "error" or observed["type"] != "error":
        return expected, observed
    # The product's errors may carry more than is asked for.
    fields = expected.get("fields", {})
    known = {name: value for name, value in observed["fields"].items() if name in fields}
    wanted = {**expected, "fields": _spelled(fields)}
    came = {key: value for key, value in observed.items() if key in wanted}
    return wanted, {**came, "fields": _spelled(known)}


def _spelled(fields: Json) -> Json:
    if "gate" not in fields:
        return fields
    return {**fields, "gate": fields["gate"].replace("-", "").replace("_", "").lower()}


def _events(expected: Json, observed: Json, outcome: Json) -> tuple[Json, Json]:
    wanted = expected_events(expected)
    came = [dict(event) for event in observed]
    if not any(event["type"] == TURN_END for event in wanted):
        # The product ends every segment with one, the suite only some.
        came = [event for event in came if event["type"] != TURN_END]
    ended = _turn_outcome(outcome)
    for event in wanted:
        if event["type"] == TURN_END and ended is not None:
            event["turnOutcome"] = ended
    if ended is None:
        for event in came:
            event.pop("turnOutcome", None)
    return wanted, came


def _turn_outcome(outcome: Json) -> str | None:
    if outcome["type"] == "text":
        return "answered"
    denied = (
        outcome.get("kind") == "MessageDeniedError" and outcome.get("fields", {}).get("phase") == "output"
    )
    return "denied" if denied else None


def _executions(expected: Json, observed: Json, remote: frozenset[str]) -> tuple[Json, Json]:
    wanted, came = [dict(entry) for entry in expected], [dict(entry) for entry in observed]
    for one, other in zip(wanted, came, strict=False):
        if one["tool"] in remote and ("toolCallId" not in one or "toolCallId" not in other):
            one.pop("toolCallId", None)
            other.pop("toolCallId", None)
    return wanted, came


def _windows(expected: Json, observed: Json) -> tuple[Json, Json]:
    wanted = [{key: value for key, value in record.items() if key != "observations"} for record in expected]
    came = [dict(record) for record in observed]
    for one, other in zip(wanted, came, strict=False):
        more = other.pop("refusalsMore", 0)
        if more and len(one["refusals"]) == len(other["refusals"]) + more:
            # A long list is cut and the rest counted.
            one["refusals"] = one["refusals"][: len(other["refusals"])]
    return wanted, came
