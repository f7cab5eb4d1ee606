"""The one place that writes rows: prepared batches are linked into their chains and inserted."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from footprint_core.errors import LedgerError, LedgerOpenError, LedgerWriteError
from footprint_observe.store import failures
from footprint_observe.store.forked import suspend_when_forking
from footprint_observe.store.hashing import FIRST, link
from footprint_observe.store.log import overwrite_log
from footprint_observe.store.prepare import Prepared
from footprint_observe.store.presence import OpenedFile
from footprint_observe.store.schema import HASHED_COLUMNS

Head: TypeAlias = tuple[int, bytes]
"""The last position of a run in the file, and the hash of that row."""

_INSERT_FACT = (
    f"INSERT INTO facts (id, {', '.join(HASHED_COLUMNS)}, prev_hash, hash) "  # noqa: S608 - constants
    f"VALUES ({', '.join('?' * (len(HASHED_COLUMNS) + 3))})"
)
_INSERT_VALUE = "INSERT INTO vals (fact_id, field, json, salt) VALUES (?, ?, ?, ?)"
_HEAD = "SELECT position, hash FROM facts WHERE run_id = ? ORDER BY position DESC LIMIT 1"
_EXISTS = "SELECT 1 FROM facts WHERE run_id = ? AND position BETWEEN ? AND ? LIMIT 1"
_LAST_ID = "SELECT ifnull(max(id), 0) FROM facts"
_MAX_HEADS = 4096
_FRAMES = 256 * 1024


class Appender:
    """Appends over one connection, one transaction at a time.

    Args:
        opens: Gives the connection, from `open_writer`; asked again after a fork.
        file: The file that is appended to, which is looked at before every append.

    Raises:
        LedgerOpenError: The file cannot be opened.
    """

    def __init__(self, opens: Callable[[], sqlite3.Connection], file: OpenedFile) -> None:
        self._opens = opens
        self._file = file
        self._lock = threading.Lock()
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._closed = False
        self._connection: sqlite3.Connection | None = opens()
        suspend_when_forking(self)

    def now(self, batch: Prepared) -> bool:
        """Append one batch without waiting; False when a lock is held, and nothing was done then.

        Raises:
            LedgerError: The append failed; nothing of the batch is in the file.
        """
        if not self._lock.acquire(blocking=False):
            return False
        heads: dict[str, Head] = {}
        try:
            connection = self._opened()
            if not _begin(connection, 0.0):
                return False
            self._file.check()
            self._insert(connection, batch, heads)
            _commit(connection)
        except LedgerError as error:
            failure = error
        except sqlite3.Error as error:
            self._undo()
            failure = self._refused(batch, error)
        else:
            self._remember(heads)
            return True
        finally:
            self._undo()
            self._lock.release()
        raise failures.about(failure, batch.run_id, batch.segment)

    def together(self, batches: Sequence[Prepared], busy_timeout: float) -> list[LedgerError | None]:
        """Append batches in one transaction, waiting for the lock; a batch that fails fails alone.

        Args:
            batches: In the order they were queued.
            busy_timeout: Seconds to wait for another process.

        Returns:
            For each batch what became of it, None when it is in the file.
        """
        with self._lock:
            heads: dict[str, Head] = {}
            try:
                connection = self._opened()
                if not _begin(connection, busy_timeout):
                    return [failures.locked_too_long(busy_timeout) for _ in batches]
                self._file.check()
                outcomes = [self._within(connection, batch, heads) for batch in batches]
                _commit(connection)
            except LedgerError as error:
                return [LedgerWriteError(str(error)) for _ in batches]
            except sqlite3.Error as error:
                return [failures.unwritable(error) for _ in batches]
            else:
                self._remember(heads)
                return outcomes
            finally:
                self._undo()

    def close(self) -> None:
        """Close the connection for good, after the append that runs."""
        self.suspend()
        # An append that was about to begin in another thread must not open the file again.
        self._closed = True
        self.resume()

    def suspend(self) -> None:
        """Close the connection, after the append that runs, and let none begin until `resume`."""
        self._lock.acquire()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def resume(self) -> None:
        """Let appends begin again; the next one opens the file."""
        self._lock.release()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._closed:
                raise failures.closed()
            # Before it is opened, for a file that is gone would be made again.
            self._file.check()
            try:
                self._connection = self._opens()
            except LedgerOpenError as error:
                raise LedgerWriteError(str(error)) from None
        return self._connection

    def _within(
        self, connection: sqlite3.Connection, batch: Prepared, heads: dict[str, Head]
    ) -> LedgerError | None:
        connection.execute("SAVEPOINT batch")
        try:
            self._insert(connection, batch, heads)
        except (sqlite3.Error, LedgerError) as error:
            if not connection.in_transaction:
                # A full disk ends the whole transaction; there is no savepoint to go back to.
                raise
            connection.execute("ROLLBACK TO batch")
            connection.execute("RELEASE batch")
            return error if isinstance(error, LedgerError) else self._refused(batch, error)
        connection.execute("RELEASE batch")
        return None

    def _insert(self, connection: sqlite3.Connection, batch: Prepared, heads: dict[str, Head]) -> None:
        """Insert the rows of a batch and put the new head of its run into `heads`."""
        position, before = self._head(connection, batch, heads)
        (last_id,) = connection.execute(_LAST_ID).fetchone()
        facts: list[tuple[object, ...]] = []
        values: list[tuple[object, ...]] = []
        for row_id, row in enumerate(batch.rows, last_id + 1):
            after = link(before, row.document)
            facts.append((row_id, *row.columns, before, after))
            values += [(row_id, *value) for value in row.values]
            before = after
        connection.executemany(_INSERT_FACT, facts)
        if values:
            connection.executemany(_INSERT_VALUE, values)
        heads[batch.run_id] = (position + len(facts), before)

    def _head(self, connection: sqlite3.Connection, batch: Prepared, heads: dict[str, Head]) -> Head:
        """The head the batch stands on.

        Raises:
            RunTakenOverError: The batch does not follow what the file has of its run.
        """
        follows = batch.first - 1
        head = heads.get(batch.run_id) or self._heads.get(batch.run_id)
        if head is None or head[0] != follows:
            # A head that does not fit may only be old: what counts is the file, under the lock.
            head = connection.execute(_HEAD, (batch.run_id,)).fetchone() or (follows, FIRST)
        if head[0] != follows:
            raise failures.taken_over()
        return head

    def _refused(self, batch: Prepared, error: sqlite3.Error) -> LedgerError:
        """What an insert failed on: a position that exists means that somebody else continued the run."""
        self._heads.pop(batch.run_id, None)
        if isinstance(error, sqlite3.IntegrityError) and self._connection is not None:
            last = batch.first + len(batch.rows) - 1
            with suppress(sqlite3.Error):
                # The batch is rolled back by now, or its own rows would be found here.
                if self._connection.execute(_EXISTS, (batch.run_id, batch.first, last)).fetchone():
                    return failures.taken_over()
        return failures.unwritable(error)

    def _undo(self) -> None:
        # Does nothing after a commit. On a full disk this fails too; the error before it is the one to tell.
        with suppress(sqlite3.Error):
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _remember(self, heads: dict[str, Head]) -> None:
        known = self._heads
        for run_id, head in heads.items():
            known[run_id] = head
            known.move_to_end(run_id)
        while len(known) > _MAX_HEADS:
            known.popitem(last=False)


def _begin(connection: sqlite3.Connection, wait: float) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not failures.is_busy(error):
            raise
        return wait > 0 and _begin_after(connection, wait)
    return True


def _begin_after(connection: sqlite3.Connection, wait: float) -> bool:
    connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
    try:
        return _begin(connection, 0.0)
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        with suppress(sqlite3.Error):
            # A commit whose sync failed has left its frames in the log, where a recovery after a crash
            # would find and believe them. A frame that is overwritten invalidates all behind it.
            overwrite_log(connection, _FRAMES)
        raise
