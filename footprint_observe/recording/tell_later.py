"""Any watcher, told from a thread: in order, off the run, with the losses counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from footprint_core.errors import RecorderError
from footprint_core.events import Event
from footprint_core.holding import hold, release
from footprint_core.watch import Recorder, Watcher
from footprint_core.watch.listener import watching
from footprint_observe.recording.handover import Handover
from footprint_observe.recording.opened import Opened

_BATCH = 64
_BOUND = 4096


class Queued(Opened):
    """A recorder that tells a watcher from a thread; `queued` makes it.

    The watcher may be slow, may raise and may never return: the run goes on, and `close` ends in time. It may
    start a turn of the agent it watches, in another session, since it is not called in a run.
    """

    def __init__(self, watcher: Watcher, *, bound: int) -> None:
        listener = watching(watcher)
        if listener.correlating is not None or listener.enclosing is not None:
            raise RecorderError(
                f"The watcher {listener.name!r} has correlation or enclose, which a run must ask at once; "
                f"give it to .watch() as it is."
            )
        self._id = listener.name
        self._watcher = watcher
        self._listener = listener
        self._ended = False
        self._handover: Handover[Event] = Handover(
            self._tell, id=self._id, batch=_BATCH, bound=bound, delay=0.0
        )

    @property
    def id(self) -> str:
        """The id of the watcher."""
        return self._id

    @property
    def ignores(self) -> frozenset[type[Event]]:
        """The events the watcher has no use for."""
        return self._listener.ignores

    @property
    def dropped(self) -> int:
        """How many events the watcher was not told, and how many items it lost itself."""
        return self._handover.dropped + self._listener.health().dropped

    @property
    def queued(self) -> int:
        """How many events wait, and how many items in the watcher."""
        return self._handover.queued + self._listener.health().queued

    @property
    def errors(self) -> int:
        """How often the watcher raised, and how often it failed to ship."""
        return self._handover.errors + self._listener.health().errors

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever runs the agent should know about the watcher."""
        said = (*self._listener.health().notices, *self._handover.notices)
        if lost := self._handover.dropped:
            said += (f"{lost} events were lost before {self._id} was told; it is too slow, or stands still.",)
        if errors := self._handover.errors:
            said += (f"{self._id} raised {errors} times; the first is in the log.",)
        return said

    def on_event(self, event: Event, /) -> None:
        """Take one event."""
        self._handover.put(event)

    def flush(self, timeout: float, /) -> bool:
        """Tell what is queued and flush the watcher, within `timeout` seconds; False when some is left."""
        deadline = time.monotonic() + timeout
        told = self._handover.flush(timeout)
        if not isinstance(self._watcher, Recorder):
            return told
        return self._within(deadline, self._watcher.flush) and told

    def close(self, timeout: float, /) -> None:
        """Tell what is queued and close the watcher, within `timeout` seconds; what is left then is lost."""
        deadline = time.monotonic() + timeout
        self._handover.close(timeout)
        if self._ended or not isinstance(self._watcher, Recorder):
            return
        self._ended = True
        hold(self._watcher)
        if release(self._watcher):
            # Nobody else has it: no agent, and no block of the caller's.
            self._within(deadline, self._watcher.close)

    def _tell(self, events: list[Event]) -> bool:
        for event in events:
            try:
                self._watcher.on_event(event)
            except BaseException as error:  # noqa: BLE001 - whoever listens may raise anything
                self._handover.failed(error)
        return True

    def _within(self, deadline: float, call: Callable[[float], object]) -> bool:
        """Whether a call agreed in time; in a thread of its own, because it may not keep its timeout."""
        timeout = max(0.0, deadline - time.monotonic())
        agreed: list[object] = []

        def run() -> None:
            try:
                agreed.append(call(timeout))
            except BaseException as error:  # noqa: BLE001 - whoever listens may raise anything
                self._handover.failed(error)

        thread = threading.Thread(target=run, name=f"footprint-{self._id}-end", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # There are too many threads, or the interpreter is ending.
            self._handover.failed(error)
            return False
        thread.join(timeout)
        return agreed == [True]


def queued(watcher: Watcher, *, bound: int = _BOUND) -> Queued:
    """A watcher that is told from a thread, in order, so that it can be slow without slowing a run.

    It keeps its id. When it is a recorder, it is flushed and closed with the queue in front of it. A queue of
    a forked process begins empty: no event is told twice.

    Args:
        watcher: Any watcher without `correlation` and `enclose`, which must be asked while the run waits.
        bound: The most events that wait; the oldest are lost first, and counted.

    Raises:
        BuilderError: The watcher has no id, or no `on_event` that could be called.
        RecorderError: The watcher has `correlation` or `enclose`, or `bound` is below 1.
    """
    if bound < 1:
        raise RecorderError("queued() needs room for at least one event; give bound=1 or more.")
    return Queued(watcher, bound=bound)
