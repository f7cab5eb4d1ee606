"""What the file holds of a run, read back over a connection that can only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import msgspec

from footprint_core.decisions import Decision
from footprint_core.facts import Decided
from footprint_core.ledger import ERASED, Entry, Marks, PauseStanding, decision_row
from footprint_observe.store.codec import fact_of, marks_of

_ROWS = "SELECT * FROM facts WHERE run_id = :run ORDER BY position"
_DECISION_ROWS = "SELECT * FROM facts WHERE run_id = :run AND kind = 'decision' ORDER BY position"
_VALS = """
SELECT v.fact_id, v.field, v.json FROM facts AS f JOIN vals AS v ON v.fact_id = f.id
WHERE f.run_id = :run
"""
_DECISION_VALS = f"{_VALS} AND f.kind = 'decision'"
_STANDING = """
SELECT
  p.recorded_us,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = p.id AND v.field = 'digest') AS digest,
  (SELECT v.json FROM vals AS v WHERE v.fact_id = p.id AND v.field = 'salt') AS salt,
  EXISTS (
    SELECT 1 FROM facts AS a
    WHERE a.kind IN ('pause.answered', 'pause.closed') AND a.pause_id = p.pause_id AND a.run_id = p.run_id
  ) OR EXISTS (
    SELECT 1 FROM facts AS e WHERE e.run_id = p.run_id AND e.position > p.position
    AND e.kind = 'segment.ended' AND e.outcome = 'abandoned'
  ) AS answered,
  l.position, l.segment
FROM facts AS p
JOIN facts AS l ON l.id = (SELECT id FROM facts WHERE run_id = p.run_id ORDER BY position DESC LIMIT 1)
WHERE p.kind = 'pause.opened' AND p.pause_id = :pause AND p.run_id = :run
"""

_decode_commitments = msgspec.json.Decoder(dict[str, str]).decode
_decode_text = msgspec.json.Decoder(str).decode


def entries(connection: sqlite3.Connection, run_id: str) -> tuple[Entry, ...]:
    """The entries of a run as they are kept, in order and marked; none for a run the file does not have."""
    return tuple(entry for _, entry in _read(connection, run_id, _ROWS, _VALS))


def decisions(connection: sqlite3.Connection, run_id: str) -> tuple[Decision, ...]:
    """The decision rows of a run, in order."""
    return tuple(
        decision_row(run_id, row["segment"], entry, entry.fact, marks_of(row["redacted"]))
        for row, entry in _read(connection, run_id, _DECISION_ROWS, _DECISION_VALS)
        if isinstance(entry.fact, Decided)
    )


def pause_standing(connection: sqlite3.Connection, run_id: str, pause_id: str) -> PauseStanding | None:
    """What the file knows of a pause; None when it is not in it."""
    connection.row_factory = sqlite3.Row
    row = connection.execute(_STANDING, {"run": run_id, "pause": pause_id}).fetchone()
    if row is None:
        return None
    return PauseStanding(
        position=row["position"],
        segment=row["segment"],
        answered=bool(row["answered"]),
        digest=None if row["digest"] is None else _decode_text(row["digest"]),
        salt=None if row["salt"] is None else _decode_text(row["salt"]),
        opened_us=row["recorded_us"],
    )


def _read(
    connection: sqlite3.Connection, run_id: str, rows: str, vals: str
) -> Iterator[tuple[sqlite3.Row, Entry]]:
    connection.row_factory = sqlite3.Row
    # One read transaction for both queries, or a row committed between them would come without values.
    connection.execute("BEGIN")
    try:
        found: list[sqlite3.Row] = connection.execute(rows, {"run": run_id}).fetchall()
        values: dict[int, dict[str, str]] = {}
        for value in connection.execute(vals, {"run": run_id}):
            values.setdefault(value["fact_id"], {})[value["field"]] = value["json"]
    finally:
        connection.execute("ROLLBACK")
    for row in found:
        kept = values.get(row["id"], {})
        marks = (*marks_of(row["redacted"]), *_erased(row["commitments"], kept))
        fact = fact_of(dict(row), kept)
        yield row, Entry(position=row["position"], time=row["recorded_us"], fact=fact, marks=marks)


def _erased(commitments: str | None, kept: dict[str, str]) -> Marks:
    """The values a row commits to and the file does not have."""
    if commitments is None:
        return ()
    return tuple((field, ERASED) for field in _decode_commitments(commitments) if field not in kept)
