"""Plain functions off the event loop: daemon threads of the product's own.

The default executor of asyncio is joined at exit, so one hung tool would hold the program open; and a
`StopIteration` raised inside it never resolves its future. These threads hand back values only.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import TypeAlias

Job: TypeAlias = Callable[[], None]

Settled: TypeAlias = tuple[object, BaseException | None]
"""What a function returned, or what it raised."""


class Threads:
    """Idle threads are used again; a new one starts when all are busy."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[Job]] = []
        self._lock = threading.Lock()

    async def call(self, function: Callable[[], object]) -> Settled:
        """What `function` returns or raises, run in a thread with the caller's context variables.

        A cancellation of the caller is not passed on to the thread.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Settled] = loop.create_future()
        context = contextvars.copy_context()

        def _settle(value: object, error: BaseException | None) -> None:
            if not done.done():
                done.set_result((value, error))

        def _job() -> None:
            value: object = None
            error: BaseException | None = None
            try:
                value = context.run(function)
            except BaseException as raised:  # noqa: BLE001 - handed over as a value, whatever it is
                error = raised
            try:
                loop.call_soon_threadsafe(_settle, value, error)
            except RuntimeError:
                # The loop closed while the function ran; nobody is left to be told.
                return

        self._start(_job)
        return await done

    def _start(self, job: Job) -> None:
        with self._lock:
            jobs: queue.SimpleQueue[Job] | None = self._idle.pop() if self._idle else None
        if jobs is None:
            jobs = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(jobs,), name="footprint-tool", daemon=True).start()
        jobs.put(job)

    def _work(self, jobs: queue.SimpleQueue[Job]) -> None:
        while True:
            jobs.get()()
            with self._lock:
                self._idle.append(jobs)


THREADS = Threads()
"""The threads of this process."""
