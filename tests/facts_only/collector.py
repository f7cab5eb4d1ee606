"""A collector that takes whatever it is sent, over HTTP and gRPC, and keeps every byte of it."""

from __future__ import annotations

import gzip
import importlib
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Untyped, and its stubs are no dependency of anything here.
grpc: Any = importlib.import_module("grpc")

_SEAM = b"\n\x00\n"


class Collected:
    """What came: as it was sent, and unpacked; with the headers it came under.

    Attributes:
        endpoint: Where to send it, without a path.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._lock = threading.Lock()
        self._parts: list[bytes] = []

    def take(self, *parts: bytes) -> None:
        """Keep the parts of a request."""
        with self._lock:
            self._parts += parts

    def drained(self) -> bytes:
        """Everything that came since it was asked for; a text cannot begin in one part and end in another."""
        with self._lock:
            parts, self._parts = self._parts, []
        return _SEAM.join(parts)


@contextmanager
def over_http() -> Generator[Collected]:
    """Listens on loopback for POST requests, whatever their path."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            packed = self.headers.get("content-encoding") == "gzip"
            # Before the answer: whoever flushed may look at once.
            collected.take(f"{self.requestline}\n{self.headers}".encode(), body)
            if packed:
                collected.take(gzip.decompress(body))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collected = Collected(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield collected
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@contextmanager
def over_grpc() -> Generator[Collected]:
    """Listens on loopback for calls of any method; gRPC itself unpacks what was packed."""

    class Handler:
        def service(self, details: Any) -> Any:
            named = [details.method.encode()]
            for key, value in details.invocation_metadata:
                named += [key.encode(), value if isinstance(value, bytes) else str(value).encode()]

            def answer(body: bytes, context: Any) -> bytes:
                collected.take(*named, body)
                return b""

            return grpc.unary_unary_rpc_method_handler(answer)

    server = grpc.server(ThreadPoolExecutor(4), handlers=(Handler(),))
    collected = Collected(f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    server.start()
    try:
        yield collected
    finally:
        server.stop(0).wait(10)
