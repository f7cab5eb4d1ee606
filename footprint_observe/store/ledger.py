"""`SqliteLedger`: every run's entries in one SQLite file, durable before anything acts on them.

A run that is alone commits in its own thread, with no wait and no hop. When the file is locked or others
are queued, the batch goes to the ledger's writer thread, which commits what is queued at once.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from footprint_core.decisions import Decision
from footprint_core.errors import LedgerError, LedgerOpenError, LedgerWriteError
from footprint_core.holding import hold, release
from footprint_core.ledger import Batch, Entry, PauseStanding, Receipt, Redactor
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store import failures, forked, read
from footprint_observe.store.append import Appender
from footprint_observe.store.connect import Durability, open_reader, open_writer, resolve
from footprint_observe.store.prepare import prepare
from footprint_observe.store.presence import OpenedFile
from footprint_observe.store.writer import Writer


class _Open(msgspec.Struct, frozen=True, kw_only=True):
    """What one process has open."""

    appender: Appender
    writer: Writer


class SqliteLedger:
    """A ledger in one SQLite file; several processes and several event loops may share it.

    An agent closes it, unless another one still has it, or `async with SqliteLedger(...) as ledger:` does.

    Args:
        path: The file; it is made when there is none, its folder is not.
        redact: What removes fields before they are written. None masks credentials, as
            `Redaction.standard()` does; to keep everything, say `Redaction.none()`.
        durability: `"power"` for rows that survive a loss of power, `"process"` for rows that survive the
            end of the process and cost less.
        busy_timeout: Seconds an append waits for another process that writes.

    Raises:
        LedgerOpenError: The folder, the file or its format is not usable, or an argument is wrong.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        redact: Redactor | None = None,
        durability: Durability = "power",
        busy_timeout: float = 30.0,
    ) -> None:
        if durability not in {"power", "process"}:
            raise LedgerOpenError('The durability of a ledger is "power" or "process"; use one of them.')
        if not 0 <= busy_timeout <= 86_400:
            raise LedgerOpenError("busy_timeout is a number of seconds, from 0 to a day; give one of those.")
        self._path = resolve(path)
        self._redact: Redactor = Redaction.standard() if redact is None else redact
        self._durability: Durability = durability
        self._busy_timeout = busy_timeout
        self._closed = False
        self._file = OpenedFile(self._path)
        self._by_process: dict[int, _Open] = {}
        self._opened()
        self._file.check()

    @property
    def path(self) -> Path:
        """The file, as an absolute path."""
        return self._path

    def append_inline(self, batch: Batch, /) -> Receipt | None:
        """Append in the calling thread without waiting; None when that is not possible now.

        Args:
            batch: The entries of one segment.

        Returns:
            The receipt, or None when the file is locked or appends are queued; nothing was done then.

        Raises:
            RunTakenOverError: The batch does not follow what the file has of its run.
            LedgerWriteError: It failed for another reason; nothing of it is in the file.
        """
        opened = self._opened_for(batch)
        if not opened.writer.idle:
            return None
        prepared = prepare(batch, self._redact)
        return prepared.receipt if opened.appender.now(prepared) else None

    async def append(self, batch: Batch, /) -> Receipt:
        """Append all of it or nothing; it is durable on return.

        Args:
            batch: The entries of one segment.

        Raises:
            RunTakenOverError: The batch does not follow what the file has of its run.
            LedgerBusyError: The lock did not become free in time, or too much is queued.
            LedgerWriteError: It failed for another reason; nothing of it is in the file.
        """
        opened = self._opened_for(batch)
        return await opened.writer.submit(prepare(batch, self._redact))

    async def pause_standing(self, run_id: str, pause_id: str, /) -> PauseStanding | None:
        """What the file knows of a pause; None when the run or the pause is not in it.

        Raises:
            LedgerOpenError: The file cannot be read.
        """
        with self._reader() as connection:
            return read.pause_standing(connection, run_id, pause_id)

    def decisions(self, run_id: str, /) -> tuple[Decision, ...]:
        """The decision rows of a run, in order; none for a run the file does not have.

        Raises:
            LedgerOpenError: The file cannot be read.
        """
        with self._reader() as connection:
            return read.decisions(connection, run_id)

    def entries(self, run_id: str, /) -> tuple[Entry, ...]:
        """The entries of a run as they are kept, in order and marked; none for a run the file does not have.

        Raises:
            LedgerOpenError: The file cannot be read.
        """
        with self._reader() as connection:
            return read.entries(connection, run_id)

    async def close(self) -> None:
        """Write what is queued and close the file. Closing twice is harmless; reading stays possible."""
        self._closed = True
        opened = self._by_process.get(os.getpid())
        if opened is not None:
            # Both may wait for the disk, and the loop has others to serve.
            await asyncio.to_thread(_close, opened)

    async def __aenter__(self) -> Self:
        hold(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if release(self):
            await self.close()

    @contextmanager
    def _reader(self) -> Generator[sqlite3.Connection]:
        # A connection of its own, and a short one: a reader that stays stops the log from being emptied.
        with forked.reading:
            connection = open_reader(self._path)
            try:
                yield connection
            finally:
                connection.close()

    def _opened_for(self, batch: Batch) -> _Open:
        if self._closed:
            raise failures.about(failures.closed(), batch.run_id, batch.segment)
        try:
            return self._by_process.get(os.getpid()) or self._opened()
        except LedgerError as error:
            failure = LedgerWriteError(str(error))
        raise failures.about(failure, batch.run_id, batch.segment)

    def _opened(self) -> _Open:
        for parent in tuple(self._by_process.values()):
            forked.leave_alone(parent.appender)
            # Before it is opened, for a file that is gone would be made again.
            self._file.check()
        path, durability, busy_timeout = self._path, self._durability, self._busy_timeout
        appender = Appender(
            lambda: open_writer(path, durability=durability, busy_timeout=busy_timeout), self._file
        )
        writer = Writer(lambda batches: appender.together(batches, busy_timeout))
        mine = _Open(appender=appender, writer=writer)
        # One step, and no lock: a lock that another thread held when the process forked stays held here.
        kept = self._by_process.setdefault(os.getpid(), mine)
        if kept is not mine:
            appender.close()
        return kept


def _close(opened: _Open) -> None:
    opened.writer.close()
    opened.appender.close()
