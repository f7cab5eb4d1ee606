"""Plain functions off the event loop: daemon threads of the product's own.

The default executor of asyncio is joined at exit, so one hung tool would hold the program open; and a
`StopIteration` raised inside it never resolves its future. These threads hand back values only.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

Job: TypeAlias = Callable[[], None]

Settled: TypeAlias = tuple[object, BaseException | None]
"""What a function returned, or what it raised."""

MAX_LEFT_BEHIND: Final = 32
"""How many threads may be left behind; a rule that needs one more is a denial until one has ended."""

_Jobs: TypeAlias = "queue.SimpleQueue[Callable[[], Job]]"


class Threads:
    """Idle threads are used again; a new one starts when all are busy."""

    def __init__(self) -> None:
        self._forget()
        if hasattr(os, "register_at_fork"):
            # A forked child has the queues but not the threads; a job given to one would never run.
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._idle: list[_Jobs] = []
        self._lock = threading.Lock()
        self._left_behind = 0

    @property
    def left_behind(self) -> int:
        """Threads whose function still runs although its limit passed and nobody waits for it."""
        return self._left_behind

    async def call(self, function: Callable[[], object]) -> Settled:
        """What `function` returns or raises, run in a thread with the caller's context variables.

        A cancellation of the caller is not passed on to the thread.
        """
        return await self._begin(function)

    async def call_within(self, function: Callable[[], object], seconds: float) -> Settled | None:
        """As `call`, or None once `seconds` have passed.

        A function nobody waits for any more, since its limit passed or its caller was cancelled, runs on
        to its end: it is counted in `left_behind` until then, and what it gives is dropped.
        """
        ended = left = False
        ends = time.monotonic() + seconds
        late = False

        def _watched() -> object:
            nonlocal ended, late
            try:
                return function()
            finally:
                # Told by when it ended: a loop that is busy hears of it later than that.
                late = time.monotonic() > ends
                with self._lock:
                    ended = True
                    if left:
                        self._left_behind -= 1

        done = self._begin(_watched)
        try:
            # No timeout around an await: that one works by cancelling, and could be taken for the caller's.
            await asyncio.wait((done,), timeout=seconds)
            if not done.done():
                return None
            if not late:
                return done.result()
            drop(done.result()[0])
            return None
        finally:
            if done.cancel():
                with self._lock:
                    if not ended:
                        left = True
                        self._left_behind += 1

    def _begin(self, function: Callable[[], object]) -> asyncio.Future[Settled]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Settled] = loop.create_future()
        context = contextvars.copy_context()

        def _settle(value: object, error: BaseException | None) -> None:
            if done.done():
                drop(value)
            else:
                done.set_result((value, error))

        def _job() -> Job:
            value: object = None
            error: BaseException | None = None
            try:
                value = context.run(function)
            except BaseException as raised:  # noqa: BLE001 - handed over as a value, whatever it is
                error = raised
            return partial(_tell, loop, _settle, value, error)

        self._start(_job)
        return done

    def _start(self, job: Callable[[], Job]) -> None:
        with self._lock:
            jobs: _Jobs | None = self._idle.pop() if self._idle else None
        if jobs is None:
            jobs = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(jobs,), name="footprint", daemon=True).start()
        jobs.put(job)

    def _work(self, jobs: _Jobs) -> None:
        while True:
            tell = jobs.get()()
            # Idle before the caller hears of it, so that its next call finds this thread.
            with self._lock:
                self._idle.append(jobs)
            tell()
            del tell


def _tell(
    loop: asyncio.AbstractEventLoop,
    settle: Callable[[object, BaseException | None], None],
    value: object,
    error: BaseException | None,
) -> None:
    try:
        loop.call_soon_threadsafe(settle, value, error)
    except RuntimeError:
        # The loop closed while the function ran; nobody is left to be told.
        drop(value)


def drop(value: object) -> None:
    """Close a coroutine that nobody will await, or Python warns about it later."""
    if inspect.iscoroutine(value) and inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
        value.close()


THREADS = Threads()
"""The threads of this process."""
