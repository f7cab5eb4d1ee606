"""Whether a file is still what was appended to it: every hash and every commitment, computed anew.

Behind the rows, the tables, indexes, triggers and views are compared with those this release makes.

Rows are read in order and in chunks, each in a short read of its own, so that no writer waits and the log can
be emptied meanwhile: rows are never rewritten, so the chunks fit. What it remembers is bounded, too.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Literal, TypeAlias, final

import msgspec

from footprint_observe.store import failures
from footprint_observe.store.connect import open_reader, resolve
from footprint_observe.store.hashing import FIRST, Columns, document, link
from footprint_observe.store.objects import altered
from footprint_observe.store.recount import STRAY_SUMS, Recount
from footprint_observe.store.revalue import Revalue
from footprint_observe.store.schema import HASHED_COLUMNS

Level: TypeAlias = Literal[1, 2]
"""1: the chain of every run; 2: the values and the sums, too."""

Progress: TypeAlias = Callable[[int, int], object]
"""Is told how many rows were checked, and how many there are to check."""

_CHUNK = 2048
_MAX_HEADS = 65_536
_AT = {column: at for at, column in enumerate(HASHED_COLUMNS)}
_RUN_AT, _POSITION_AT, _COMMITMENTS_AT = _AT["run_id"], _AT["position"], _AT["commitments"]
_ROW = f"SELECT id, prev_hash, hash, {', '.join(HASHED_COLUMNS)} FROM facts"  # noqa: S608 - constants
_HEAD = "SELECT position, hash FROM facts WHERE run_id = ? AND id < ? ORDER BY position DESC LIMIT 1"
_NEXT_RUN = "SELECT run_id FROM facts WHERE run_id > ? ORDER BY run_id LIMIT 1"
_ANY_ID = 2**63 - 1
_STRAY_VALUE = """
SELECT fact_id FROM vals
WHERE fact_id < 1 OR (fact_id > :last AND NOT EXISTS (SELECT 1 FROM facts WHERE id = fact_id))
ORDER BY fact_id LIMIT 1
"""
_STRAYS = (
    ("SELECT id FROM facts WHERE id < 1 LIMIT 1", "It stands before the first row."),
    (_STRAY_VALUE, "The file has a value of it, and not the row."),
    (STRAY_SUMS, "The file has a sum up to it that no rows give."),
)


@final
class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """Every row follows.

    Attributes:
        rows: How many rows were checked; of a whole file, those with the ids from 1 to this.
        runs: How many runs they are of.
        values: How many values were checked; 0 at level 1.
        erased: How many values rows commit to that are not in the file any more; 0 at level 1. Nothing in
            this release takes a value out, so nothing on record says who did.
        first_erased: The first row, by id, that commits to such a value; None where there is none.
    """

    rows: int
    runs: int
    values: int
    erased: int
    first_erased: int | None = None


@final
class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """The first row that does not follow, or what is wrong with the schema of a file whose rows all follow.

    Attributes:
        row: Its id; None for the schema: a table, an index, a trigger or a view is not that of this release.
        run_id: Its run; None for the schema, and for a value or a sum of a row the file does not have.
        position: Its position in the run, or None.
        why: What does not follow, in one sentence that tells no value.
    """

    row: int | None
    run_id: str | None
    position: int | None
    why: str


def verify(
    path: str | os.PathLike[str],
    run_id: str | None = None,
    *,
    level: Level = 2,
    progress: Progress | None = None,
) -> Verified | Fault:
    """Check a ledger file, or one run of it, without writing to it.

    Rows that are appended meanwhile are not checked. Of one run, neither the rows of others between its own
    nor the sums over all runs are looked at. Rows that are missing at the end of a run, or of the file, leave
    no trace in it; what tells is a hash that is kept elsewhere (see `heads`).

    Args:
        path: The file.
        run_id: The run; None for all. A run the file does not have is one of no rows.
        level: How much.
        progress: Told after every chunk.

    Returns:
        What was checked, or the first row, by id, that does not follow. When all do, what is wrong with the
        tables, indexes, triggers and views, of whatever run: who reads one, reads through them.

    Raises:
        LedgerOpenError: The file is no ledger this release reads.
        LedgerReadError: The database itself is damaged.
    """
    with closing(open_reader(resolve(path))) as connection:
        try:
            found = _Walk(connection, run_id, level).all(progress)
            return found if isinstance(found, Fault) else _schema(connection) or found
        except sqlite3.Error as error:
            fault = _lacking(connection, error)
            if fault is not None:
                return fault
            failure = failures.unreadable(error)
    raise failure


def _schema(connection: sqlite3.Connection) -> Fault | None:
    why = altered(connection)
    return None if why is None else Fault(row=None, run_id=None, position=None, why=why)


def _lacking(connection: sqlite3.Connection, error: sqlite3.Error) -> Fault | None:
    """What the schema lacks, when that is why the rows could not be read."""
    if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR:
        return None
    return _schema(connection)


@final
class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The last row of a run: who has kept its hash sees whether rows behind or before it are missing.

    Attributes:
        run_id: The run.
        position: The row's position.
        hash: Its hash, 64 hex characters.
    """

    run_id: str
    position: int
    hash: str


def heads(path: str | os.PathLike[str], run_id: str | None = None) -> Iterator[Head]:
    """The heads of all runs of a file, by run id, or of one run.

    Raises:
        LedgerOpenError: The file is no ledger this release reads.
        LedgerReadError: The database itself is damaged.
    """
    with closing(open_reader(resolve(path))) as connection:
        found = (run_id,) if run_id is not None else _one(connection, _NEXT_RUN, "")
        while found is not None:
            head = _one(connection, _HEAD, found[0], _ANY_ID)
            if head is not None:
                yield Head(run_id=found[0], position=head[0], hash=head[1].hex())
            found = None if run_id is not None else _one(connection, _NEXT_RUN, found[0])


def _one(connection: sqlite3.Connection, query: str, *values: object) -> tuple[Any, ...] | None:
    try:
        row: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
    except sqlite3.Error as error:
        failure = failures.unreadable(error)
    else:
        return row
    raise failure


class _Walk:
    """One walk over the rows of a file by id, or of a run by position."""

    def __init__(self, connection: sqlite3.Connection, run_id: str | None, level: Level) -> None:
        self._connection = connection
        self._run = run_id
        place = "id" if run_id is None else "position"
        mine = "" if run_id is None else "run_id = :run AND "
        self._rows = f"{_ROW} WHERE {mine}{place} > :after AND {place} <= :upto ORDER BY {place}"
        self._next = f"{_ROW} WHERE {mine}{place} > :after ORDER BY {place} LIMIT 1"
        self._last = f"SELECT ifnull(max({place}), 0) FROM facts WHERE {mine}1"  # noqa: S608 - constants
        self._values = Revalue(connection, run_id) if level > 1 else None
        self._sums = Recount(connection) if level > 1 and run_id is None else None
        self._heads: dict[str, tuple[int, bytes]] = {}
        self._runs = 0
        self._done = 0
        self._last_id = 0

    def all(self, progress: Progress | None) -> Verified | Fault:
        (last,) = self._connection.execute(self._last, {"run": self._run}).fetchone()
        while self._done < last:
            upto = min(self._done + _CHUNK, last)
            try:
                fault = self._chunk(upto)
            except sqlite3.OperationalError as error:
                if getattr(error, "sqlite_errorcode", None) is not None:
                    raise
                # A text that is no UTF-8 any more. Read like this, it is one that cannot be hashed.
                self._connection.text_factory = _as_it_is
                fault = self._chunk(upto)
            if fault is not None:
                return fault
            if progress is not None:
                progress(self._done, last)
        fault = self._stray() if self._run is None else None
        if fault is not None:
            return fault
        values = self._values
        return Verified(
            rows=self._done,
            runs=self._runs,
            values=0 if values is None else values.checked,
            erased=0 if values is None else values.erased,
            first_erased=None if values is None else values.first_erased,
        )

    def _chunk(self, upto: int) -> Fault | None:
        places = {"run": self._run, "after": self._done, "upto": upto}
        values, sums, whole = self._values, self._sums, self._run is None
        if values is not None:
            values.read(self._done, upto)
        row: tuple[Any, ...]
        for row in self._connection.execute(self._rows, places):
            row_id, prev_hash, kept_hash = row[:3]
            columns = row[3:]
            if (row_id if whole else columns[_POSITION_AT]) != self._done + 1:
                return self._gap()
            why = self._follows(row_id, prev_hash, kept_hash, columns)
            if why is None and values is not None:
                why = values.check(row_id, columns[_COMMITMENTS_AT])
            if why is None and sums is not None:
                why = sums.check(row_id, columns)
            if why is not None:
                return _fault(row_id, columns, why)
            self._done += 1
            self._last_id = row_id
        return None if self._done == upto else self._gap()

    def _follows(
        self, row_id: int, prev_hash: object, kept_hash: object, columns: tuple[Any, ...]
    ) -> str | None:
        """Why a row does not follow in the chain of its run; when it does, it is the new head."""
        run_id, position = columns[_RUN_AT], columns[_POSITION_AT]
        try:
            before, expected = self._heads.get(run_id) or self._head(run_id, position, row_id)
            if position != before + 1:
                return f"It has position {position} in its run, behind a row with position {before}."
            if row_id < self._last_id:
                return "It stands before the row of its run that it is behind."
            if prev_hash != expected:
                return "The hash it holds of the row before it in its run is not that row's hash."
            digest = link(expected, document(columns))
        except (ValueError, TypeError):
            return "It holds what no row is written with."
        if kept_hash != digest:
            return "Its hash is not that of its columns."
        if before == 0:
            self._runs += 1
        if len(self._heads) >= _MAX_HEADS:
            self._heads.clear()
        self._heads[run_id] = (before + 1, digest)
        return None

    def _head(self, run_id: str, position: object, row_id: int) -> tuple[int, bytes]:
        """The head of a run that is not remembered: it has none yet, or the rows up to it were checked."""
        if position == 1:
            return (0, FIRST)
        last = self._connection.execute(_HEAD, (run_id, row_id)).fetchone()
        return (0, FIRST) if last is None else last

    def _gap(self) -> Fault:
        """The row behind a place that no row has."""
        place = {"run": self._run, "after": self._done}
        row_id, _, _, *columns = self._connection.execute(self._next, place).fetchone()
        what = "row" if self._run is None else "position"
        return _fault(row_id, tuple(columns), f"The {what} {self._done + 1} before it is missing.")

    def _stray(self) -> Fault | None:
        """What the file has of rows that no walk meets."""
        for query, why in _STRAYS if self._sums is not None else _STRAYS[:1]:
            found = self._connection.execute(query, {"last": self._done}).fetchone()
            if found is not None:
                return Fault(row=found[0], run_id=None, position=None, why=why)
        return None


def _fault(row_id: int, columns: Columns, why: str) -> Fault:
    run_id, position = columns[_RUN_AT], columns[_POSITION_AT]
    return Fault(
        row=row_id,
        run_id=run_id if isinstance(run_id, str) and run_id.isprintable() else None,
        position=position if isinstance(position, int) else None,
        why=why,
    )


def _as_it_is(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
