"""Counts what runs do, as OpenTelemetry metrics: decisions, runs, tools, tokens, and the questions that wait.

Every number comes from an event, from the ledger, or from the recorders of this process, and a label says
only what the table allows, so no metric can hold a message, an argument, a result or a reason. No global
provider is ever set.
"""

from __future__ import annotations

import math
import os
import threading
from typing import ClassVar, Self
from weakref import WeakSet

from opentelemetry.metrics import MeterProvider, get_meter_provider

from footprint_core.errors import RecorderError
from footprint_core.events import EVENTS, AgentConfigured, Event
from footprint_observe.recording import Opened

from .otel_metrics_counting import COUNTED, Tally
from .otel_metrics_instruments import instruments
from .otel_metrics_observed import Approvals
from .otel_metrics_table import MAX_SETS, OTHER
from .otel_metrics_ways import Given, Way


class OtelMetrics(Opened):
    """A watcher that counts every run; `recorders.otel_metrics_table` says what there is to see.

    One that was made for a process counts for all its agents: hand the same one to each. What a rule in
    shadow decides is not counted as a decision. A run that waits for a person ends a segment as `paused`, and
    the wait is part of no duration. What a recovered run had done before is not counted again. `with
    OtelMetrics() as metrics:` keeps it open for every agent inside.

    Args:
        meter_provider: Makes the instruments; without one, the global one does. Its owner flushes and closes
            it, and sees to forks: behind one, the SDK goes on counting from what the parent had.
        ledger: A ledger file. The questions that wait in it are counted whenever somebody collects, by every
            process that has this path, so take the highest of their figures and not the sum.
        id: The watcher's id.

    Attributes:
        url: Where its page is, when it has one; a forked process has none.
        ignores: The events it counts nothing of.

    Raises:
        LedgerOpenError: `ledger` is not the path of a file.
    """

    url: str | None = None
    ignores: ClassVar[frozenset[type[Event]]] = frozenset(EVENTS.values()) - COUNTED

    def __init__(
        self,
        *,
        meter_provider: MeterProvider | None = None,
        ledger: str | os.PathLike[str] | None = None,
        id: str = "otel_metrics",
    ) -> None:
        self._id = id
        self._ledger = ledger
        self._way: Way = Given(get_meter_provider() if meter_provider is None else meter_provider)
        self._beginning = threading.RLock()
        self._left = False
        self._begin()
        _live.add(self)

    @classmethod
    def to_otlp(
        cls,
        endpoint: str = "http://localhost:4318",
        *,
        ledger: str | os.PathLike[str] | None = None,
        service_name: str | None = None,
        interval: float = 15.0,
        id: str = "otel_metrics",
    ) -> Self:
        """A recorder that pushes to a collector, from its first run on, and never blocks one.

        A forked process pushes what happens in it, from zero and under an instance id of its own.

        Args:
            endpoint: The collector: `http://host:port` or `https://host:port`, with the path of the
                collector if it has one (`/v1/metrics` is put behind it, unless it ends so),
                `grpc://host:port`, or `grpcs://host:port`.
            ledger: As for the class.
            service_name: The service the figures belong to; without one, what `OTEL_SERVICE_NAME` says, or
                `footprint`.
            interval: Seconds between two pushes.
            id: The watcher's id.

        Raises:
            RecorderError: The endpoint is none of these, `interval` is no time, or the exporter refuses what
                `OTEL_EXPORTER_OTLP_*` says.
            LedgerOpenError: `ledger` is not the path of a file.
        """
        from .otel_metrics_push import Push, metric_exporter
        from .otlp_endpoint import from_environment, parsed

        if not 0 < interval < math.inf:
            raise RecorderError("OtelMetrics.to_otlp(interval=) takes seconds above 0; give 15.")
        collector = parsed(endpoint, path="/v1/metrics")
        exporter = from_environment(lambda: metric_exporter(collector))
        push = Push(collector, exporter, service_name=service_name, interval=interval, id=id)
        return cls._by(push, ledger, id)

    @classmethod
    def to_prometheus(
        cls,
        *,
        port: int = 9464,
        host: str = "127.0.0.1",
        ledger: str | os.PathLike[str] | None = None,
        service_name: str | None = None,
        id: str = "otel_metrics",
    ) -> Self:
        """A recorder with a page at `http://host:port/metrics`, until it is closed.

        Prometheus sees what happened since it fetched the page last only if it comes once more before that. A
        forked process has no page, and counts nothing.

        Args:
            port: The port; with 0, one that is free.
            host: The address to listen at; the page asks nobody who he is.
            ledger: As for the class.
            service_name: As for `to_otlp`.
            id: The watcher's id.

        Raises:
            RecorderError: A package is not installed, or nobody can listen there.
            LedgerOpenError: `ledger` is not the path of a file.
        """
        from .otel_metrics_scrape import Scrape

        scrape = Scrape(host=host, port=port, service_name=service_name)
        made = cls._by(scrape, ledger, id)
        made.url = scrape.url
        return made

    @classmethod
    def _by(cls, way: Way, ledger: str | os.PathLike[str] | None, id: str) -> Self:
        try:
            made = cls(meter_provider=way.provider, ledger=ledger, id=id)
        except BaseException:
            way.close(0.0)
            raise
        made._way = way
        return made

    @property
    def id(self) -> str:
        """The watcher's id."""
        return self._id

    @property
    def dropped(self) -> int:
        """How many figures were lost for good: only those of a last push that failed."""
        return self._way.dropped

    @property
    def queued(self) -> int:
        """How many pushes are to come."""
        return self._way.queued

    @property
    def errors(self) -> int:
        """How many pushes failed; the next one says all they said."""
        return self._way.errors

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever runs the agent should know about this recorder."""
        trouble = None if self._approvals is None else self._approvals.trouble
        full = (
            f"{name} has {MAX_SETS} sets of labels; what comes further is counted as `{OTHER}`."
            for name in self._instruments.full
        )
        return (*self._way.notices, *(() if trouble is None else (trouble,)), *full)

    def on_event(self, event: Event, /) -> None:
        """Take one event."""
        if isinstance(event, AgentConfigured):
            if self._left:
                self._begin_anew()
            self._way.begin()
        elif self._left:
            # Of a run that belongs to the parent of this process.
            return
        self._tally.take(event)

    def flush(self, timeout: float, /) -> bool:
        """Push, within `timeout` seconds; False when that failed. Without a push there is nothing to ship."""
        return self._left or self._way.flush(timeout)

    def close(self, timeout: float, /) -> None:
        """Push once more, or free the port, within `timeout` seconds."""
        if self._approvals is not None:
            self._instruments.observed.remove(self._approvals)
        self._way.close(timeout)

    def _begin(self) -> None:
        self._instruments = instruments(self._way.provider)
        self._tally = Tally(self._instruments)
        self._approvals = None if self._ledger is None else Approvals(self._ledger)
        if self._approvals is not None:
            self._instruments.observed.add(self._approvals)

    def _begin_anew(self) -> None:
        with self._beginning:
            if self._left:
                self._way = self._way.anew()
                self._begin()
                self._left = False

    def _leave(self) -> None:
        self._beginning = threading.RLock()
        self._tally.renew()
        self._left = self._way.leave()
        self.url = None


_live: WeakSet[OtelMetrics] = WeakSet()


def _leave_all() -> None:
    for metrics in tuple(_live):
        metrics._leave()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nobody else may


if hasattr(os, "register_at_fork"):
    # Little is done here and the rest when a run begins: most children run no agent.
    os.register_at_fork(after_in_child=_leave_all)
