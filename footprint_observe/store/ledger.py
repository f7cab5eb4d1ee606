"""`SqliteLedger`: every run's entries in one SQLite file, durable before anything acts on them.

A run that is alone commits in its own thread, with no wait and no hop. When several runs are open, when the
file is locked or when the disk is slow, a batch goes to the ledger's writer thread, which commits what is
queued at once.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import msgspec

from footprint_core.decisions import Decision
from footprint_core.errors import LedgerError, LedgerOpenError, LedgerWriteError
from footprint_core.holding import hold, release
from footprint_core.ledger import Batch, Entry, KeptPause, PauseStanding, Receipt, Redactor, RunStanding
from footprint_core.redacting import Redacting
from footprint_observe.keyring import KeyRing
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store import failures, forked, pauses, read
from footprint_observe.store.append import Appender
from footprint_observe.store.connect import Durability, open_reader, open_writer, resolve
from footprint_observe.store.log import Log
from footprint_observe.store.open_runs import OpenRuns
from footprint_observe.store.prepare import prepare
from footprint_observe.store.presence import OpenedFile
from footprint_observe.store.writer import Writer


class _Open(msgspec.Struct, frozen=True, kw_only=True):
    """What one process has open."""

    appender: Appender
    writer: Writer
    runs: OpenRuns


class SqliteLedger:
    """A ledger in one SQLite file; several processes and several event loops may share it.

    An agent closes it, unless another one still has it, or `async with SqliteLedger(...) as ledger:` does.

    Args:
        path: The file; it is made when there is none, its folder is not.
        redact: What removes fields before they are written. None masks credentials, as
            `Redaction.standard()` does; to keep everything, say `Redaction.none()`.
        durability: What a row survives once its append has returned. `"power"`: a loss of power and a
            crash of the system, for the log is synced at every commit (where the disk keeps what it says
            it has synced). `"process"`: the end of the process, `kill -9` included; a loss of power may
            take the newest commits with it, from some commit on, and leaves a file that opens.
        busy_timeout: Seconds an append waits for another process that writes.
        network: True for a file on a network file system, which is refused otherwise: its locks and its
            shared memory do not hold between machines, so only one machine may ever open it.
        keys: What the bodies of pauses are sealed with, so that `resume(pause_id=...)` works without the
            caller's checkpoint. Without keys the file holds none.

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
        network: bool = False,
        keys: KeyRing | None = None,
    ) -> None:
        if durability not in ("power", "process"):
            raise LedgerOpenError('The durability of a ledger is "power" or "process"; use one of them.')
        if type(busy_timeout) not in {int, float} or not 0 <= busy_timeout <= 86_400:
            raise LedgerOpenError("busy_timeout is a number of seconds, from 0 to a day; give one of those.")
        if keys is not None and not isinstance(cast("object", keys), KeyRing):
            raise LedgerOpenError(
                "keys takes a KeyRing; make one with KeyRing.of(...) or KeyRing.from_env()."
            )
        self._path = resolve(path)
        self._redacting = Redacting(Redaction.standard() if redact is None else redact)
        self._keys = keys
        self._durability: Durability = durability
        self._busy_timeout = busy_timeout
        self._network = network
        self._closed = False
        self._file = OpenedFile(self._path)
        self._by_process: dict[int, _Open] = {}
        self._opened().appender.open()
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
            The receipt, or None when the file is locked or appends are queued, and on an event loop also
            when other runs are open or the disk is slow; nothing was done then.

        Raises:
            RunTakenOverError: The batch does not follow what the file has of its run.
            LedgerWriteError: It failed for another reason; nothing of it is in the file.
        """
        opened = self._opened_for(batch)
        alone = opened.runs.note(batch)
        if not opened.writer.idle or (not (alone and opened.appender.prompt) and _on_a_loop()):
            return None
        try:
            prepared = prepare(batch, self._redacting, self._keys)
            return prepared.receipt if opened.appender.now(prepared) else None
        except LedgerError:
            opened.runs.forget(batch.run_id)
            raise

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
        opened.runs.note(batch)
        try:
            return await opened.writer.submit(prepare(batch, self._redacting, self._keys))
        except LedgerError:
            opened.runs.forget(batch.run_id)
            raise

    async def pause_standing(self, run_id: str, pause_id: str, /) -> PauseStanding | None:
        """What the file knows of a pause; None when the run or the pause is not in it.

        Raises:
            LedgerOpenError: The file cannot be read.
        """
        with self._reader() as connection:
            return read.pause_standing(connection, run_id, pause_id)

    async def kept_pause(self, pause_id: str, /) -> KeptPause | None:
        """A pause by its id alone, with its body where it is kept; None when it is not in the file.

        Raises:
            KeyRingError: The body is there, and the ledger's keys do not open it, or it has none.
            LedgerOpenError: The file cannot be read.
        """
        with self._reader() as connection:
            return pauses.kept_pause(connection, pause_id, self._keys)

    async def run_standing(self, run_id: str, /) -> RunStanding | None:
        """Where a run ends; None for one the file does not have.

        Raises:
            LedgerOpenError: The file cannot be read.
        """
        with self._reader() as connection:
            return read.run_standing(connection, run_id)

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
        path, durability, busy_timeout, network = (
            self._path, self._durability, self._busy_timeout, self._network,
        )  # fmt: skip
        appender = Appender(
            lambda: open_writer(path, durability=durability, busy_timeout=busy_timeout, network=network),
            self._file,
            Log(path),
        )
        writer = Writer(lambda batches: appender.together(batches, busy_timeout))
        mine = _Open(appender=appender, writer=writer, runs=OpenRuns())
        # One step, and no lock: a lock that another thread held when the process forked stays held here.
        kept = self._by_process.setdefault(os.getpid(), mine)
        if kept is not mine:
            appender.close()
        return kept


def _on_a_loop() -> bool:
    # Without one there is nobody who would be held up, and no way to wait for others.
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _close(opened: _Open) -> None:
    opened.writer.close()
    opened.appender.close()
