"""Every queue of recorders that is alive in this process: to read them, to begin anew, to end with it."""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from footprint_observe.recording.handover import Handover

_EXIT_SECONDS = 3.0
_FORK_SECONDS = 0.2

# Reentrant, since a signal handler may make a recorder in the middle of anything.
_lock = threading.RLock()
_numbers = itertools.count()
_live: WeakValueDictionary[int, Handover[Any]] = WeakValueDictionary()
# Those that hold still during a fork.
_held: list[Handover[Any]] = []


def keep(queue: Handover[Any]) -> None:
    """Know a queue for as long as anybody has it."""
    with _lock:
        _live[next(_numbers)] = queue


def handovers() -> tuple[Handover[Any], ...]:
    """Every queue that is alive in this process, the oldest first; recorders of one id may have several."""
    with _lock:
        return tuple(_live.values())


def _hold_still() -> None:
    # A child that is copied in the middle of a batch has every lock that batch held, and nobody to open it.
    _lock.acquire()
    deadline = time.monotonic() + _FORK_SECONDS
    _held[:] = _live.values()
    for queue in _held:
        queue.hold_still(max(0.0, deadline - time.monotonic()))


def _go_on() -> None:
    for queue in _held:
        queue.go_on()
    _held.clear()
    _lock.release()


def _begin_in_child() -> None:
    for queue in _held:
        queue.begin()
    _held.clear()
    _lock.release()


def _end_all() -> None:
    # A daemon thread dies with the interpreter, and with it what nobody closed.
    deadline = time.monotonic() + _EXIT_SECONDS
    # The newest first, since a queue may ship into one that was there before it.
    left = handovers()[::-1]
    for queue in left:
        # Side by side: one that ships nowhere must not take the time of the others.
        queue.flush(0.0)
    for queue in left:
        if queue.queued:
            queue.end(max(0.0, deadline - time.monotonic()))


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    # One hook for all of them, since a hook can never be taken back.
    os.register_at_fork(before=_hold_still, after_in_parent=_go_on, after_in_child=_begin_in_child)
