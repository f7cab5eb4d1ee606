"""Time and ids: one monotonic clock a segment, and ids that sort by the time they were made."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Gives the time of a fact."""

    def now(self) -> int:
        """Microseconds since the Unix epoch, UTC; never less than the time before."""
        ...


class AnchoredClock:
    """A monotonic clock anchored to UTC when it is made, so that a stepped wall clock reorders nothing."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.perf_counter_ns()

    def now(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        return (self._offset + time.perf_counter_ns()) // 1000


def new_id() -> str:
    """32 hex characters: 48 bits of milliseconds since the epoch, then 80 random bits.

    Ids made later sort later, which keeps an index over them compact.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


_LONGEST = 100 * 366 * 24 * 3600


def is_seconds(value: object) -> bool:
    """Whether a value is a number of seconds to wait: above 0, and at most a hundred years.

    The bound keeps an instant that is computed from it within what a database and a calendar can hold.
    """
    # By its exact type: a boolean is an int too, and a class of a rule's own compares as it likes.
    return (type(value) is int or type(value) is float) and 0 < value <= _LONGEST


def iso(microseconds: int) -> str:
    """An instant as ISO 8601 in UTC with its zone, to the microsecond; the number if no calendar has it."""
    try:
        second = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        # A file that was written to by hand can hold any number, and is asked about all the same.
        return str(microseconds)
    return second.replace(microsecond=microseconds % 1_000_000).isoformat(timespec="microseconds")
