"""How many questions wait for a person, and how long the oldest has, as often as somebody asks."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass

from footprint_observe.query.database import last_id, query, reading
from footprint_observe.store import forked
from footprint_observe.store.connect import resolve

# The index of pauses alone says which were neither answered nor closed.
_ALL = """
  select p.id from facts as p
  where p.kind = 'pause.opened' and p.pause_id is not null and not exists (
    select 1 from facts as x where x.kind in ('pause.answered', 'pause.closed') and x.pause_id = p.pause_id
  )
"""
# By their ids and not by the index of pauses, which has all there ever were.
_SINCE = """
  select value as id from json_each(:known)
  union
  select p.id from facts as p not indexed where p.id > :last and p.kind = 'pause.opened'
"""
# The cross join makes SQLite begin with the candidates, and not with all pauses there ever were.
_OPEN = """
with candidates as materialized ({candidates})
select v.id, f.recorded_us, json_extract(f.extra, '$.expires_us') as expires_us
from candidates as c cross join pauses as v on v.id = c.id join facts as f on f.id = v.id
where v.open
"""


# Whoever collects, or forks, waits for it.
_PATIENCE_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The questions that wait.

    Attributes:
        count: How many there are; those that take no answer any more are none.
        oldest: How long the oldest of them has waited, in seconds; 0 when there is none.
    """

    count: int
    oldest: float


class Waiting:
    """The questions of one file that wait, counted again and again.

    The first count asks the index of pauses. Each further one looks at what was appended since and at the
    questions that were open, so that it costs the same in a file of any size.

    Args:
        path: The ledger file, which need not be there yet.

    Attributes:
        path: Where it is.

    Raises:
        LedgerOpenError: The path is not that of a file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = resolve(path)
        self._forget()

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None
        self._last = 0
        self._known: list[int] = []

    def count(self, now_us: int | None = None) -> Open:
        """How many questions wait.

        Args:
            now_us: What ages are counted to, microseconds since the Unix epoch; the present when absent.

        Raises:
            LedgerError: There is no ledger at that path, or it cannot be read.
        """
        now = time.time_ns() // 1000 if now_us is None else now_us
        # One at a time; and a fork waits for it, or the child could open no ledger any more.
        with forked.reading:
            opened = self._look(now)
        return Open(count=len(opened), oldest=max(0, now - min(opened, default=now)) / 1_000_000)

    def _look(self, now: int) -> list[int]:
        """Since when each question waits."""
        with reading(self.path, patience=_PATIENCE_SECONDS) as db:
            found = self.path.stat()
            newest = last_id(db)
            if self._file != (found.st_dev, found.st_ino) or newest < self._last:
                # Another file stands there than the last time.
                self._forget()
            first = self._file is None
            values = {} if first else {"known": json.dumps(self._known), "last": self._last}
            rows = query(db, _OPEN.format(candidates=_ALL if first else _SINCE), values)
            wait = [row for row in rows if row["expires_us"] is None or now <= row["expires_us"]]
        self._file, self._last = (found.st_dev, found.st_ino), newest
        self._known = [row["id"] for row in wait]
        return [row["recorded_us"] for row in wait]
