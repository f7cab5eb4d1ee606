"""New decisions as they are committed, by whatever process."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from typing import Unpack

from sqlite_utils import Database

from footprint_observe.query.database import last_id, reading
from footprint_observe.query.filters import Filters, Wanted, stretches, wanted
from footprint_observe.query.rows import DecisionRow, decision_record, rows
from footprint_observe.query.runs import meant
from footprint_observe.store.failures import is_busy

_AT_ONCE = 5000


def follow(
    path: str | os.PathLike[str],
    *,
    after_id: int | None = None,
    run: str | None = None,
    every: float = 0.2,
    **filters: Unpack[Filters],
) -> Generator[DecisionRow]:
    """Decisions as they are committed, in the order of the file; each once, none left out. It does not end.

    Ids ascend without gaps in the order of commits, so the last one that was seen is all there is to
    remember: hand it over as `after_id` to go on from it later. The file is open
    until the generator is closed.

    Args:
        path: The ledger file.
        after_id: Decisions behind this row; when absent those behind the newest there is, and with `since`
            all from that time on.
        run: Only this run: its id, the beginning of one, or `last`.
        every: Seconds between two looks at the file.
        filters: Which decisions; see `Filters`.

    Raises:
        QuestionError: A filter is none there is.
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    return _follow(path, after_id, run, every, wanted(filters))


def _follow(
    path: str | os.PathLike[str], seen: int | None, run: str | None, every: float, asked: Wanted
) -> Generator[DecisionRow]:
    with reading(path) as db:
        values = {**asked.values, "run": None if run is None else meant(db, run)}
        of_run = () if run is None else ("f.run_id = :run",)
        condition = asked.sql("f.id > :after", "f.id <= :last", "f.kind = 'decision'", *of_run)
        if seen is None:
            seen = _beginning(db, asked)
        while True:
            try:
                last = min(last_id(db), seen + _AT_ONCE)
                bounds = {**values, "after": seen, "last": last}
                # All of a part before any of it is handed out: whoever reads it may take an hour.
                found = list(map(decision_record, rows(db, f"{condition} ORDER BY f.id", bounds)))
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                last, found = seen, []
            yield from found
            if last < seen + _AT_ONCE:
                time.sleep(every)
            seen = max(seen, last)


def _beginning(db: Database, asked: Wanted) -> int:
    last = last_id(db)
    if asked.since_us is None:
        return last
    return min(after for after, _ in stretches(db, asked, last))
