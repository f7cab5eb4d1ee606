"""What the file holds of a run, read back over a connection that can only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from footprint_core.decisions import Decision
from footprint_core.facts import Decided, TraceRef
from footprint_core.ledger import Entry, PauseStanding, RunStanding, decision_row
from footprint_observe.store import failures
from footprint_observe.store.codec import entry_of, unreadable

_ROWS = "SELECT * FROM facts WHERE run_id = :run ORDER BY position"
_DECISION_ROWS = "SELECT * FROM facts WHERE run_id = :run AND kind = 'decision' ORDER BY position"
_VALS = """
SELECT v.fact_id, v.field, v.json FROM facts AS f JOIN vals AS v ON v.fact_id = f.id
WHERE f.run_id = :run
"""
_DECISION_VALS = f"{_VALS} AND f.kind = 'decision'"
_STANDING = """
SELECT
  p.id, p.recorded_us,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = p.id AND v.field = 'digest') AS digest,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = p.id AND v.field = 'salt') AS salt,
  EXISTS (
    SELECT 1 FROM facts AS a
    -- The plus keeps the planner on the index of pauses; it would search the whole run otherwise.
    WHERE a.kind IN ('pause.answered', 'pause.closed') AND a.pause_id = p.pause_id AND +a.run_id = p.run_id
  ) OR EXISTS (
    SELECT 1 FROM facts AS e WHERE e.run_id = p.run_id AND e.position > p.position
    AND e.kind = 'run.abandoned'
  ) AS answered,
  l.position, l.segment
FROM facts AS p
JOIN facts AS l ON l.id = (SELECT id FROM facts WHERE run_id = p.run_id ORDER BY position DESC LIMIT 1)
WHERE p.kind = 'pause.opened' AND p.pause_id = :pause AND p.run_id = :run
"""

_LAST_ROW = """
SELECT position, segment, trace_id, span_id FROM facts WHERE run_id = :run ORDER BY position DESC LIMIT 1
"""

_decode_text = msgspec.json.Decoder(str).decode


def entries(connection: sqlite3.Connection, run_id: str) -> tuple[Entry, ...]:
    """The entries of a run as they are kept, in order and marked; none for a run the file does not have."""
    return tuple(entry for _, entry in _read(connection, run_id, _ROWS, _VALS))


def numbered(connection: sqlite3.Connection, run_id: str) -> Iterator[tuple[int, Entry]]:
    """The entries of a run as they are kept, each with its segment; each is read back when it is reached."""
    return ((row["segment"], entry) for row, entry in _read(connection, run_id, _ROWS, _VALS))


def decisions(connection: sqlite3.Connection, run_id: str) -> tuple[Decision, ...]:
    """The decision rows of a run, in order."""
    return tuple(
        decision_row(run_id, row["segment"], entry, entry.fact, entry.marks)
        for row, entry in _read(connection, run_id, _DECISION_ROWS, _DECISION_VALS)
        if isinstance(entry.fact, Decided)
    )


def pause_standing(connection: sqlite3.Connection, run_id: str, pause_id: str) -> PauseStanding | None:
    """What the file knows of a pause; None when it is not in it."""
    connection.row_factory = sqlite3.Row
    row = next(iter(fetched(connection, _STANDING, {"run": run_id, "pause": pause_id})), None)
    if row is None:
        return None
    return PauseStanding(
        position=row["position"],
        segment=row["segment"],
        answered=bool(row["answered"]),
        digest=_text(row["id"], row["digest"]),
        salt=_text(row["id"], row["salt"]),
        opened_us=row["recorded_us"],
    )


def _text(row_id: int, json: str | None) -> str | None:
    try:
        return None if json is None else _decode_text(json)
    except ValueError:
        pass
    raise unreadable(row_id)


def run_standing(connection: sqlite3.Connection, run_id: str) -> RunStanding | None:
    """Where a run ends; None for one the file does not have."""
    row = next(iter(fetched(connection, _LAST_ROW, {"run": run_id})), None)
    if row is None:
        return None
    position, segment, trace_id, span_id = row
    trace = None if trace_id is None else TraceRef(trace_id=trace_id, span_id=span_id)
    return RunStanding(position=position, segment=segment, trace=trace)


def _read(
    connection: sqlite3.Connection, run_id: str, rows: str, vals: str
) -> Iterator[tuple[sqlite3.Row, Entry]]:
    connection.row_factory = sqlite3.Row
    # One read transaction for both queries, or a row committed between them would come without values.
    connection.execute("BEGIN")
    try:
        found = fetched(connection, rows, {"run": run_id})
        held = fetched(connection, vals, {"run": run_id})
    finally:
        connection.execute("ROLLBACK")
    values: dict[int, dict[str, str]] = {}
    for value in held:
        values.setdefault(value["fact_id"], {})[value["field"]] = value["json"]
    for row in found:
        kept = values.get(row["id"], {})
        yield row, entry_of(dict(row), kept)


def fetched(connection: sqlite3.Connection, query: str, values: dict[str, str]) -> list[sqlite3.Row]:
    """All rows of a query.

    Raises:
        LedgerReadError: The database is damaged.
    """
    try:
        return connection.execute(query, values).fetchall()
    except sqlite3.Error as error:
        failure = failures.unreadable(error)
    # Raised out here: what was caught may quote a text it could not decode.
    raise failure
