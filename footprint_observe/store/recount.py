"""The sums of decisions against the rows they are of, for `verify`."""

from __future__ import annotations

import sqlite3
from collections import Counter
from datetime import date, timedelta
from operator import itemgetter
from typing import cast

from footprint_observe.store.hashing import Columns
from footprint_observe.store.schema import HASHED_COLUMNS
from footprint_observe.store.totals import BLOCK, DAY_US, GROUP, LARGE

_KIND_AT = HASHED_COLUMNS.index("kind")
_group = itemgetter(*map(HASHED_COLUMNS.index, GROUP))
_TIME_AT = HASHED_COLUMNS.index("recorded_us")
_EPOCH = date(1970, 1, 1)
_SUMS = f"SELECT n, day, {', '.join(GROUP)} FROM decision_totals WHERE span = ? AND last_id = ?"  # noqa: S608 - constants

STRAY_SUMS = f"""
SELECT last_id FROM decision_totals
WHERE span NOT IN ({BLOCK}, {LARGE}) OR last_id % span <> 0 OR last_id < 1
  OR last_id > (SELECT max(id) FROM facts)
ORDER BY last_id LIMIT 1
"""  # noqa: S608 - constants
"""A query for the first sum that is of no block of the file."""


class Recount:
    """Counts the decisions of rows that come in order, and compares the sums of every full block."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._block: Counter[tuple[object, ...]] = Counter()
        self._large: Counter[tuple[object, ...]] = Counter()

    def check(self, row_id: int, columns: Columns) -> str | None:
        """Why a sum is not that of the rows up to this one; None when it is, or none is due."""
        if columns[_KIND_AT] == "decision":
            self._block[cast("int", columns[_TIME_AT]) // DAY_US, _group(columns)] += 1
        if row_id % BLOCK:
            return None
        self._large.update(self._block)
        fits = self._fits(BLOCK, row_id, self._block)
        self._block.clear()
        if fits and row_id % LARGE == 0:
            fits = self._fits(LARGE, row_id, self._large)
            self._large.clear()
        return None if fits else "The sums of decisions up to it are not those of the rows."

    def _fits(self, span: int, last_id: int, counted: Counter[tuple[object, ...]]) -> bool:
        expected = {
            (
                (_EPOCH + timedelta(days=cast("int", day))).isoformat(),
                *map(_or_empty, cast("Columns", group)),
            ): n
            for (day, group), n in counted.items()
        }
        return expected == {tuple(key): n for n, *key in self._connection.execute(_SUMS, (span, last_id))}


def _or_empty(value: str | int | None) -> str | int:
    return "" if value is None else value
