"""The segments of a recorder that are open: bounded, and in a forked process none of its parent's."""

from __future__ import annotations

import os
import threading
from weakref import WeakSet

from .otel_segment import Segment

MAX_OPEN = 4096


class OpenSegments:
    """Open segments, by run and number.

    Attributes:
        found: Them; to look one up is one step, and needs no lock.
    """

    __slots__ = ("__weakref__", "_lock", "found")

    def __init__(self) -> None:
        self.begin()
        _live.add(self)

    def begin(self) -> None:
        """Begin with none."""
        # Guards every change. Reentrant, since a finalizer or a signal handler may close the recorder in the
        # middle of one.
        self._lock = threading.RLock()
        self.found: dict[tuple[str, int], Segment] = {}

    def add(self, key: tuple[str, int], segment: Segment) -> bool:
        """Add one; False when the oldest was ended for it, since one whose end never comes is not kept."""
        with self._lock:
            before = self.found.pop(key, None)
            oldest = self.found.pop(next(iter(self.found))) if len(self.found) >= MAX_OPEN else None
            self.found[key] = segment
        for ended in (before, oldest):
            if ended is not None:
                ended.abandon()
        return oldest is None

    def pop(self, key: tuple[str, int]) -> Segment | None:
        """Take one away."""
        with self._lock:
            return self.found.pop(key, None)

    def end_all(self) -> None:
        """End every one: nothing more is told of it."""
        with self._lock:
            left = tuple(self.found.values())
            self.found.clear()
        for segment in left:
            segment.abandon()


_live: WeakSet[OpenSegments] = WeakSet()


def _begin_in_child() -> None:
    # The spans that are open here are the parent's, which ends them; and a lock that another thread held
    # would stay held.
    for segments in _live:
        segments.begin()


if hasattr(os, "register_at_fork"):
    # One hook for all of them, since a hook can never be taken back.
    os.register_at_fork(after_in_child=_begin_in_child)
