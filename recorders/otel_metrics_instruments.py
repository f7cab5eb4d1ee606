"""The instruments of a meter provider, which every recorder on it shares."""

from __future__ import annotations

import os
import threading
from weakref import WeakKeyDictionary

from opentelemetry.metrics import Meter, MeterProvider

from footprint_observe import semconv

from . import otel_metrics_table as table
from .otel_metrics_labels import LabelSets
from .otel_metrics_observed import Observed
from .otel_metrics_table import Metric

_MOST = 2**63 - 1


class Counter:
    """A counter. The SDK takes some microseconds for a number, so it is told sums, when somebody collects."""

    __slots__ = ("_add", "_lock", "metric", "sets")

    def __init__(self, meter: Meter, metric: Metric) -> None:
        self._add = meter.create_counter(metric.name, unit=metric.unit, description=metric.about).add
        self.metric = metric
        self.sets = LabelSets(metric)
        self.renew()

    def renew(self) -> None:
        """Begin with a lock that nobody holds, as a forked process must."""
        self._lock = threading.RLock()

    def add(self, amount: int, *labels: str | None) -> None:
        """Count."""
        found = self.sets.of(*labels)
        with self._lock:
            found.waiting += amount

    def start(self, *labels: str | None) -> None:
        """Begin at 0, so that the first one shows as an increase."""
        if labels not in self.sets:
            self._add(0, self.sets.of(*labels).labels)

    def tell(self) -> None:
        """Tell the SDK what was added up since."""
        for found in self.sets:
            with self._lock:
                amount, found.waiting = found.waiting, 0
            if amount:
                self._add(amount, found.labels)


class Histogram:
    """A histogram."""

    __slots__ = ("_record", "metric", "sets")

    def __init__(self, meter: Meter, metric: Metric) -> None:
        self._record = meter.create_histogram(
            metric.name,
            unit=metric.unit,
            description=metric.about,
            explicit_bucket_boundaries_advisory=metric.buckets,
        ).record
        self.metric = metric
        self.sets = LabelSets(metric)

    def record(self, amount: float, *labels: str | None) -> None:
        """Sort a number into its bucket."""
        # A clock that was set back must not cost a warning an event, nor a number that no wire holds a push.
        self._record(min(max(amount, 0), _MOST), self.sets.of(*labels).labels)


class Instruments:
    """Every instrument.

    Args:
        meter: Makes them.
    """

    def __init__(self, meter: Meter) -> None:
        self.decisions = Counter(meter, table.DECISIONS)
        self.rules = Histogram(meter, table.MIDDLEWARE_DURATION)
        self.rule_errors = Counter(meter, table.MIDDLEWARE_ERRORS)
        self.runs = Counter(meter, table.RUNS)
        self.run_seconds = Histogram(meter, table.RUN_DURATION)
        self.iterations = Histogram(meter, table.RUN_ITERATIONS)
        self.tools = Counter(meter, table.TOOLS)
        self.tool_seconds = Histogram(meter, table.TOOL_DURATION)
        self.redactions = Counter(meter, table.REDACTIONS)
        self.people = Histogram(meter, table.APPROVAL_LATENCY)
        self.tokens = Histogram(meter, table.TOKEN_USAGE)
        self.model_seconds = Histogram(meter, table.OPERATION_DURATION)
        self.first_chunk = Histogram(meter, table.TIME_TO_FIRST_CHUNK)
        self.observed = Observed(meter, self._tell)

    @property
    def full(self) -> tuple[str, ...]:
        """The metrics whose further names are `OTHER`."""
        made = (one for one in vars(self).values() if isinstance(one, Counter | Histogram))
        return tuple(one.metric.name for one in made if one.sets.full)

    def renew(self) -> None:
        """Begin with locks that nobody holds, as a forked process must."""
        for one in vars(self).values():
            if isinstance(one, Counter | Observed):
                one.renew()

    def _tell(self) -> None:
        for one in vars(self).values():
            if isinstance(one, Counter):
                one.tell()


# Reentrant, since a signal handler may make a recorder in the middle of anything.
_lock = threading.RLock()
_made: WeakKeyDictionary[MeterProvider, Instruments] = WeakKeyDictionary()


def instruments(provider: MeterProvider) -> Instruments:
    """The instruments of a meter provider.

    The SDK keeps the callbacks of the first instrument of a name and forgets those of a second, so a second
    recorder must not make its own.
    """
    with _lock:
        found = _made.get(provider)
        if found is None:
            meter = provider.get_meter("footprint", schema_url=semconv.SCHEMA_URL)
            found = _made[provider] = Instruments(meter)
        return found


def _begin_in_child() -> None:
    for made in _made.values():
        made.renew()
    _lock.release()


if hasattr(os, "register_at_fork"):
    # A child must not begin with a lock that a thread of its parent holds.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_begin_in_child)
