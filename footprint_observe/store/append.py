"""The one place that writes rows: prepared batches are linked into their chains and inserted."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from footprint_core.errors import LedgerError, LedgerOpenError, LedgerWriteError
from footprint_observe.store import failures, pauses
from footprint_observe.store.forked import suspend_when_forking
from footprint_observe.store.hashing import FIRST, link
from footprint_observe.store.log import Log, overwrite_log
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
# For None and for bytes `sqlite3` looks for an adapter at every binding, which costs a microsecond, and a row
# has a dozen of them. SQLite stores NaN as NULL (sqlite.org/floatingpoint.html), and a bytearray as a BLOB.
_NULL = math.nan
_MAX_HEADS = 4096
_FRAMES = 256 * 1024

# Seconds between two looks at a lock that another process holds.
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02)

SLOW_SECONDS = 0.01
"""An append that took longer would have held up an event loop noticeably."""


class Appender:
    """Appends over one connection, one transaction at a time.

    Args:
        opens: Gives the connection, from `open_writer`; asked by `open`, and by the first append without one.
        file: The file that is appended to, which is looked at before every append.
        log: The log beside it, which is kept short.
    """

    def __init__(self, opens: Callable[[], sqlite3.Connection], file: OpenedFile, log: Log) -> None:
        self._opens = opens
        self._file = file
        self._log = log
        self._seconds = 0.0
        self._refused_frames = False
        self._lock = threading.Lock()
        self._heads: OrderedDict[str, Head] = OrderedDict()
        self._closed = False
        self._connection: sqlite3.Connection | None = None
        suspend_when_forking(self)

    def open(self) -> None:
        """Open the file before there is anything to append; it is made when there is none.

        Raises:
            LedgerOpenError: It cannot be opened.
        """
        with self._lock:
            self._connection = self._opens()

    @property
    def prompt(self) -> bool:
        """Whether the next append may run on an event loop.

        It may when the file is open, for opening it may wait, the last append was fast and the log is short.
        """
        return self._connection is not None and self._seconds <= SLOW_SECONDS and not self._log.is_long

    def now(self, batch: Prepared) -> bool:
        """Append one batch without waiting; False when a lock is held, and nothing was done then.

        Raises:
            LedgerError: The append failed; nothing of the batch is in the file.
        """
        if self._lock.locked():
            return False
        # An exception of a signal handler can part acquire() from its finally, and a `with` it cannot. Who
        # takes the lock in between keeps it for no longer than a commit.
        with self._lock:
            began = time.perf_counter()
            try:
                connection = self._opened()
                if not _begin(connection):
                    return False
                self._file.check()
                heads = self._insert(connection, (batch,), {})
                self._commit(connection)
                self._done(heads, began)
            except LedgerError as error:
                self._undo()
                failure = error
            except sqlite3.Error as error:
                self._undo()
                failure = self._refused(batch, error)
            except BaseException:
                self._undo()
                raise
            else:
                return True
        raise failures.about(failure, batch.run_id, batch.segment)

    def together(self, batches: Sequence[Prepared], busy_timeout: float) -> list[LedgerError | None]:
        """Append batches in one transaction, waiting for the lock; a batch that fails fails alone.

        Args:
            batches: In the order they were queued.
            busy_timeout: Seconds to wait for another process.

        Returns:
            For each batch what became of it, None when it is in the file.
        """
        deadline, naps = time.monotonic() + busy_timeout, iter(_PAUSES)
        while (found := self._at_once(batches)) is None:
            if time.monotonic() >= deadline:
                return [failures.locked_too_long(busy_timeout) for _ in batches]
            # Not while the lock of this process is held: a fork would wait too.
            time.sleep(next(naps, _PAUSES[-1]))
        if isinstance(found, list):
            return found
        if len(batches) == 1:
            return [failures.unwritable(found)]
        # A full disk ends the whole transaction. One large batch must not fail those that fit.
        return [self.together((batch,), busy_timeout)[0] for batch in batches]

    def _at_once(self, batches: Sequence[Prepared]) -> list[LedgerError | None] | sqlite3.Error | None:
        """The outcomes; None when another process holds the lock, and an error when the disk is full.

        Nothing is kept then.
        """
        with self._lock:
            outcomes: list[LedgerError | None] = [None] * len(batches)
            began = time.perf_counter()
            try:
                connection = self._opened()
                if not _begin(connection):
                    return None
                self._file.check()
                found = self._all(connection, batches)
                heads: dict[str, Head] = found or {}
                if found is None:
                    if not _begin(connection):
                        return None
                    outcomes = [self._within(connection, batch, heads) for batch in batches]
                self._commit(connection)
            except LedgerError as error:
                return [LedgerWriteError(str(error)) for _ in batches]
            except sqlite3.Error as error:
                self._doubt(error)
                if failures.is_full(error):
                    return error
                return [failures.unwritable(error) for _ in batches]
            else:
                self._done(heads, began)
                self._log.shorten(connection)
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
        self._let_go()

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
        # What was interrupted by a signal between two statements is not gone on with.
        self._undo()
        return self._connection

    def _all(self, connection: sqlite3.Connection, batches: Sequence[Prepared]) -> dict[str, Head] | None:
        """Insert all batches at once; None when one of them fails, and the transaction is over then.

        Without a savepoint: inside one, SQLite writes each page a row changes to a temporary file, each time.
        """
        try:
            return self._insert(connection, batches, {})
        except LedgerError:
            pass
        except sqlite3.Error as error:
            if failures.is_about_the_file(error) or failures.is_full(error):
                raise
        self._undo()
        return None

    def _within(
        self, connection: sqlite3.Connection, batch: Prepared, heads: dict[str, Head]
    ) -> LedgerError | None:
        connection.execute("SAVEPOINT batch")
        try:
            heads.update(self._insert(connection, (batch,), heads))
        except (sqlite3.Error, LedgerError) as error:
            if not connection.in_transaction or failures.is_about_the_file(error):
                # A full disk ends the whole transaction; there is no savepoint to go back to.
                raise
            connection.execute("ROLLBACK TO batch")
            connection.execute("RELEASE batch")
            return error if isinstance(error, LedgerError) else self._refused(batch, error)
        connection.execute("RELEASE batch")
        return None

    def _insert(
        self, connection: sqlite3.Connection, batches: Sequence[Prepared], before: dict[str, Head]
    ) -> dict[str, Head]:
        """Insert the rows of batches; the new heads of their runs. `before` has heads of this transaction."""
        (row_id,) = connection.execute(_LAST_ID).fetchone()
        facts: list[tuple[object, ...]] = []
        values: list[tuple[object, ...]] = []
        heads: dict[str, Head] = {}
        for batch in batches:
            position, head = self._head(
                connection, batch, heads.get(batch.run_id) or before.get(batch.run_id)
            )
            for row in batch.rows:
                row_id += 1
                after = link(head, row.document)
                columns = [_NULL if column is None else column for column in row.columns]
                facts.append((row_id, *columns, bytearray(head), bytearray(after)))
                for field, json, salt in row.values:
                    values.append((row_id, field, json, bytearray(salt)))
                head = after
            heads[batch.run_id] = (position + len(batch.rows), head)
        connection.executemany(_INSERT_FACT, facts)
        if values:
            connection.executemany(_INSERT_VALUE, values)
        for batch in batches:
            if batch.bodies is not None:
                pauses.write(connection, batch.run_id, batch.bodies)
        return heads

    def _head(self, connection: sqlite3.Connection, batch: Prepared, head: Head | None) -> Head:
        """The head the batch stands on; `head` is that of a batch before it in this transaction.

        Raises:
            RunTakenOverError: The batch does not follow what the file has of its run.
            LedgerWriteError: The file has nothing of its run, and the batch does not begin it.
        """
        follows = batch.first - 1
        known = head or self._heads.get(batch.run_id)
        if known is not None and known[0] == follows:
            return known
        # A head that does not fit may only be old: what counts is the file, under the lock.
        found: Head | None = connection.execute(_HEAD, (batch.run_id,)).fetchone()
        if found is None and follows:
            raise failures.unknown_run()
        found = found or (0, FIRST)
        if found[0] != follows:
            raise failures.taken_over()
        return found

    def _refused(self, batch: Prepared, error: sqlite3.Error) -> LedgerError:
        """What an insert failed on: a position that exists means that somebody else continued the run."""
        self._heads.pop(batch.run_id, None)
        self._doubt(error)
        if isinstance(error, sqlite3.IntegrityError) and self._connection is not None:
            last = batch.first + len(batch.rows) - 1
            with suppress(sqlite3.Error):
                # The batch is rolled back by now, or its own rows would be found here.
                if self._connection.execute(_EXISTS, (batch.run_id, batch.first, last)).fetchone():
                    return failures.taken_over()
        return failures.unwritable(error)

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error:
            self._undo()
            # A commit whose sync failed has left its frames in the log, where a recovery would find and
            # believe them. A frame that is overwritten invalidates all behind it.
            self._refused_frames = True
            with suppress(sqlite3.Error):
                overwrite_log(connection, _FRAMES)
                self._refused_frames = False
            raise
        self._refused_frames = False

    def _undo(self) -> None:
        # Does nothing after a commit. On a full disk this fails too; the error before it is the one to tell.
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _doubt(self, error: sqlite3.Error) -> None:
        """Let go of a file that failed, so that the next append sees it as it is by then."""
        # Where a refused commit could not be overwritten, this connection is who knows that it is none.
        if failures.is_about_the_file(error) and not self._refused_frames:
            self._undo()
            self._heads.clear()
            self._let_go()

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _done(self, heads: dict[str, Head], began: float) -> None:
        self._seconds = time.perf_counter() - began
        self._log.grew()
        known = self._heads
        for run_id, head in heads.items():
            known[run_id] = head
            known.move_to_end(run_id)
        while len(known) > _MAX_HEADS:
            known.popitem(last=False)


def _begin(connection: sqlite3.Connection) -> bool:
    """Begin to write; False when another process does."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not failures.is_busy(error):
            raise
        return False
    return True
