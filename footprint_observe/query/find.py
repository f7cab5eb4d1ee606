"""Where a text stands in a ledger: every value is looked through, for there is no index over them.

Newest first, a few thousand rows at a time, so that it can be ended at any moment, needs little memory, and
never holds a reading transaction for long.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from typing import TypedDict, Unpack

from sqlite_utils import Database

from footprint_core import plain
from footprint_core.clock import iso
from footprint_core.plain import Json
from footprint_observe.query.database import last_id, query, reading, value_of
from footprint_observe.query.filters import Filters, Wanted, checked_limit, checked_text, wanted
from footprint_observe.query.refusals import QuestionError
from footprint_observe.query.runs import meant

_AT_ONCE = 5000
_BEFORE, _AFTER = 30, 60
# What a pause is checked with is left out: random digits, in which any short text turns up.
_VALUES = """
SELECT v.fact_id, v.field, v.json FROM {source}
WHERE {condition} AND v.field NOT IN ('salt', 'digest') ORDER BY {place} DESC, v.field
"""
_ALL = "vals AS v"
_SOME = "facts AS f CROSS JOIN vals AS v ON v.fact_id = f.id"
_FACT = "SELECT id, run_id, position, recorded_us, kind FROM facts WHERE id = :id"


class Found(TypedDict):
    """One place at which a text stands.

    Attributes:
        id: The row's place in the file.
        run_id: The run.
        position: The row's place in its run.
        recorded_at: When it was noted: ISO 8601, UTC.
        kind: What the row is about.
        field: Where in its values, as `args.items.2.card`.
        excerpt: The text with what stands around it.
    """

    id: int
    run_id: str
    position: int
    recorded_at: str
    kind: str
    field: str
    excerpt: str


def find(
    path: str | os.PathLike[str],
    text: str,
    *,
    run: str | None = None,
    limit: int = 20,
    looked_through: Callable[[int, int], object] | None = None,
    **filters: Unpack[Filters],
) -> Generator[Found]:
    """Where a text stands, whatever its case: in the texts, numbers and keys of all values, newest first.

    The file is open until the last of them is taken, or the generator closed.

    Args:
        path: The ledger file.
        text: The text.
        run: Only in this run: its id, the beginning of one, or `last`.
        limit: At most so many places.
        looked_through: Is told from time to time how many rows were looked through, and of how many.
        filters: In which rows; see `Filters`.

    Raises:
        QuestionError: There is no text, or a filter is none there is.
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    if not checked_text(text, "What is to be found"):
        raise QuestionError("There is no text to find; give one.")
    checked_limit(limit)
    return _find(path, _Needle(text), run, limit, looked_through, wanted(filters))


def _find(
    path: str | os.PathLike[str],
    needle: _Needle,
    run: str | None,
    limit: int,
    looked_through: Callable[[int, int], object] | None,
    asked: Wanted,
) -> Generator[Found]:
    left = limit
    with reading(path) as db:
        sql, values, last = _plan(db, run, asked)
        for upper in range(last, 0, -_AT_ONCE):
            bounds = {**values, "after": upper - _AT_ONCE, "last": upper}
            # All of a part before any of it is handed out: whoever reads it may take an hour.
            found = list(islice(_hits(db, db.conn.execute(sql, bounds), needle), left))
            yield from found
            left -= len(found)
            if looked_through is not None:
                looked_through(last - max(upper - _AT_ONCE, 0), last)
            if not left:
                return


def _plan(db: Database, run: str | None, asked: Wanted) -> tuple[str, dict[str, object], int]:
    """The query for one part of the values, its parameters but the bounds of the part, and the last place."""
    own: tuple[str, ...] = ()
    values = dict(asked.values)
    if run is not None:
        source, place, own = _SOME, "f.position", ("f.run_id = :run",)
        values["run"] = meant(db, run)
        (last,) = db.conn.execute("SELECT max(position) FROM facts WHERE run_id = :run", values).fetchone()
    else:
        # Without filters the values alone are read, in half the time.
        source, place = (_SOME, "f.id") if asked.conditions else (_ALL, "v.fact_id")
        last = last_id(db)
    condition = asked.sql(*own, f"{place} > :after", f"{place} <= :last")
    return _VALUES.format(source=source, condition=condition, place=place), values, last


class _Needle:
    """A text to find: in JSON as it is kept, to pass over what does not have it, and in a part of a value."""

    def __init__(self, text: str) -> None:
        self.shown = re.compile(re.escape(text), re.IGNORECASE)
        self._kept = re.compile(re.escape(plain.encode(text).decode()[1:-1]), re.IGNORECASE)

    def may_be_in(self, json: str) -> bool:
        """Whether JSON text may hold it."""
        return self._kept.search(json) is not None


def _hits(db: Database, values: Iterator[tuple[int, str, str]], needle: _Needle) -> Iterator[Found]:
    for fact_id, field, json in values:
        if not needle.may_be_in(json):
            continue
        places = [
            (path, _excerpt(text, match))
            for path, text in _parts(field, value_of(json))
            if (match := needle.shown.search(text)) is not None
        ]
        for fact in query(db, _FACT, {"id": fact_id}) if places else ():
            for path, excerpt in places:
                yield Found(
                    id=fact["id"],
                    run_id=fact["run_id"],
                    position=fact["position"],
                    recorded_at=iso(fact["recorded_us"]),
                    kind=fact["kind"],
                    field=path,
                    excerpt=excerpt,
                )


def _parts(field: str, value: Json) -> Iterator[tuple[str, str]]:
    """The keys, texts and numbers of a value, each with its path."""
    if plain.is_object(value):
        # What stands for a value that is kept in a row of its own.
        if value.keys() == {"..."}:
            return
        for key, item in value.items():
            yield f"{field}.{key}", key
            yield from _parts(f"{field}.{key}", item)
    elif plain.is_array(value):
        for at, item in enumerate(value):
            yield from _parts(f"{field}.{at}", item)
    elif value is not None:
        yield field, plain.rendered(value)


def _excerpt(text: str, match: re.Match[str]) -> str:
    start, stop = max(0, match.start() - _BEFORE), match.end() + _AFTER
    return ("…" if start else "") + text[start:stop] + ("…" if stop < len(text) else "")
