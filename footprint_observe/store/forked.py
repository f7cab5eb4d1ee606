"""Forking: no connection to a ledger file is open while a process is copied.

SQLite keeps one record of its file locks a process. A copy of it says that locks are held which the new
process does not hold: its parent could then delete the log that the child still writes to. So appenders
close before a fork, when no append runs, and open again at their next append, in both processes. What
somebody reads at his own pace cannot be waited for: a process forked meanwhile opens no ledger.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
from typing import Any, Protocol
from weakref import WeakSet, WeakValueDictionary


class Suspendable(Protocol):
    """Something that holds a connection."""

    def suspend(self) -> None:
        """Wait until it is not in use, close it, and let nobody use it until `resume`."""
        ...

    def resume(self) -> None:
        """Let it be used again."""
        ...


reading = threading.Lock()
"""Held while a ledger reads, for a reader's connection must not be open during a fork either."""

# Held by who adds to the set, and during a fork, when it is walked.
_adding = threading.Lock()
_open: WeakSet[Suspendable] = WeakSet()
_suspended: list[Suspendable] = []
# A dict, whose single steps need no lock: one that is held when the process forks stays held in the child.
_readers: WeakValueDictionary[int, Reader] = WeakValueDictionary()
_copied_while_reading = False


class Reader(sqlite3.Connection):
    """A connection that reads; a fork leaves its trace in the child while one is open."""

    def __init__(self, *args: Any, **options: Any) -> None:
        # Before it is opened, for the fork may come in between.
        _readers[id(self)] = self
        super().__init__(*args, **options)

    def close(self) -> None:
        """Close it."""
        super().close()
        _readers.pop(id(self), None)


def copied_while_reading() -> bool:
    """Whether this process was forked while a reader was open: it cannot lock that file any more."""
    return _copied_while_reading


def suspend_when_forking(holder: Suspendable) -> None:
    """Have a connection closed before every fork of this process."""
    with _adding:
        _open.add(holder)


def leave_alone(inherited: object) -> None:
    """Keep an inherited object from ever being finalized in this process.

    A fork that Python was not told of does come with an open connection. Closing it would be using it: it
    would end the transaction the parent may be in, in memory that both share. A reference that nobody
    gives back is the only thing that outlives the interpreter's own clean-up.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _before() -> None:
    reading.acquire()
    _adding.acquire()
    # In one order everywhere, or two threads that fork at once could wait for each other.
    for holder in sorted(_open, key=id):
        holder.suspend()
        _suspended.append(holder)


def _after_in_parent() -> None:
    while _suspended:
        _suspended.pop().resume()
    _adding.release()
    reading.release()


def _after_in_child() -> None:
    global _copied_while_reading  # noqa: PLW0603 - a fact about the process
    # Here and not before the fork, for another thread may have begun to read in between.
    _copied_while_reading = _copied_while_reading or bool(_readers)
    # Its ledgers see that the process is another and open for themselves.
    _suspended.clear()
    _open.clear()
    _adding.release()
    reading.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
