"""Which runs are open in this process: a run that is alone commits in its own thread, several go together."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from footprint_core.facts import RunConfigured, SegmentEnded
from footprint_core.ledger import Batch

QUIET_SECONDS = 60.0
"""A run that appended nothing for so long is no reason to wait for others."""

MAX_KNOWN = 4096
"""Open runs that are remembered; the one that was quiet for longest is forgotten first."""


class OpenRuns:
    """The segments that have begun and not ended, told from what they append.

    A segment that never says its end (its process went on without it) is forgotten when it is quiet.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._appended: OrderedDict[str, float] = OrderedDict()

    def note(self, batch: Batch) -> bool:
        """Note that a run appends a batch; whether it is alone: no other run is open."""
        now, run_id = time.monotonic(), batch.run_id
        with self._lock:
            known = self._appended
            if type(batch.entries[-1].fact) is SegmentEnded:
                known.pop(run_id, None)
            elif run_id in known:
                known[run_id] = now
                known.move_to_end(run_id)
            elif any(type(entry.fact) is RunConfigured for entry in batch.entries):
                known[run_id] = now
                if len(known) > MAX_KNOWN:
                    known.popitem(last=False)
            for other in reversed(known):
                if other != run_id:
                    return now - known[other] > QUIET_SECONDS
        return True

    def forget(self, run_id: str) -> None:
        """A run whose append failed appends no more."""
        with self._lock:
            self._appended.pop(run_id, None)
