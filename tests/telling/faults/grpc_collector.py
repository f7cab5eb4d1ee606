"""A collector that speaks OTLP over gRPC, with or without TLS, and keeps what came."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

# Neither has types.
grpc: Any = import_module("grpc")
service: Any = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc")


class Came:
    """What came.

    Attributes:
        span_ids: The ids of the spans, in order.
        headers: What the last request said beside its spans.
    """

    def __init__(self) -> None:
        self.span_ids: list[str] = []
        self.headers: dict[str, str] = {}

    def Export(  # noqa: N802 - its name on the wire
        self, request: ExportTraceServiceRequest, context: Any
    ) -> ExportTraceServiceResponse:
        """Take an export."""
        self.headers = dict(context.invocation_metadata())
        self.span_ids += [
            span.span_id.hex()
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]
        return ExportTraceServiceResponse()


@contextmanager
def grpc_collector(
    *, port: int = 0, certificate: tuple[bytes, bytes] | None = None
) -> Generator[tuple[Came, int]]:
    """A collector on loopback, and its port; with a certificate and its key it speaks TLS."""
    came = Came()
    server = grpc.server(ThreadPoolExecutor(2))
    service.add_TraceServiceServicer_to_server(came, server)
    address = f"127.0.0.1:{port}"
    if certificate is None:
        bound: int = server.add_insecure_port(address)
    else:
        chain, key = certificate
        bound = server.add_secure_port(address, grpc.ssl_server_credentials([(key, chain)]))
    server.start()
    try:
        yield came, bound
    finally:
        server.stop(0).wait(10)
