"""A bounded queue with a thread behind it: handed over at once, shipped elsewhere, losses counted.

The batch processor of the OpenTelemetry SDK is not used for this: its flush ignores its timeout, its shutdown
takes up to half a minute against a collector that is gone, and it does not say what it lost.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_log = logging.getLogger("footprint")
_EXIT_SECONDS = 3.0


class Handover(Generic[T]):
    """Takes items without waiting, and ships them in batches from a thread of its own.

    When the queue is full, its oldest item is lost. A forked process begins with an empty queue, no thread
    and counters at zero: what was queued belongs to its parent.

    Args:
        ship: Ships a batch, in the thread; False, or anything it raises, means that the batch is lost.
        name: The thread's name.
        batch: The most items a batch holds.
        bound: The most items the queue holds.
        delay: Seconds an item may wait for others to fill its batch.
        give_back: Called once behind the last batch.
    """

    def __init__(
        self,
        ship: Callable[[list[T]], bool],
        *,
        name: str,
        batch: int,
        bound: int,
        delay: float,
        give_back: Callable[[], None] | None = None,
    ) -> None:
        self._ship = ship
        self._name = name
        self._batch = batch
        self._bound = bound
        self._delay = delay
        self._give_back = give_back
        self._closed = False
        self._begin()
        self._begin_after_fork()

    def _begin_after_fork(self) -> None:
        # The hook is never removed, so it must not keep the queue alive.
        begin = weakref.WeakMethod(self._begin)

        def child() -> None:
            if (alive := begin()) is not None:
                alive()

        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=child)

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._queue: deque[T] = deque(maxlen=self._bound)
        self._worker: threading.Thread | None = None
        self._taken = self._shipped = self._in_flight = 0
        self._hurried = self._abandoned = self._complained = False

    def put(self, item: T, /) -> None:
        """Take one item, in O(1) and without I/O."""
        with self._changed:
            self._taken += 1
            if self._closed:
                return
            self._queue.append(item)
            if self._worker is None:
                self._start()
            waiting = len(self._queue)
            if waiting in (1, self._batch):
                self._changed.notify_all()

    @property
    def dropped(self) -> int:
        """How many items were lost."""
        with self._changed:
            return self._lost()

    def flush(self, timeout: float, /) -> bool:
        """Ship what is queued, within `timeout` seconds; False when something is left, or was lost."""
        with self._changed:
            lost = self._lost()
            self._hurried = bool(self._queue)
            self._changed.notify_all()
            return self._changed.wait_for(self._idle, timeout) and self._lost() == lost

    def close(self, timeout: float, /) -> None:
        """Ship what is queued and end the thread, within `timeout` seconds; what is left then is lost."""
        deadline = time.monotonic() + timeout
        with self._changed:
            first, self._closed = not self._closed, True
            self._changed.notify_all()
            if not self._changed.wait_for(self._idle, timeout):
                # The thread is inside a batch it cannot be torn from; it ends behind it, and nobody waits.
                self._abandoned = True
                self._queue.clear()
            worker = self._worker
        if worker is not None:
            atexit.unregister(self._at_exit)
            worker.join(max(0.0, deadline - time.monotonic()))
        elif first and self._give_back is not None:
            self._give_back()

    def _idle(self) -> bool:
        return not self._queue and not self._in_flight

    def _lost(self) -> int:
        kept = 0 if self._abandoned else len(self._queue) + self._in_flight
        return self._taken - self._shipped - kept

    def _start(self) -> None:
        worker = threading.Thread(target=self._work, name=self._name, daemon=True)
        worker.start()
        self._worker = worker
        # A daemon thread dies with the interpreter, and with it what nobody closed.
        atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        self.close(_EXIT_SECONDS)

    def _work(self) -> None:
        while batch := self._next():
            shipped = self._shipping(batch)
            with self._changed:
                self._in_flight = 0
                self._shipped += len(batch) if shipped else 0
                self._changed.notify_all()
        if self._give_back is not None:
            self._give_back()

    def _next(self) -> list[T]:
        """The next batch; empty when there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._queue) or self._closed)
            self._changed.wait_for(self._due, self._delay)
            batch = [self._queue.popleft() for _ in range(min(self._batch, len(self._queue)))]
            self._hurried = self._hurried and bool(self._queue)
            self._in_flight = len(batch)
            return batch

    def _due(self) -> bool:
        return len(self._queue) >= self._batch or self._hurried or self._closed

    def _shipping(self, batch: list[T]) -> bool:
        try:
            return self._ship(batch)
        except Exception as error:  # noqa: BLE001 - whatever shipping raises, the thread goes on
            if not self._complained:
                self._complained = True
                _log.warning("The thread %s lost a batch: %s.", self._name, type(error).__name__)
            return False
