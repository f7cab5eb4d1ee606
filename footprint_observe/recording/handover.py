"""A bounded queue with a thread behind it: handed over at once, shipped elsewhere, losses counted.

The batch processor of the OpenTelemetry SDK is not used for this: its flush ignores its timeout, its shutdown
takes up to half a minute against a collector that is gone, and it does not say what it lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeAlias, TypeVar

from footprint_observe.recording import alive

T = TypeVar("T")

_log = logging.getLogger("footprint")
_PAUSE_SECONDS = 1.0
_CLOSED = (
    "The recorder {} was closed with the last agent that had it, so what it is told is lost; keep it open "
    "with a `with` block."
)


Shipped: TypeAlias = bool | Literal["later"]
"""What came of a batch: it is shipped, or lost, or nobody could take it now.

Then it stays first in the queue and is tried again a second later. While a queue is closed there is no later,
and what is left is lost.
"""


class Handover(Generic[T]):
    """Takes items without waiting, and ships them in batches from a thread of its own.

    When the queue is full, its oldest item is lost. At any moment an item that was taken is shipped, queued
    or dropped.

    A forked process begins with an empty queue, no thread and counters at zero: what was queued belongs to
    its parent. A fork waits a moment for the batch that is being shipped, so that no lock of shipping is
    copied while it is held; a batch that stands still is not waited for.

    What nobody closed is shipped when the interpreter exits, all of it within three seconds. A process that
    is killed, or leaves by `os._exit`, loses what is queued.

    Args:
        ship: Ships a batch, in the thread, and says what came of it; anything it raises means that the batch
            is lost.
        id: The id of the recorder it works for; its thread is named after it.
        batch: The most items a batch holds.
        bound: The most items the queue holds.
        delay: Seconds an item may wait for others to fill its batch.
        give_back: Called once, in the thread, behind the last batch.

    Attributes:
        id: The id of the recorder it works for.
    """

    def __init__(
        self,
        ship: Callable[[list[T]], Shipped],
        *,
        id: str,
        batch: int,
        bound: int,
        delay: float,
        give_back: Callable[[], None] | None = None,
    ) -> None:
        self.id = id
        self._ship = ship
        self._batch = batch
        self._bound = bound
        self._delay = delay
        self._give_back = give_back
        self._closed = False
        self.begin()
        alive.keep(self)

    def begin(self) -> None:
        """Begin with an empty queue, no thread and counters at zero, as a forked process does."""
        # Reentrant: a signal handler or a finalizer may close it in the middle of a put of the same thread.
        self._changed = threading.Condition(threading.RLock())
        self._queue: deque[T] = deque()
        self._worker: threading.Thread | None = None
        self._taken = self._shipped = self._in_flight = self._failed = self._hurried = self._late = 0
        self._resting = self._abandoned = self._complained = False

    def put(self, item: T, /) -> None:
        """Take one item, in O(1) and without I/O."""
        with self._changed:
            self._taken += 1
            if self._closed:
                self._late += 1
                if self._late == 1:
                    _log.warning("%s", _CLOSED.format(self.id))
                return
            if len(self._queue) >= self._bound:
                self._queue.popleft()
            self._queue.append(item)
            if self._worker is None:
                self._start()
            if len(self._queue) in (1, self._batch):
                self._changed.notify_all()

    def failed(self, error: BaseException | None = None, /) -> None:
        """Count a failure that loses no batch, as of one item in it; what was raised first is logged."""
        with self._changed:
            self._failed += 1
            first = error is not None and not self._complained
            self._complained = self._complained or first
        if first:
            _log.warning("The recorder %s failed: %s.", self.id, type(error).__name__)

    @property
    def dropped(self) -> int:
        """How many items were lost."""
        with self._changed:
            return self._taken - self._shipped - self._kept()

    @property
    def notices(self) -> tuple[str, ...]:
        """Whether anything came after it was closed, for whoever runs the agent."""
        return (_CLOSED.format(self.id),) if self._late else ()

    @property
    def queued(self) -> int:
        """How many items wait, those of the batch that is being shipped included."""
        with self._changed:
            return self._kept()

    @property
    def errors(self) -> int:
        """How many shipments failed, and how often one was put off."""
        with self._changed:
            return self._failed

    def flush(self, timeout: float, /) -> bool:
        """Ship what was taken so far, within `timeout` seconds; False when some is left, or any was lost."""
        with self._changed:
            taken, lost = self._taken, self.dropped
            self._hurried = taken
            self._changed.notify_all()
            self._wait_for(lambda: self._settled() >= taken, timeout)
            return self._settled() >= taken and self.dropped == lost

    def close(self, timeout: float, /) -> None:
        """Ship what is queued and end the thread, within `timeout` seconds.

        What is left then is lost: a batch that stands still counts as that, whatever becomes of it.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            if not self._closed and self._worker is None and self._give_back is not None:
                # In the thread as ever: what gives back may wait for a network.
                self._start()
            self._closed = True
            self._changed.notify_all()
            if self._worker is threading.current_thread():
                # Closed by what it ships to: the thread ends behind what is queued.
                return
            self._wait_for(lambda: not self._kept(), timeout)
            # When something is left, the thread is inside a batch it cannot be torn from; it ends behind it,
            # and nobody waits.
            self._abandon()
            worker = self._worker
        if worker is not None:
            worker.join(max(0.0, deadline - time.monotonic()))

    def end(self, timeout: float, /) -> None:
        """Close it because the interpreter exits, within `timeout` seconds, and say what that lost."""
        before = self.dropped
        self.close(timeout)
        if (lost := self.dropped - before) > 0:
            _log.warning("The recorder %s lost %d items when the program ended.", self.id, lost)

    def hold_still(self, timeout: float, /) -> None:
        """Begin no batch until `go_on`; wait `timeout` seconds at most for the one that is being shipped."""
        self._changed.acquire()
        self._wait_for(lambda: not self._in_flight, timeout)

    def go_on(self) -> None:
        """End what `hold_still` began, in the same thread."""
        self._changed.release()

    def _wait_for(self, done: Callable[[], bool], timeout: float) -> None:
        # Nobody would ever do it without a thread, and the thread itself cannot wait for itself.
        if self._worker not in (None, threading.current_thread()):
            self._changed.wait_for(done, timeout)

    def _abandon(self) -> None:
        self._abandoned = True
        self._queue.clear()

    def _kept(self) -> int:
        return 0 if self._abandoned else len(self._queue) + self._in_flight

    def _settled(self) -> int:
        """How many of the items taken first are shipped or lost."""
        return self._taken - self._kept()

    def _start(self) -> None:
        worker = threading.Thread(target=self._work, name=f"footprint-{self.id}", daemon=True)
        try:
            worker.start()
        except RuntimeError as error:
            # There are too many threads, or the interpreter is ending. The next item tries again.
            self.failed(error)
        else:
            self._worker = worker

    def _work(self) -> None:
        while batch := self._next():
            shipped = self._shipping(batch)
            with self._changed:
                self._in_flight = 0
                if shipped == "later":
                    self._put_off(batch)
                elif shipped and not self._abandoned:
                    # Of an abandoned batch it was said that it is lost, and what is lost never becomes less.
                    self._shipped += len(batch)
                self._changed.notify_all()
        if self._give_back is not None:
            try:
                self._give_back()
            except BaseException as error:  # noqa: BLE001 - as for what is shipped
                self.failed(error)

    def _next(self) -> list[T]:
        """The next batch; empty when there will be none."""
        with self._changed:
            if self._resting:
                self._changed.wait_for(lambda: self._closed, _PAUSE_SECONDS)
                self._resting = False
            self._changed.wait_for(lambda: bool(self._queue) or self._closed)
            self._changed.wait_for(self._due, self._delay)
            batch = [self._queue.popleft() for _ in range(min(self._batch, len(self._queue)))]
            self._in_flight = len(batch)
            return batch

    def _due(self) -> bool:
        return len(self._queue) >= self._batch or self._settled() < self._hurried or self._closed

    def _shipping(self, batch: list[T]) -> Shipped:
        try:
            shipped = self._ship(batch)
        except BaseException as error:  # noqa: BLE001 - whatever shipping raises, the thread goes on
            self.failed(error)
            return False
        if shipped is not True:
            self.failed()
        return shipped

    def _put_off(self, batch: list[T]) -> None:
        if self._closed:
            # Nobody there takes the rest either, and whoever closes waits.
            self._abandon()
            return
        # What was put meanwhile is newer: the oldest go first when not all of it fits.
        room = max(0, self._bound - len(self._queue))
        self._queue.extendleft(reversed(batch[len(batch) - min(room, len(batch)) :]))
        self._resting = True
