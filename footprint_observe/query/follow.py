"""New decisions as they are committed, by whatever process."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Unpack

from sqlite_utils import Database

from footprint_core.errors import LedgerReadError
from footprint_observe.query.database import last_id, reading
from footprint_observe.query.filters import Filters, Wanted, stretches, wanted
from footprint_observe.query.refusals import QuestionError
from footprint_observe.query.rows import DecisionRow, decision_record, rows
from footprint_observe.query.runs import meant
from footprint_observe.store.connect import resolve
from footprint_observe.store.failures import is_busy

_AT_ONCE = 5000


def follow(
    path: str | os.PathLike[str],
    *,
    after_id: int | None = None,
    run: str | None = None,
    every: float = 0.2,
    looked: Callable[[], object] = lambda: None,
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
        looked: Is called behind every look; what it raises ends the following.
        filters: Which decisions; see `Filters`.

    Raises:
        QuestionError: A filter is none there is, or `after_id` is no number.
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, it cannot be read, or it was taken away meanwhile.
    """
    if after_id is not None and type(after_id) is not int:
        raise QuestionError("after_id is the id of a row, a whole number; give that.")
    return _follow(path, after_id, run, every, looked, wanted(filters))


def _follow(
    path: str | os.PathLike[str],
    seen: int | None,
    run: str | None,
    every: float,
    looked: Callable[[], object],
    asked: Wanted,
) -> Generator[DecisionRow]:
    with reading(path) as db:
        file = resolve(path)
        opened = _identity(file)
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
            looked()
            if opened is None or _identity(file) != opened:
                raise LedgerReadError(
                    "The ledger file was removed or replaced while it was followed; start again."
                )
            if last < seen + _AT_ONCE:
                time.sleep(every)
            seen = max(seen, last)


def _identity(file: Path) -> tuple[int, int] | None:
    """Which file a path names. What is appended to one that lost its name is in no ledger anybody opens."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _beginning(db: Database, asked: Wanted) -> int:
    last = last_id(db)
    if asked.since_us is None:
        return last
    return min(after for after, _ in stretches(db, asked, last))
