"""Collectors as they fail: gone, silent, slow, refusing, hanging up, or not what they are taken for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)

SLOW_SECONDS = 2.0


class Fault(Protocol):
    """Makes a collector that fails in one way, and says its endpoint."""

    def __call__(self) -> AbstractContextManager[str]: ...


def free_port() -> int:
    """A port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def gone() -> Generator[str]:
    """Nobody listens."""
    yield f"http://127.0.0.1:{free_port()}"


@contextmanager
def gone_grpc() -> Generator[str]:
    """Nobody listens, over gRPC."""
    yield f"grpc://127.0.0.1:{free_port()}"


@contextmanager
def unknown_host() -> Generator[str]:
    """The name means nothing to a name server."""
    yield "http://no-such-host.invalid:4318"


@contextmanager
def silent() -> Generator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def silent_grpc() -> Generator[str]:
    """Takes connections and never answers, over gRPC."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"grpc://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def slow() -> Generator[str]:
    """Answers well, late."""
    with _answering(after=SLOW_SECONDS) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def refusing() -> Generator[str]:
    """Answers that the request is bad."""
    with _answering(400) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def overloaded() -> Generator[str]:
    """Answers that it has no time, and asks to come back in a minute."""
    with _answering(503, {"retry-after": "60"}) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def busy() -> Generator[str]:
    """Answers that it has no time, and asks to come back at once, for ever."""
    with _answering(503, {"retry-after": "0"}) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def hanging_up() -> Generator[str]:
    """Reads a request and hangs up."""
    with _answering(None) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def by_connection() -> Generator[tuple[str, dict[int, bytes]]]:
    """Answers well, and keeps what came under the port of the client, one for each connection."""
    came: dict[int, bytes] = {}
    with _answering(came=came) as port:
        yield f"http://127.0.0.1:{port}", came


@contextmanager
def half_closing() -> Generator[str]:
    """Answers well, lets a connection stand, and then closes it without a word."""
    with _answering(closes=True) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def without_tls() -> Generator[str]:
    """Speaks no TLS where TLS is expected."""
    with _answering() as port:
        yield f"https://127.0.0.1:{port}"


@contextmanager
def not_grpc() -> Generator[str]:
    """Speaks HTTP/1.1 where gRPC is expected."""
    with _answering() as port:
        yield f"grpc://127.0.0.1:{port}"


@contextmanager
def redirecting() -> Generator[str]:
    """Sends elsewhere, as a proxy does that wants TLS."""
    with _answering(308, {"location": "http://127.0.0.1:1/v1/traces"}) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def a_web_page() -> Generator[str]:
    """Answers anything with a page, as the page of a viewer does at a mistaken port."""
    with _answering(200, {"content-type": "text/html; charset=utf-8"}, body=b"<html></html>") as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def rejecting() -> Generator[str]:
    """Takes the request, and says that it rejected spans of it."""
    told = ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=5))
    body = told.SerializeToString()
    with _answering(200, {"content-type": "application/x-protobuf"}, body=body) as port:
        yield f"http://127.0.0.1:{port}"


FAULTS: dict[str, Fault] = {
    "gone": gone,
    "gone-grpc": gone_grpc,
    "unknown-host": unknown_host,
    "silent": silent,
    "silent-grpc": silent_grpc,
    "refusing": refusing,
    "overloaded": overloaded,
    "busy": busy,
    "hanging-up": hanging_up,
    "redirecting": redirecting,
    "a-web-page": a_web_page,
    "rejecting": rejecting,
    "without-tls": without_tls,
    "not-grpc": not_grpc,
}
"""Every way in which no span arrives."""


@contextmanager
def _answering(
    status: int | None = 200,
    headers: dict[str, str] | None = None,
    *,
    body: bytes = b"",
    after: float = 0.0,
    closes: bool = False,
    came: dict[int, bytes] | None = None,
) -> Generator[int]:
    """Listen, and answer every request alike: after some seconds, or never when there is no status."""
    ending = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            got = self.rfile.read(int(self.headers.get("content-length", "0")))
            if came is not None:
                came[self.client_address[1]] = came.get(self.client_address[1], b"") + got
            ending.wait(after)
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = closes

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on standard error."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of a client that hangs up first."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        ending.set()
        server.shutdown()
        thread.join(10)
        server.server_close()
