"""How many decisions there were, by what a person asks for: days, rules, versions, moments, tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, Unpack, cast, get_args

from sqlite_utils import Database

from footprint_observe.query.database import Record, last_id, query, reading
from footprint_observe.query.filters import Filters, stretches, wanted
from footprint_observe.query.refusals import QuestionError
from footprint_observe.query.runs import meant
from footprint_observe.query.times import instant

By: TypeAlias = Literal["day", "rule", "version", "moment", "tool"]
"""What decisions are counted by."""

BY: tuple[By, ...] = get_args(By)
"""All of them."""

_COLUMNS: dict[By, str] = {
    "day": "day",
    "rule": "middleware",
    "version": "version",
    "moment": "moment",
    "tool": "tool_name",
}
# What the sums do not tell apart; with one of these the rows themselves are counted.
_UNSUMMED = ("source", "person", "changed")
_DAY = timedelta(days=1)
_COUNTED = "SELECT {columns}, count(*) AS n FROM facts AS f WHERE {condition} GROUP BY {places}"
_ADDED = "SELECT {columns}, sum(n) AS n FROM decisions_by_day WHERE {condition} GROUP BY {places}"
_DAY_OF_A_ROW = "strftime('%Y-%m-%d', f.recorded_us / 1000000, 'unixepoch') AS day"


def totals(
    path: str | os.PathLike[str],
    *,
    by: Sequence[By] = ("day", "rule"),
    run: str | None = None,
    **filters: Unpack[Filters],
) -> list[Record]:
    """Decisions counted: one record for each combination that there is, in the order of `by`.

    A record has the columns of the view `decisions_by_day` that it is counted by (`day`, `middleware`,
    `version`, `moment`, `tool_name`), `shadow`, and the numbers `allow`, `deny` and `ask`. Decisions that
    were only recorded are in records of their own: they refused nothing and asked nobody.

    Args:
        path: The ledger file.
        by: What they are counted by; days are those of UTC.
        run: Only this run: its id, the beginning of one, or `last`.
        filters: Which decisions; see `Filters`.

    Raises:
        QuestionError: A filter is none there is, or they cannot be counted by that.
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    if not isinstance(cast("object", by), list | tuple):
        raise QuestionError(f"Decisions are counted by a list of words; use {', '.join(BY)}.")
    unknown = [word for word in by if word not in BY]
    if unknown:
        raise QuestionError(f"Decisions are not counted by {unknown[0]!r}; use {', '.join(BY)}.")
    wanted(filters)
    with reading(path) as db:
        # One snapshot, or a decision that comes between two queries would be counted twice, or not at all.
        db.conn.execute("BEGIN")
        try:
            columns = [_COLUMNS[word] for word in by]
            return _arranged(_counts(db, run, filters, columns), columns)
        finally:
            db.conn.execute("ROLLBACK")


def _counts(db: Database, run: str | None, filters: Filters, columns: list[str]) -> Iterator[Record]:
    if run is not None:
        asked = wanted(filters)
        sql = _grouped(_COUNTED, columns, asked.sql("f.run_id = :run", "f.kind = 'decision'"))
        yield from query(db, sql, {**asked.values, "run": meant(db, run)})
    elif any(filters.get(name) is not None for name in _UNSUMMED):
        yield from _counted(db, filters, columns)
    else:
        yield from _summed(db, filters, columns)


def _summed(db: Database, filters: Filters, columns: list[str]) -> Iterator[Record]:
    """Whole days from their sums, and what is left of the first and the last day row by row."""
    since, until = (_bound(filters, name) for name in ("since", "until"))
    first = None if since is None else _midnight(since + _DAY - timedelta(microseconds=1))
    behind = None if until is None else _midnight(until)
    if first is not None and behind is not None and first >= behind:
        yield from _counted(db, filters, columns)
        return
    if since is not None and first is not None and since < first:
        yield from _counted(db, {**filters, "until": first}, columns)
    asked = wanted({**filters, "since": None, "until": None})
    values = dict(asked.values)
    conditions = list(asked.sums)
    for bound, condition in ((first, "day >= :first"), (behind, "day < :behind")):
        if bound is not None:
            conditions.append(condition)
            values[condition.rpartition(":")[2]] = bound.date().isoformat()
    yield from query(db, _grouped(_ADDED, columns, " AND ".join(conditions) or "1"), values)
    if until is not None and behind is not None and behind < until:
        yield from _counted(db, {**filters, "since": behind}, columns)


def _counted(db: Database, filters: Filters, columns: list[str]) -> Iterator[Record]:
    asked = wanted(filters)
    sql = _grouped(_COUNTED, columns, asked.sql("f.id > :after", "f.id <= :last", "f.kind = 'decision'"))
    for after, last in stretches(db, asked, last_id(db)):
        yield from query(db, sql, {**asked.values, "after": after, "last": last})


def _grouped(sql: str, columns: list[str], condition: str) -> str:
    """A query that counts by some columns, by outcome, and by whether it was only recorded."""
    names = [*columns, "outcome", "shadow"]
    shown = [_DAY_OF_A_ROW if name == "day" and sql is _COUNTED else name for name in names]
    # By their places, for a name can be that of a column and of what is made of it.
    places = ", ".join(str(place) for place in range(1, len(names) + 1))
    return sql.format(columns=", ".join(shown), condition=condition, places=places)


def _bound(filters: Filters, name: Literal["since", "until"]) -> datetime | None:
    given = filters.get(name)
    return None if given is None else instant(given, end=name == "until")


def _midnight(at: datetime) -> datetime:
    return datetime(at.year, at.month, at.day, tzinfo=UTC)


def _arranged(counts: Iterator[Record], columns: list[str]) -> list[Record]:
    found: dict[tuple[object, ...], Record] = {}
    for row in counts:
        key = (*(row[column] for column in columns), bool(row["shadow"]))
        if key not in found:
            found[key] = {
                **dict(zip((*columns, "shadow"), key, strict=True)),
                "allow": 0,
                "deny": 0,
                "ask": 0,
            }
        found[key][row["outcome"]] += row["n"]
    # A column that does not apply is None, which sorts with no text.
    return [found[key] for key in sorted(found, key=lambda key: [(part is not None, part) for part in key])]
