"""A small OTLP/HTTP collector in the test process: it keeps what it gets and lets a test wait for it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status as OtlpStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedEvent:
    """A span event."""

    name: str
    time: int
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """A span as it came over the wire; ids are hex, times nanoseconds since the Unix epoch."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str | None
    start: int
    end: int
    status: str
    status_message: str
    attributes: dict[str, Any]
    events: tuple[ReceivedEvent, ...]
    links: tuple[tuple[str, str], ...]
    scope: str
    resource: dict[str, Any] = field(repr=False)


Tree = tuple[str, tuple["Tree", ...]]
"""A span's name, and the trees of its children by start."""


class OtlpReceiver:
    """Listens on loopback as soon as it is made; `status` is what it answers every export with."""

    def __init__(self, *, status: int = 200, port: int = 0) -> None:
        self.status = status
        self.requests = 0
        self.body = b""
        self._spans: list[ReceivedSpan] = []
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    @property
    def spans(self) -> tuple[ReceivedSpan, ...]:
        """Every span so far, by start; a parent before its children."""
        with self._changed:
            return tuple(sorted(self._spans, key=lambda span: (span.start, -span.end)))

    def wait(self, count: int, *, timeout: float = 10.0) -> tuple[ReceivedSpan, ...]:
        """The spans, as soon as there are `count`; fewer after `timeout` seconds fail the test."""
        with self._changed:
            enough = self._changed.wait_for(lambda: len(self._spans) >= count, timeout)
            assert enough, f"{len(self._spans)} of {count} spans came: {[span.name for span in self._spans]}"
        return self.spans

    def wait_requests(self, count: int, *, timeout: float = 10.0) -> None:
        """Wait for `count` exports, answered well or badly."""
        with self._changed:
            enough = self._changed.wait_for(lambda: self.requests >= count, timeout)
            assert enough, f"{self.requests} of {count} exports came"

    def named(self, name: str) -> ReceivedSpan:
        """The only span of that name."""
        found = [span for span in self.spans if span.name == name]
        assert len(found) == 1, f"{len(found)} spans are called {name!r}"
        return found[0]

    def tree(self) -> tuple[Tree, ...]:
        """The names as trees, one for each span whose parent did not come."""
        return tree(self.spans)

    def _take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self._changed:
            self.requests += 1
            self.body += body
            if self.status == 200:
                self._spans.extend(_received(request))
            self._changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                known = self.path == "/v1/traces"
                if known:
                    # Before the answer: whoever flushed may look at once.
                    receiver._take(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(receiver.status if known else 404)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing on standard error."""

        return Handler


def tree(spans: Iterable[ReceivedSpan]) -> tuple[Tree, ...]:
    """The names of spans as trees, one for each span whose parent is not among them."""
    ordered = sorted(spans, key=lambda span: (span.start, -span.end))
    known = {span.span_id for span in ordered}

    def below(parent: str) -> tuple[Tree, ...]:
        return tuple((span.name, below(span.span_id)) for span in ordered if span.parent_id == parent)

    return tuple((span.name, below(span.span_id)) for span in ordered if span.parent_id not in known)


def _received(request: ExportTraceServiceRequest) -> list[ReceivedSpan]:
    return [
        _span(span, scope.scope.name, _attributes(group.resource.attributes))
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]


def _span(span: OtlpSpan, scope: str, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        kind=OtlpSpan.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        status=OtlpStatus.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
        status_message=span.status.message,
        attributes=_attributes(span.attributes),
        events=tuple(
            ReceivedEvent(
                name=event.name, time=event.time_unix_nano, attributes=_attributes(event.attributes)
            )
            for event in span.events
        ),
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        scope=scope,
        resource=resource,
    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    which = value.WhichOneof("value")
    if which is None:
        return None
    if which == "array_value":
        return tuple(_value(item) for item in value.array_value.values)
    if which == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return getattr(value, which)
