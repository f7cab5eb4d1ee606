"""What is read when somebody collects: the questions that wait in ledgers, and how the recorders here do."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from footprint_core.errors import FootprintError
from footprint_observe import semconv as n
from footprint_observe.query.waiting import Open, Waiting
from footprint_observe.recording import Handover, handovers

from . import otel_metrics_table as table
from .otel_metrics_labels import LabelSets
from .otel_metrics_table import SHIP, WATCH

# Two gauges say what one look at the file found.
_FRESH_SECONDS = 0.5


class Approvals:
    """The questions that wait in one ledger file. That it cannot be read is said, and raises nothing.

    Args:
        path: The ledger file.

    Attributes:
        trouble: Why it could not be read the last time; None when it could.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._waiting = Waiting(path)
        self._found: Open | None = None
        self._at = float("-inf")
        self.trouble: str | None = None

    @property
    def path(self) -> Path:
        """The ledger file."""
        return self._waiting.path

    def look(self) -> Open | None:
        """What waits now; None when the file cannot be read."""
        if time.monotonic() - self._at > _FRESH_SECONDS:
            self._found, self.trouble = self._read()
            self._at = time.monotonic()
        return self._found

    def _read(self) -> tuple[Open | None, str | None]:
        try:
            return self._waiting.count(), None
        except FootprintError as error:
            return None, f"The questions that wait cannot be counted. {error}"
        except Exception as error:  # noqa: BLE001 - collecting goes on, whatever a disk does
            return None, f"The questions that wait cannot be counted ({type(error).__name__})."


class Observed:
    """The instruments that are read when somebody collects.

    Args:
        meter: Makes them.
        tell: Called first: numbers that wait are told to the SDK, which reads its own instruments behind
            these.
    """

    def __init__(self, meter: Meter, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._approvals: WeakSet[Approvals] = WeakSet()
        self._raised: dict[str, int] = {}
        self._health = _Health()
        self.renew()
        for metric, callback in (
            (table.APPROVALS_PENDING, self._pending),
            (table.APPROVALS_OLDEST, self._oldest),
            (table.RECORDER_QUEUE, self._queued),
        ):
            meter.create_observable_gauge(metric.name, [callback], unit=metric.unit, description=metric.about)
        for metric, callback in (
            (table.RECORDER_DROPPED, self._dropped),
            (table.RECORDER_ERRORS, self._errors),
        ):
            meter.create_observable_counter(
                metric.name, [callback], unit=metric.unit, description=metric.about
            )

    def renew(self) -> None:
        """Begin with a lock that nobody holds, and queues that count from zero, as a forked process must."""
        # Reentrant: a signal handler may close a recorder in the middle of this.
        self._lock = threading.RLock()
        self._health.count_on()

    def add(self, approvals: Approvals) -> None:
        """Read this ledger, too, until `remove`, or until nobody has it."""
        with self._lock:
            self._approvals = self._approvals | {approvals}

    def remove(self, approvals: Approvals) -> None:
        """Read it no more."""
        with self._lock:
            # Another set, since the handler may have come while this one is read.
            self._approvals = self._approvals - {approvals}

    def raised(self, watcher: str) -> None:
        """A watcher raised."""
        name = self._health.name(watcher)
        with self._lock:
            self._raised[name] = self._raised.get(name, 0) + 1

    def _look(self) -> list[Open]:
        with self._lock:
            by_path = {approvals.path: approvals for approvals in self._approvals}
        return [found for approvals in by_path.values() if (found := approvals.look()) is not None]

    def _pending(self, _: CallbackOptions) -> Iterable[Observation]:
        found = self._look()
        return [Observation(sum(one.count for one in found))] if found else []

    def _oldest(self, _: CallbackOptions) -> Iterable[Observation]:
        found = self._look()
        return [Observation(max(one.oldest for one in found))] if found else []

    def _queued(self, _: CallbackOptions) -> Iterable[Observation]:
        self._tell()
        return [Observation(count, {n.WATCHER: name}) for name, count in self._health.queued().items()]

    def _dropped(self, _: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            totals = self._health.totals()
        return [Observation(lost, {n.WATCHER: name}) for name, (lost, _) in totals.items()]

    def _errors(self, _: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            totals = self._health.totals()
            raised = dict(self._raised)
        return [
            *(Observation(count, {n.WATCHER: name, n.STAGE: WATCH}) for name, count in raised.items()),
            *(Observation(count, {n.WATCHER: name, n.STAGE: SHIP}) for name, (_, count) in totals.items()),
        ]


class _Health:
    """What the recorders of this process lost and failed at, added up by their ids."""

    def __init__(self) -> None:
        self._names = LabelSets(table.RECORDER_QUEUE)
        self._totals: dict[str, tuple[int, int]] = {}
        self.count_on()

    def count_on(self) -> None:
        """Add what queues say from now on, which begin at zero, to what there is."""
        self._seen: WeakKeyDictionary[Handover[Any], tuple[int, int]] = WeakKeyDictionary()

    def name(self, id: str) -> str:
        """What the label of a recorder says."""
        return self._names.of(id).labels[n.WATCHER]

    def queued(self) -> dict[str, int]:
        """How many items wait."""
        waiting: dict[str, int] = {}
        for handover in handovers():
            name = self.name(handover.id)
            waiting[name] = waiting.get(name, 0) + handover.queued
        return waiting

    def totals(self) -> dict[str, tuple[int, int]]:
        """How many items were lost, and how many shipments failed; also those of a recorder that is gone."""
        for handover in handovers():
            name = self.name(handover.id)
            now = (handover.dropped, handover.errors)
            before = self._seen.get(handover, (0, 0))
            lost, failed = self._totals.get(name, (0, 0))
            self._totals[name] = (lost + now[0] - before[0], failed + now[1] - before[1])
            self._seen[handover] = now
        return dict(self._totals)
