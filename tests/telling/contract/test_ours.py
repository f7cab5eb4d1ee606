"""Every recorder of ours passes the contract that recorders of others are held to."""

from __future__ import annotations

import gzip
import io
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from footprint_core import Recorder
from footprint_core.events import EVENTS, Event
from footprint_observe.recording import queued
from footprint_observe.testing import RecorderContract, sample_events
from otlp_receiver import OtlpReceiver
from recorders.console import Console
from recorders.jsonl import Jsonl
from recorders.memory import Memory
from recorders.otel_metrics import OtelMetrics
from recorders.otel_spans import OtelSpans


class Stands:
    """Stands still until the test is over."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def still(self) -> int:
        self.over.wait(60)
        raise OSError


@pytest.fixture
def stands() -> Iterator[Stands]:
    stands = Stands()
    yield stands
    stands.over.set()


class Collector:
    """Takes whatever is posted to it, and keeps the bytes."""

    def __init__(self) -> None:
        self.body = b""
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                collector.body += gzip.decompress(body) if self.headers.get("content-encoding") else body
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing on standard error."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class TestConsole(RecorderContract):
    @pytest.fixture(autouse=True)
    def somewhere(self, tmp_path: Path, stands: Stands) -> Iterator[None]:
        self.stands = stands
        with (tmp_path / "printed").open("a+") as self.file:
            yield

    def make(self) -> Recorder:
        return Console(file=self.file)

    def stuck(self) -> Recorder:
        stands = self.stands

        class File(io.StringIO):
            def write(self, text: str, /) -> int:
                return stands.still()

        return Console(file=File())

    def shipped(self) -> bytes:
        return Path(self.file.name).read_bytes()


class TestJsonl(RecorderContract):
    @pytest.fixture(autouse=True)
    def somewhere(self, tmp_path: Path, stands: Stands) -> None:
        self.path = tmp_path / "events.jsonl"
        self.path.touch()
        self.stands = stands

    def make(self) -> Recorder:
        return Jsonl(self.path)

    def stuck(self) -> Recorder:
        stands = self.stands

        class File(io.BytesIO):
            def write(self, data: Any, /) -> int:
                return stands.still()

        return Jsonl(File())

    def shipped(self) -> bytes:
        return self.path.read_bytes()


class TestMemory(RecorderContract):
    @pytest.fixture(autouse=True)
    def somewhere(self) -> None:
        self.made: list[Memory] = []

    def make(self) -> Recorder:
        self.made.append(Memory())
        return self.made[-1]

    def shipped(self) -> bytes:
        return repr([memory.events for memory in self.made]).encode()


class TestOtelSpans(RecorderContract):
    """On a tracer provider of the application."""

    @pytest.fixture(autouse=True)
    def somewhere(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def make(self) -> Recorder:
        return OtelSpans(tracer_provider=self.provider)

    def shipped(self) -> bytes:
        return "\n".join(span.to_json() for span in self.exporter.get_finished_spans()).encode()


class TestOtelSpansOverOtlp(RecorderContract):
    """On a pipeline of their own."""

    @pytest.fixture(autouse=True)
    def somewhere(self) -> Iterator[None]:
        with ExitStack() as self.open:
            self.collector = self.open.enter_context(OtlpReceiver())
            yield

    def make(self) -> Recorder:
        return OtelSpans.to_otlp(self.collector.endpoint)

    def stuck(self) -> Recorder:
        silent = self.open.enter_context(socket.create_server(("127.0.0.1", 0)))
        return OtelSpans.to_otlp(f"http://127.0.0.1:{silent.getsockname()[1]}")

    def shipped(self) -> bytes:
        return self.collector.body


class TestOtelMetrics(RecorderContract):
    """On a meter provider of the application. Nothing in a metric says which run it counts."""

    crowd = None

    @pytest.fixture(autouse=True)
    def somewhere(self) -> Iterator[None]:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader], shutdown_on_exit=False)
        yield
        self.provider.shutdown()

    def make(self) -> Recorder:
        return OtelMetrics(meter_provider=self.provider)

    def shipped(self) -> bytes:
        told = self.reader.get_metrics_data()
        return b"" if told is None else told.to_json().encode()


class TestOtelMetricsOverOtlp(RecorderContract):
    """On a pipeline of their own."""

    crowd = None

    @pytest.fixture(autouse=True)
    def somewhere(self) -> Iterator[None]:
        with ExitStack() as self.open:
            self.collector = self.open.enter_context(Collector())
            yield

    def make(self) -> Recorder:
        return OtelMetrics.to_otlp(self.collector.endpoint)

    def stuck(self) -> Recorder:
        silent = self.open.enter_context(socket.create_server(("127.0.0.1", 0)))
        return OtelMetrics.to_otlp(f"http://127.0.0.1:{silent.getsockname()[1]}")

    def shipped(self) -> bytes:
        return self.collector.body


class Slow:
    """A watcher that writes to a file, in the thread that tells it."""

    id = "slow"

    def __init__(self, path: Path, stands: Stands | None = None) -> None:
        self._path = path
        self._stands = stands

    def on_event(self, event: Event, /) -> None:
        if self._stands is not None:
            self._stands.still()
        with self._path.open("a") as file:
            file.write(f"{event}\n")


class TestQueued(RecorderContract):
    """Whatever a watcher does, `queued` makes a recorder of it."""

    @pytest.fixture(autouse=True)
    def somewhere(self, tmp_path: Path, stands: Stands) -> None:
        self.path = tmp_path / "told"
        self.path.touch()
        self.stands = stands

    def make(self) -> Recorder:
        return queued(Slow(self.path))

    def stuck(self) -> Recorder:
        return queued(Slow(Path(os.devnull), self.stands))

    def shipped(self) -> bytes:
        return self.path.read_bytes()


def test_the_samples_are_every_event_with_every_field() -> None:
    events = sample_events("f" * 32)
    assert {type(event) for event in events} == set(EVENTS.values())
    assert len(events) == len(EVENTS)
    assert {event.run_id for event in events} == {"f" * 32}
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
