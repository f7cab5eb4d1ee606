"""The decision rows of a ledger, filtered as a person asks for them."""

from __future__ import annotations

import os
from typing import Unpack

from sqlite_utils import Database

from footprint_observe.query.database import last_id, reading
from footprint_observe.query.filters import Filters, Wanted, checked_limit, stretches, wanted
from footprint_observe.query.rows import DecisionRow, decision_record, rows
from footprint_observe.query.runs import meant

_NEWEST = 50


def decisions(
    path: str | os.PathLike[str],
    *,
    run: str | None = None,
    limit: int | None = None,
    **filters: Unpack[Filters],
) -> list[DecisionRow]:
    """The newest decisions that match every filter, oldest of them first.

    Args:
        path: The ledger file.
        run: Only this run: its id, the beginning of one, or `last`.
        limit: At most so many; when absent all of a run, and 50 of a file.
        filters: Which rows; see `Filters`.

    Raises:
        QuestionError: A filter is none there is, or the limit is no number from 1.
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    asked = wanted(filters)
    if limit is not None:
        checked_limit(limit)
    with reading(path) as db:
        if run is not None:
            found = _of_run(db, meant(db, run), asked, -1 if limit is None else limit)
        else:
            found = _newest(db, asked, _NEWEST if limit is None else limit)
    return found[::-1]


def _of_run(db: Database, run_id: str, asked: Wanted, limit: int) -> list[DecisionRow]:
    condition = asked.sql("f.run_id = :run", "f.kind = 'decision'")
    values = {**asked.values, "run": run_id, "limit": limit}
    found = rows(db, f"{condition} ORDER BY f.position DESC LIMIT :limit", values)
    return [decision_record(row) for row in found]


def _newest(db: Database, asked: Wanted, limit: int) -> list[DecisionRow]:
    found: list[DecisionRow] = []
    condition = asked.sql("f.id > :after", "f.id <= :last", "f.kind = 'decision'")
    for after, last in stretches(db, asked, last_id(db)):
        values = {**asked.values, "after": after, "last": last, "limit": limit - len(found)}
        found += map(decision_record, rows(db, f"{condition} order by f.id desc limit :limit", values))
        if len(found) == limit:
            break
    return found
