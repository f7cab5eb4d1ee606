"""Pushes figures to a collector: all of them, every so often, from a thread, within a budget.

The SDK's periodic reader is not used for this. Its flush ignores its timeout and says True whatever
happened, and a forked child pushes what its parent counted.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import uuid
from weakref import WeakSet

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)
from opentelemetry.sdk.resources import Resource

from footprint_observe import semconv as n
from footprint_observe.recording import Handover

from .otel_metrics_ways import CLOSED
from .otlp_endpoint import EXPORT_SECONDS, Endpoint, resource
from .otlp_quiet import Outage
from .otlp_session import collector_session

_log = logging.getLogger("footprint")
# Whatever asks for a push meanwhile gets the same one.
_TOGETHER = 1024


class Push:
    """The way to a collector.

    Sums only grow, so a push that fails loses nothing: the next one says all it said. What can be lost is the
    last one. From the first run on there is always one push to come.

    Args:
        collector: Where the collector is.
        exporter: What pushes there; without one, it is made with the first push.
        service_name: The service the figures belong to.
        interval: Seconds between two pushes.
        id: The recorder's id.
        parent: The instance id of the process this one was forked from.
    """

    def __init__(
        self,
        collector: Endpoint,
        exporter: MetricExporter | None = None,
        *,
        service_name: str | None,
        interval: float,
        id: str,
        parent: str = "",
    ) -> None:
        self._collector = collector
        self._exporter = exporter
        self._process = os.getpid()
        self._service_name = service_name
        self._interval = interval
        self._id = id
        self._outage = Outage()
        self._reader = InMemoryMetricReader()
        who = _whose(resource(service_name), parent)
        self._instance = str(who.attributes[n.SERVICE_INSTANCE])
        # The provider's own exit handler would wait half a minute for a collector that is gone.
        self.provider = MeterProvider([self._reader], resource=who, shutdown_on_exit=False)
        # Held when it is decided whether there is a push to come. Reentrant: a signal handler may close it.
        self._deciding = threading.RLock()
        self._begun = self._ending = self._failing = self._late = False
        self._handover: Handover[None] = Handover(
            self._ship,
            id=id,
            batch=_TOGETHER,
            bound=_TOGETHER,
            delay=interval,
            give_back=self._give_back,
        )
        _pushes.add(self)

    @property
    def dropped(self) -> int:
        """1 when the last figures could not be pushed."""
        return min(1, self._handover.dropped)

    @property
    def queued(self) -> int:
        """1 as long as there is a push to come."""
        return min(1, self._handover.queued)

    @property
    def errors(self) -> int:
        """How many pushes failed."""
        return self._handover.errors

    @property
    def notices(self) -> tuple[str, ...]:
        """Whether the collector takes what it gets."""
        if self._late:
            return (CLOSED,)
        if self.dropped:
            return ("The last figures could not be pushed; look at the collector and its address.",)
        if self._failing:
            return ("Figures cannot be pushed at the moment; look at the collector and its address.",)
        return ()

    def begin(self) -> None:
        """See to it that figures are pushed from now on."""
        if self._begun and not self._ending:
            return
        with self._deciding:
            if self._ending:
                if not self._late:
                    _log.warning("%s", CLOSED)
                self._late = True
            else:
                # Asked for once more by a run that began at the same moment, it is the same push.
                self._begun = True
                self._handover.put(None)

    def leave(self) -> bool:
        """The connection and the figures are the parent's, who pushes them."""
        self._deciding = threading.RLock()
        self._begun = False
        return True

    def anew(self) -> Push:
        """A way of this process, with figures from zero under an id of their own; closed, if this one is."""
        made = Push(
            self._collector,
            service_name=self._service_name,
            interval=self._interval,
            id=self._id,
            parent=self._instance,
        )
        if self._ending:
            made.end()
        return made

    def flush(self, timeout: float, /) -> bool:
        """Push within `timeout` seconds; False when that failed, or took longer."""
        with self._deciding:
            if not self._begun or self._ending:
                return True
            before = self._handover.errors
            self._handover.put(None)
        return self._handover.flush(timeout) and self._handover.errors == before

    def close(self, timeout: float, /) -> None:
        """Push once more and give back the connection, within `timeout` seconds."""
        before = self.dropped
        self.end()
        self._handover.close(timeout)
        if self.dropped > before:
            _log.warning("The recorder %s could not push its last figures when it closed.", self._id)

    def end(self) -> None:
        """The next push is the last one, and due at once."""
        with self._deciding:
            if self._begun and not self._ending:
                self._handover.put(None)
            self._ending = True

    def _ship(self, _asked: list[None]) -> bool:
        pushed = self._push()
        self._failing = not pushed
        with self._deciding:
            if self._ending:
                return pushed
            self._handover.put(None)
        if not pushed:
            self._handover.failed()
        return True

    def _push(self) -> bool:
        try:
            with self._outage.exporting():
                data = self._reader.get_metrics_data()
                if self._exporter is None:
                    self._exporter = metric_exporter(self._collector)
                if data is not None and not _exported(self._exporter, data):
                    return False
        except Exception as error:  # noqa: BLE001 - whatever an exporter raises, the next push comes
            if not self._failing:
                _log.warning("The recorder %s could not push: %s.", self._id, type(error).__name__)
            return False
        self._outage.over()
        return True

    def _give_back(self) -> None:
        if self._exporter is not None and self._process == os.getpid():
            self._exporter.shutdown()  # pyright: ignore[reportUnknownMemberType]


def _exported(exporter: MetricExporter, data: MetricsData) -> bool:
    return exporter.export(data) is MetricExportResult.SUCCESS  # pyright: ignore[reportUnknownMemberType]


def metric_exporter(collector: Endpoint) -> MetricExporter:
    """The exporter for a collector. It reads headers and certificates from `OTEL_EXPORTER_OTLP_*`."""
    if collector.grpc:
        # It loads grpc, which takes longer than everything else here.
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
            OTLPMetricExporter as GrpcExporter,
        )

        return GrpcExporter(endpoint=collector.target, insecure=not collector.secure, timeout=EXPORT_SECONDS)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
        OTLPMetricExporter as HttpExporter,
    )

    return HttpExporter(endpoint=collector.target, timeout=EXPORT_SECONDS, session=collector_session())


def _whose(found: Resource, parent: str) -> Resource:
    """The resource with an id of this process: two that push under one id take turns with one series."""
    if found.attributes.get(n.SERVICE_INSTANCE) not in {None, parent}:
        return found
    return found.merge(Resource({n.SERVICE_INSTANCE: str(uuid.uuid4())}))


_pushes: WeakSet[Push] = WeakSet()


def _end_all() -> None:
    # Behind this, the queues are closed, and each makes its last push.
    for push in tuple(_pushes):
        push.end()


atexit.register(_end_all)
