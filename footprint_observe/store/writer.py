"""The writer thread of a ledger: takes what is queued, writes it in one transaction, wakes each loop once."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec

from footprint_core.errors import LedgerError
from footprint_core.ledger import Receipt
from footprint_observe.store import failures
from footprint_observe.store.prepare import Prepared

Write: TypeAlias = Callable[[Sequence[Prepared]], Sequence[LedgerError | None]]
"""Writes batches and says of each what became of it."""

MAX_QUEUED = 1024
"""Batches that may wait; one more is refused."""

MAX_QUEUED_BYTES = 64 * 1024 * 1024
"""Bytes that may wait; a batch beyond them is refused, unless it is the only one."""


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    batch: Prepared
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Receipt]


class Writer:
    """A bounded queue and one daemon thread, which starts with the first batch.

    Args:
        write: Writes what was taken.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._jobs: list[_Job] = []
        self._bytes = 0
        self._working = False
        self._closing = False
        self._waking: asyncio.AbstractEventLoop | None = None
        self._awake = False
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or being written."""
        return not self._jobs and not self._working

    def submit(self, batch: Prepared) -> asyncio.Future[Receipt]:
        """Queue a batch; the future belongs to the running loop.

        Raises:
            LedgerBusyError: The queue is full.
            LedgerWriteError: The writer is closed.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Receipt] = loop.create_future()
        job = _Job(batch=batch, loop=loop, done=done)
        size = _size(batch)
        with self._changed:
            refused = self._refused(size)
            if refused is not None:
                raise failures.about(refused, batch.run_id, batch.segment)
            self._jobs.append(job)
            self._bytes += size
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="footprint-ledger", daemon=True)
                self._thread.start()
            # Not at once: other tasks that are ready on this loop append too, and all of it is one commit.
            # Each loop wakes for itself, for another one may be gone.
            if self._waking is not loop:
                self._waking = loop
                loop.call_soon(self._wake)
        return done

    def _wake(self) -> None:
        with self._changed:
            self._waking = None
            self._awake = True
            self._changed.notify()

    def close(self) -> None:
        """Write what is queued and end the thread; blocks until then."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _refused(self, size: int) -> LedgerError | None:
        if self._closing:
            return failures.closed()
        if len(self._jobs) >= MAX_QUEUED:
            return failures.queue_full(f"{MAX_QUEUED} appends")
        if self._jobs and self._bytes + size > MAX_QUEUED_BYTES:
            return failures.queue_full(f"Appends of {MAX_QUEUED_BYTES >> 20} MiB")
        return None

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (self._awake and self._jobs) and not self._closing:
                    self._changed.wait()
                self._awake = False
                if not self._jobs:
                    return
                # In this order, or somebody who looks in between finds the writer idle and overtakes.
                self._working = True
                jobs, self._jobs, self._bytes = self._jobs, [], 0
            outcomes = self._outcomes([job.batch for job in jobs])
            self._working = False
            _tell(jobs, outcomes)
            # Nothing of it is kept while the thread waits for more.
            del jobs, outcomes

    def _outcomes(self, batches: Sequence[Prepared]) -> Sequence[LedgerError | None]:
        try:
            return self._write(batches)
        except BaseException as error:  # noqa: BLE001 - nobody else is there to answer those who wait
            return [failures.unwritable(error) for _ in batches]


def _size(batch: Prepared) -> int:
    """About how many bytes a batch takes: those of its rows, its values and a sealed body."""
    opened = None if batch.bodies is None else batch.bodies.opened
    return (0 if opened is None else len(opened[1].body)) + sum(
        len(row.document) + sum(sys.getsizeof(value[1]) for value in row.values) for row in batch.rows
    )


def _tell(jobs: Sequence[_Job], outcomes: Sequence[LedgerError | None]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Job, LedgerError | None]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        by_loop.setdefault(job.loop, []).append((job, outcome))
    for loop, settled in by_loop.items():
        # A loop that was closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, settled)


def _settle(settled: Sequence[tuple[_Job, LedgerError | None]]) -> None:
    for job, outcome in settled:
        if job.done.cancelled():
            continue
        if outcome is None:
            job.done.set_result(job.batch.receipt)
        else:
            job.done.set_exception(failures.about(outcome, job.batch.run_id, job.batch.segment))
