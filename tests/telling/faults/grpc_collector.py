"""A collector that speaks OTLP over gRPC, with or without TLS, and keeps what came."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)


class Came(TraceServiceServicer):
    """What came.

    Attributes:
        span_ids: The ids of the spans, in order.
        headers: What the last request said beside its spans.
    """

    def __init__(self) -> None:
        self.span_ids: list[str] = []
        self.headers: dict[str, str] = {}

    def Export(self, request: ExportTraceServiceRequest, context: Any) -> ExportTraceServiceResponse:
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
    *, port: int = 0, credentials: grpc.ServerCredentials | None = None
) -> Generator[tuple[Came, int]]:
    """A collector on loopback, and its port."""
    came = Came()
    server = grpc.server(ThreadPoolExecutor(2))
    add_TraceServiceServicer_to_server(came, server)
    address = f"127.0.0.1:{port}"
    bound = (
        server.add_insecure_port(address)
        if credentials is None
        else server.add_secure_port(address, credentials)
    )
    server.start()
    try:
        yield came, bound
    finally:
        server.stop(0).wait(10)
