"""The collector, as users set it up: metrics that are pushed through it look as those that are scraped.

A Jaeger is a collector too, with the parts that collector.yaml names, and takes that file.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from footprint_observe.shipped import dashboards
from recorders.otel_metrics import OtelMetrics
from recorders.otel_spans import OtelSpans
from seeded import STORIES, seed
from viewers import jaeger as finding
from viewers.jaeger_server import Jaeger

parser: Any = pytest.importorskip("prometheus_client.parser", reason="the extra `prometheus` reads the pages")

_LISTENERS = {
    "grpc": "receivers.otlp.protocols.grpc.endpoint",
    "http": "receivers.otlp.protocols.http.endpoint",
    "page": "exporters.prometheus.endpoint",
}
_SECONDS = 20.0
_TICK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """A running collector.

    Attributes:
        http: Where it takes OTLP over HTTP.
        page: Where Prometheus would scrape it.
        process: It.
    """

    http: str
    page: str
    process: subprocess.Popen[bytes]

    def until(self, done: Callable[[], object]) -> None:
        """Wait until something is so, within a bound."""
        deadline = time.monotonic() + _SECONDS
        while not done():
            assert time.monotonic() < deadline, "it was not so in time"
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_TICK_SECONDS)
                raise AssertionError("the collector ended")


@pytest.fixture
def collector(jaeger: Jaeger, tmp_path: Path) -> Generator[Collector]:
    """A collector that sends its traces to the Jaeger of the tests; nobody plays Tempo."""
    program = finding.found()
    assert program is not None
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.socket()) for name in (*_LISTENERS, "nobody")}
        for one in sockets.values():
            one.bind(("127.0.0.1", 0))
        ports = {name: one.getsockname()[1] for name, one in sockets.items()}
    endpoints = {
        "JAEGER_ENDPOINT": jaeger.grpc.removeprefix("grpc://"),
        "TEMPO_ENDPOINT": f"127.0.0.1:{ports['nobody']}",
    }
    moved = [f"--set={place}=127.0.0.1:{ports[name]}" for name, place in _LISTENERS.items()]
    quiet = "--set=service.telemetry.metrics.level=none"
    with (tmp_path / "log").open("wb") as log:
        ran = subprocess.Popen(
            [str(program), f"--config={dashboards() / 'collector.yaml'}", *moved, quiet],
            env={**os.environ, **endpoints},
            stdout=log,
            stderr=log,
        )
    try:
        page, http = f"http://127.0.0.1:{ports['page']}/metrics", f"http://127.0.0.1:{ports['http']}"
        running = Collector(http=http, page=page, process=ran)
        running.until(lambda: _answers(page))
        yield running
    finally:
        ran.kill()
        ran.wait()


def _answers(page: str) -> bool:
    try:
        with urlopen(page, timeout=5):
            return True
    except (URLError, OSError):
        return False


def figures(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of a page by its name and labels, but for those that say who tells."""
    with urlopen(page, timeout=10) as answer:
        text = answer.read().decode()
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            # To Prometheus a label that is empty is none, and a bound is a number.
            labels = {
                name: str(float(word)) if name == "le" else word
                for name, word in sample.labels.items()
                if word and name not in {"job", "instance"} and not name.startswith("otel_scope")
            }
            # The two recorders of this test are told of each other's health, a moment apart.
            if sample.name.startswith(("footprint_recorder_", "target_info")) or sample.name.endswith(
                "_created"
            ):
                continue
            found[sample.name, tuple(sorted(labels.items()))] = sample.value
    return found


def test_pushed_metrics_have_the_names_labels_and_values_of_those_that_are_scraped(
    collector: Collector, tmp_path: Path
) -> None:
    scraped = OtelMetrics.to_prometheus(port=0, id="scraped")
    pushed = OtelMetrics.to_otlp(collector.http, id="pushed", interval=3600)
    try:
        seed(tmp_path / "l.db", len(STORIES), [scraped, pushed])
        assert pushed.flush(10)
        assert scraped.url is not None
        here = figures(scraped.url)
        collector.until(lambda: figures(collector.page).keys() >= here.keys())
        assert figures(collector.page) == pytest.approx(here)
        assert len(here) > 500
    finally:
        pushed.close(5)
        scraped.close(5)


def test_traces_go_on_to_jaeger(collector: Collector, jaeger: Jaeger, tmp_path: Path) -> None:
    spans = OtelSpans.to_otlp(collector.http, service_name="through-a-collector")
    seed(tmp_path / "l.db", 3, [spans], days=0.1)
    assert spans.flush(10)
    spans.close(5)
    # Two runs, and one that paused and went on in a trace of its own.
    collector.until(lambda: len(jaeger.search("through-a-collector")) == 4)
