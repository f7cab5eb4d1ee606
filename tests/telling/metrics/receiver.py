"""A small OTLP/HTTP collector for metrics in the test process: it keeps every push."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

Sums = dict[tuple[str, ...], float]


class MetricsReceiver:
    """Listens on loopback as soon as it is made; `status` is what it answers every push with."""

    def __init__(self, *, status: int = 200) -> None:
        self.status = status
        self.pushes: list[ExportMetricsServiceRequest] = []
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
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

    def wait(self, count: int, *, timeout: float = 10.0) -> None:
        """Wait for `count` pushes, answered well or badly."""
        with self._changed:
            enough = self._changed.wait_for(lambda: len(self.pushes) >= count, timeout)
            assert enough, f"{len(self.pushes)} of {count} pushes came"

    def sums(self, metric: str, *labels: str) -> Sums:
        """The sums of a counter by these labels, added up over who pushed last under which instance."""
        out: Sums = {}
        with self._changed:
            last = {instance(push): push for push in self.pushes}
        for push in last.values():
            for found in _metrics(push):
                if found.name == metric:
                    for point in found.sum.data_points:
                        attributes = {pair.key: pair.value.string_value for pair in point.attributes}
                        key = tuple(attributes[label] for label in labels)
                        out[key] = out.get(key, 0) + (point.as_int or point.as_double)
        return {key: number for key, number in out.items() if number}

    def metric(self, name: str) -> Metric:
        """A metric as it was pushed last."""
        with self._changed:
            return next(found for found in _metrics(self.pushes[-1]) if found.name == name)

    def _take(self, body: bytes) -> None:
        with self._changed:
            self.pushes.append(ExportMetricsServiceRequest.FromString(body))
            self._changed.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                known = self.path == "/v1/metrics"
                if known:
                    receiver._take(body)
                answer = ExportMetricsServiceResponse().SerializeToString()
                self.send_response(receiver.status if known else 404)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing on standard error."""

        return Handler


def resource(push: ExportMetricsServiceRequest) -> dict[str, Any]:
    """Whom a push belongs to."""
    return {pair.key: pair.value.string_value for pair in push.resource_metrics[0].resource.attributes}


def instance(push: ExportMetricsServiceRequest) -> str:
    """Which process pushed it."""
    found: str = resource(push)["service.instance.id"]
    return found


def _metrics(push: ExportMetricsServiceRequest) -> list[Metric]:
    return [
        metric for group in push.resource_metrics for scope in group.scope_metrics for metric in scope.metrics
    ]
