"""Rows of the file with their values, and as the records that questions are answered with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, cast

import msgspec
from sqlite_utils import Database

from footprint_core.clock import iso
from footprint_core.decisions import AnswerKind, Verdict
from footprint_core.facts import Decided
from footprint_core.ledger import Entry, decision_row
from footprint_core.moments import LoopMoment
from footprint_core.plain import Json, decode, encode
from footprint_observe.query.database import Record, query
from footprint_observe.store.codec import entry_of

_AT_ONCE = 500
_VALUES = "SELECT fact_id, field, json FROM vals WHERE fact_id IN (SELECT value FROM json_each(:ids))"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `facts` with its values.

    Attributes:
        id: Its place in the file.
        run_id: The run.
        segment: The segment of the run.
        trace_id: The trace of the segment, or None.
        span_id: The span of the segment, or None.
        entry: What was noted, with its position, its time, and what was taken out of it.
    """

    id: int
    run_id: str
    segment: int
    trace_id: str | None
    span_id: str | None
    entry: Entry


class DecisionRow(TypedDict):
    """A decision, with the columns of the view `decisions`; the values are JSON values, not JSON text.

    Attributes:
        id: The row's place in the file.
        run_id: The run, 32 hex characters.
        segment: The segment of the run, from 1.
        position: The row's place in its run, from 1.
        recorded_at: When it was decided: ISO 8601, UTC.
        moment: The moment.
        middleware: The rule.
        version: The rule's version, or None.
        outcome: allow, deny or ask.
        changed: Whether what went on differs from what came.
        answer: How the decision came about.
        why: The reason, or the question.
        before: What came, when it was changed.
        after: What went on, when it was changed.
        detail: What the rule gave with its question.
        decided_by: The person, for an answered question.
        tool_name: The tool, at the tool moments.
        tool_source: The server the tool came from.
        tool_call_id: The call, at the tool moments.
        iteration: The model call it belongs to, from 1; 0 at input.
        duration_us: The rule's own running time in microseconds; None when no rule ran.
        error_class: The class of what a rule raised.
        shadow: Whether it was only recorded.
        after_approval: Whether it changed args that a person had approved.
        imported: Whether another ledger filed it.
        redacted: Path and method of everything that was taken out.
        trace_id: The trace of its segment.
        span_id: The span of its segment.
    """

    id: int
    run_id: str
    segment: int
    position: int
    recorded_at: str
    moment: LoopMoment
    middleware: str
    version: str | None
    outcome: Verdict
    changed: bool
    answer: AnswerKind
    why: Json
    before: Json
    after: Json
    detail: Json
    decided_by: Json
    tool_name: str | None
    tool_source: str | None
    tool_call_id: str | None
    iteration: int
    duration_us: int | None
    error_class: str | None
    shadow: bool
    after_approval: bool
    imported: bool
    redacted: list[list[str]]
    trace_id: str | None
    span_id: str | None


def rows(db: Database, condition: str, values: Mapping[str, object]) -> Iterator[Row]:
    """The rows a query gives after `SELECT * FROM facts AS f WHERE`, with their values."""
    found = list(query(db, f"SELECT f.* FROM facts AS f WHERE {condition}", values))  # noqa: S608 - conditions are ours
    for at in range(0, len(found), _AT_ONCE):
        part = found[at : at + _AT_ONCE]
        kept = _values(db, [row["id"] for row in part])
        for row in part:
            yield _row(row, kept.get(row["id"], {}))


def _values(db: Database, ids: Sequence[int]) -> dict[int, dict[str, str]]:
    kept: dict[int, dict[str, str]] = {}
    for fact_id, field, json in db.conn.execute(_VALUES, {"ids": msgspec.json.encode(ids).decode()}):
        kept.setdefault(fact_id, {})[field] = json
    return kept


def _row(row: Record, kept: dict[str, str]) -> Row:
    return Row(
        id=row["id"],
        run_id=row["run_id"],
        segment=row["segment"],
        trace_id=row["trace_id"],
        span_id=row["span_id"],
        entry=entry_of(row, kept),
    )


def decision_record(row: Row) -> DecisionRow:
    """The record of a decision's row."""
    fact = row.entry.fact
    if not isinstance(fact, Decided):
        raise TypeError("Only the row of a decision is one.")
    decision = decision_row(row.run_id, row.segment, row.entry, fact, row.entry.marks)
    there: dict[str, Any] = {name: or_none(getattr(decision, name)) for name in _OF_A_DECISION}
    there |= {"id": row.id, "trace_id": row.trace_id, "span_id": row.span_id}
    there["redacted"] = [list(pair) for pair in decision.redacted]
    return cast("DecisionRow", {name: there[name] for name in DecisionRow.__annotations__})


_OF_A_DECISION = tuple(DecisionRow.__annotations__.keys() - {"id", "trace_id", "span_id", "redacted"})


def entry_record(row: Row) -> Record:
    """The record of any row: its place, and what was noted by name; a name that does not apply is absent."""
    # Through JSON, for its tuples are lists there, as in everything else that is read.
    said: Record = decode(encode(row.entry.fact))
    out: Record = {
        "id": row.id,
        "run_id": row.run_id,
        "segment": row.segment,
        "position": row.entry.position,
        "recorded_at": iso(row.entry.time),
        "kind": said.pop("kind"),
    }
    out |= {"tool_call_id" if name == "call_id" else name: value for name, value in said.items()}
    if row.entry.marks:
        out["redacted"] = [list(pair) for pair in row.entry.marks]
    return out


def or_none(value: Json) -> Json:
    """A value of a fact; None where there is none."""
    return None if value is msgspec.UNSET else value
