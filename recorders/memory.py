"""Keeps events in memory, for tests and notebooks."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import TypeVar

from footprint_core.errors import RecorderError
from footprint_core.events import Event
from footprint_observe.recording.names import Names
from footprint_observe.recording.opened import Opened

E = TypeVar("E")

_KEEP = 10_000
# Of all of them together, so that one hook can give it back in a forked process: the thread that held it is
# not there. Reentrant, since a signal handler may be told something in the middle of anything.
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


class Memory(Opened):
    """A watcher that keeps what it is told, from any thread. Closing it takes nothing away.

    Args:
        keep: The most events it keeps; the oldest go first, and are counted. None keeps all.
        id: The watcher's id.

    Raises:
        RecorderError: `keep` is no positive number.
    """

    def __init__(self, *, keep: int | None = _KEEP, id: str = "memory") -> None:
        if keep is not None and (type(keep) is not int or keep < 1):
            raise RecorderError("Memory() keeps a positive number of events; give one, or None for all.")
        self._id = id
        self._kept: deque[Event] = deque(maxlen=keep)
        self._dropped = 0
        self._names = Names()

    @property
    def id(self) -> str:
        """The watcher's id."""
        return self._id

    @property
    def events(self) -> tuple[Event, ...]:
        """The events it keeps, in the order they were told."""
        with _lock:
            return tuple(self._kept)

    def of(self, kind: type[E], /) -> tuple[E, ...]:
        """The events of one class, for example `memory.of(DecisionFiled)`."""
        return tuple(event for event in self.events if isinstance(event, kind))

    def clear(self) -> None:
        """Forget every event, and how many were dropped."""
        with _lock:
            self._kept.clear()
            self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many events went because others came."""
        with _lock:
            return self._dropped

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever runs the agent should know about this recorder."""
        lost = self.dropped
        return (f"{lost} events are kept no more; give Memory(keep=...) a higher number.",) if lost else ()

    def on_event(self, event: Event, /) -> None:
        """Keep one event."""
        shown = self._names.shown(event)
        with _lock:
            self._dropped += len(self._kept) == self._kept.maxlen
            self._kept.append(shown)

    def flush(self, timeout: float, /) -> bool:  # noqa: ARG002 - a recorder's
        """Nothing is ever queued."""
        return True

    def close(self, timeout: float, /) -> None:
        """Nothing to give back; what it keeps stays."""
