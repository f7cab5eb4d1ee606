"""A Jaeger that runs on loopback while a test does: what it takes, and what its query API answers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from viewers.jaeger_spans import Span, spans_of

CONFIG = Path(__file__).parents[2] / "dashboards" / "jaeger.yaml"
"""The configuration users get, with other ports."""

_LISTENERS = {
    "otlp_grpc": "receivers.otlp.protocols.grpc.endpoint",
    "otlp_http": "receivers.otlp.protocols.http.endpoint",
    "query": "extensions.jaeger_query.http.endpoint",
    "query_grpc": "extensions.jaeger_query.grpc.endpoint",
    "health": "extensions.healthcheckv2.http.endpoint",
}
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
# It stores what it acknowledged a moment later.
_ARRIVE_SECONDS = 10.0
_TICK_SECONDS = 0.02
# Another process may take a port between its choice and its use.
_TRIES = 3


class Jaeger:
    """A running Jaeger.

    Attributes:
        http: The endpoint for OTLP over HTTP.
        grpc: The endpoint for OTLP over gRPC.
        query: The address of its query API, and of its pages.
    """

    def __init__(self, process: subprocess.Popen[bytes], ports: dict[str, int]) -> None:
        self.http = f"http://127.0.0.1:{ports['otlp_http']}"
        self.grpc = f"grpc://127.0.0.1:{ports['otlp_grpc']}"
        self.query = f"http://127.0.0.1:{ports['query']}"
        self._process = process

    def get(self, path: str, **parameters: str | int) -> Any:
        """What its API answers, decoded."""
        with urlopen(f"{self.query}{path}?{urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)

    def search(self, service: str, tags: Mapping[str, str] | None = None) -> tuple[tuple[Span, ...], ...]:
        """The traces in which one span of a service has all these tags; the first to begin is first."""
        asked: dict[str, str | int] = {"service": service, "tags": json.dumps(tags or {}), "limit": 1500}
        found = [spans_of(trace) for trace in self.get("/api/traces", **asked)["data"] or ()]
        return tuple(sorted(found, key=lambda spans: spans[0].start))

    def wait(
        self, count: int, service: str, tags: Mapping[str, str] | None = None
    ) -> tuple[tuple[Span, ...], ...]:
        """The traces that are found, as soon as they have so many spans; fewer or more fail the test."""
        deadline = time.monotonic() + _ARRIVE_SECONDS
        while True:
            found = self.search(service, tags)
            names = [span.name for spans in found for span in spans]
            if len(names) >= count:
                assert len(names) == count, names
                return found
            assert time.monotonic() < deadline, names
            self._tick()

    def await_health(self, port: int) -> bool:
        """Wait until all of it takes and answers; False when it ended instead."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            try:
                with urlopen(f"http://127.0.0.1:{port}/status", timeout=5) as answer:
                    if json.load(answer)["healthy"]:
                        return True
            except (URLError, OSError):
                pass
            if self._tick():
                return False
        raise AssertionError("Jaeger started, and was not healthy in time")

    def _tick(self) -> bool:
        """Let some time pass; True when the process has ended."""
        try:
            self._process.wait(_TICK_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True


@contextmanager
def serving(program: Path, log: Path) -> Generator[Jaeger]:
    """A Jaeger on loopback; what it says goes to a file, and what it keeps beside it."""
    for _ in range(_TRIES):
        ports = _free_ports()
        with (
            log.open("wb") as said,
            subprocess.Popen(
                _command(program, ports),
                # Where it is cleared away even when this process is killed.
                env={**os.environ, "TMPDIR": str(log.parent)},
                stdout=said,
                stderr=said,
            ) as ran,
        ):
            try:
                jaeger = Jaeger(ran, ports)
                if jaeger.await_health(ports["health"]):
                    yield jaeger
                    return
            finally:
                _stop(ran)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace")[-2000:])


def _command(program: Path, ports: dict[str, int]) -> list[str]:
    moved = [f"--set={_LISTENERS[name]}=127.0.0.1:{port}" for name, port in ports.items()]
    return [str(program), f"--config={CONFIG}", *moved]


def _free_ports() -> dict[str, int]:
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.socket()) for name in _LISTENERS}
        for one in sockets.values():
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in sockets.items()}


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
