"""The way to a collector: one exporter behind one bounded queue, with a budget for everything that waits."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from opentelemetry.context import attach, detach, set_value
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from footprint_core.errors import RecorderError
from footprint_observe import semconv
from footprint_observe.recording.handover import Handover

_BATCH = 128
_QUEUE = 2048
_DELAY_SECONDS = 1.0
_EXPORT_SECONDS = 3.0
_GRPC_PORT = 4317
_SERVICE = "footprint"


class QueuedSpans(SpanProcessor):
    """Hands ended spans to an exporter, from a thread, and counts what was lost on the way."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._handover: Handover[ReadableSpan] = Handover(
            self._export,
            name="footprint-otlp",
            batch=_BATCH,
            bound=_QUEUE,
            delay=_DELAY_SECONDS,
            give_back=exporter.shutdown,
        )

    def on_end(self, span: ReadableSpan) -> None:
        """Take an ended span."""
        context = span.get_span_context()
        if context is not None and context.trace_flags.sampled:
            self._handover.put(span)

    def shutdown(self) -> None:
        """What the SDK calls to close; within the time of one export."""
        self.close(_EXPORT_SECONDS)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """What the SDK calls to flush, within `timeout_millis` milliseconds."""
        return self.flush(timeout_millis / 1000)

    @property
    def dropped(self) -> int:
        """How many spans were lost."""
        return self._handover.dropped

    def flush(self, timeout: float, /) -> bool:
        """Ship what is queued, within `timeout` seconds; False when something is left, or was lost."""
        return self._handover.flush(timeout)

    def close(self, timeout: float, /) -> None:
        """Ship what is queued and give back the connection, within `timeout` seconds."""
        self._handover.close(timeout)

    def _export(self, spans: list[ReadableSpan]) -> bool:
        # Without the mark, an instrumented HTTP client makes a span of every export of spans.
        token = attach(set_value("suppress_instrumentation", True))
        try:
            return self._exporter.export(spans) is SpanExportResult.SUCCESS
        finally:
            detach(token)


def pipeline(endpoint: str, *, service_name: str | None) -> tuple[TracerProvider, QueuedSpans]:
    """A tracer provider of its own, and the queue its spans go through.

    Raises:
        RecorderError: The endpoint is none.
    """
    queue = QueuedSpans(otlp_exporter(endpoint))
    # The provider's own exit handler would wait half a minute for a collector that is gone.
    provider = TracerProvider(resource=_resource(service_name), shutdown_on_exit=False)
    provider.add_span_processor(queue)
    return provider, queue


def otlp_exporter(endpoint: str) -> SpanExporter:
    """The exporter for an endpoint: OTLP over HTTP (protobuf), or over gRPC.

    Args:
        endpoint: `http://host:port` or `https://host:port` (`/v1/traces` is added when there is no path),
            `grpc://host:port`, or `grpcs://host:port` with TLS.

    Raises:
        RecorderError: The endpoint is none of these.
    """
    parts, port = _parsed(endpoint)
    if parts.scheme in {"grpc", "grpcs"}:
        # It loads grpc, which takes longer than everything else here.
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
            OTLPSpanExporter as GrpcExporter,
        )

        host = parts.hostname or ""
        target = f"[{host}]" if ":" in host else host
        return GrpcExporter(
            endpoint=f"{target}:{port or _GRPC_PORT}",
            insecure=parts.scheme == "grpc",
            timeout=_EXPORT_SECONDS,
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
        OTLPSpanExporter as HttpExporter,
    )

    path = parts.path if parts.path.strip("/") else "/v1/traces"
    return HttpExporter(endpoint=parts._replace(path=path).geturl(), timeout=_EXPORT_SECONDS)


def _parsed(endpoint: str) -> tuple[SplitResult, int | None]:
    # The endpoint is not quoted in the error: it may hold a password.
    error = RecorderError(
        "That is no OTLP endpoint; give http://host:port, https://host:port or grpc://host:port."
    )
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except (AttributeError, TypeError, ValueError):
        raise error from None
    known = parts.scheme in {"http", "https", "grpc", "grpcs"}
    if not known or not parts.hostname or any(letter.isspace() for letter in endpoint):
        raise error
    return parts, port


def _resource(service_name: str | None) -> Resource:
    if service_name is not None:
        return Resource.create({semconv.SERVICE_NAME: service_name})
    found = Resource.create()
    if str(found.attributes.get(semconv.SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        return found.merge(Resource({semconv.SERVICE_NAME: _SERVICE}))
    return found
