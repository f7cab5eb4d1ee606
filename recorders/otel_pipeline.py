"""The way to a collector: one exporter behind one bounded queue, with a budget for everything that waits."""

from __future__ import annotations

import os
from collections.abc import Callable

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from footprint_observe.recording import Handover, Shipped

from .otlp_endpoint import EXPORT_SECONDS, Endpoint, from_environment, parsed, resource
from .otlp_quiet import Outage
from .otlp_session import collector_session

_BATCH = 128
_QUEUE = 2048
_DELAY_SECONDS = 1.0


class QueuedSpans(SpanProcessor):
    """Hands ended spans to an exporter, from a thread, and counts what was lost on the way.

    While nobody is at the collector's address spans wait, the oldest of the queue being lost when it is full.
    What a collector refuses, or does not answer in time, is lost: it may have it.

    Args:
        make: Makes the exporter; called again in a forked process, since a connection cannot be shared.
        anybody_there: Whether a connection to the collector can be made.
        id: The id of the recorder.
    """

    def __init__(
        self, make: Callable[[], SpanExporter], *, anybody_there: Callable[[], bool], id: str
    ) -> None:
        self._make = make
        self._anybody_there = anybody_there
        self._outage = Outage()
        self._failed = False
        self._exporter = from_environment(make)
        self._process = os.getpid()
        self._handover: Handover[ReadableSpan] = Handover(
            self._export,
            id=id,
            batch=_BATCH,
            bound=_QUEUE,
            delay=_DELAY_SECONDS,
            give_back=self._shut_down,
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Take an ended span."""
        context = span.get_span_context()
        if context is not None and context.trace_flags.sampled:
            self._handover.put(span)

    def shutdown(self) -> None:
        """What the SDK calls to close; within the time of one export."""
        self.close(EXPORT_SECONDS)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """What the SDK calls to flush, within `timeout_millis` milliseconds."""
        return self.flush(timeout_millis / 1000)

    @property
    def dropped(self) -> int:
        """How many spans were lost."""
        return self._handover.dropped

    @property
    def queued(self) -> int:
        """How many spans wait."""
        return self._handover.queued

    @property
    def notices(self) -> tuple[str, ...]:
        """Whether spans came after it was closed."""
        return self._handover.notices

    @property
    def errors(self) -> int:
        """How many exports failed."""
        return self._handover.errors

    @property
    def failing(self) -> bool:
        """Whether the last export failed; a forked process has made none yet."""
        return self._failed and self._process == os.getpid()

    def flush(self, timeout: float, /) -> bool:
        """Ship what is queued, within `timeout` seconds; False when something is left, or was lost."""
        return self._handover.flush(timeout)

    def close(self, timeout: float, /) -> None:
        """Ship what is queued and give back the connection, within `timeout` seconds."""
        self._handover.close(timeout)

    def _export(self, spans: list[ReadableSpan]) -> Shipped:
        if self._process != os.getpid():
            self._exporter, self._process = self._make(), os.getpid()
        self._failed = not self._exported(spans)
        if not self._failed:
            self._outage.over()
            return True
        if not self._anybody_there():
            return "later"
        return False

    def _exported(self, spans: list[ReadableSpan]) -> bool:
        with self._outage.exporting():
            try:
                return self._exporter.export(spans) is SpanExportResult.SUCCESS
            except Exception as error:  # noqa: BLE001 - not every version keeps to itself what a network raises
                self._outage.failed(error)
                return False

    def _shut_down(self) -> None:
        if self._process == os.getpid():
            self._exporter.shutdown()


def pipeline(endpoint: str, *, service_name: str | None, id: str) -> tuple[TracerProvider, QueuedSpans]:
    """A tracer provider of its own, and the queue its spans go through.

    Raises:
        RecorderError: The endpoint is none.
    """
    collector = parsed(endpoint, path="/v1/traces")
    queue = QueuedSpans(lambda: span_exporter(collector), anybody_there=collector.anybody_there, id=id)
    # The provider's own exit handler would wait half a minute for a collector that is gone.
    provider = TracerProvider(resource=resource(service_name), shutdown_on_exit=False)
    provider.add_span_processor(queue)
    return provider, queue


def span_exporter(collector: Endpoint) -> SpanExporter:
    """The exporter for a collector. It reads headers and certificates from `OTEL_EXPORTER_OTLP_*`."""
    if collector.grpc:
        # It loads grpc, which takes longer than everything else here.
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
            OTLPSpanExporter as GrpcExporter,
        )

        return GrpcExporter(endpoint=collector.target, insecure=not collector.secure, timeout=EXPORT_SECONDS)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
        OTLPSpanExporter as HttpExporter,
    )

    return HttpExporter(endpoint=collector.target, timeout=EXPORT_SECONDS, session=collector_session())
