"""A Prometheus that runs on loopback while a test does, with the configuration users get and other ports."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from footprint_observe.shipped import dashboards

Labels = tuple[tuple[str, str], ...]

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_SCRAPE_SECONDS = 20.0
_TICK_SECONDS = 0.05
# Another process may take the port between its choice and its use.
_TRIES = 3


class Prometheus:
    """A running Prometheus that scrapes one program.

    Attributes:
        url: Its address.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._process = process

    def get(self, path: str, **parameters: str) -> Any:
        """What its API answers, decoded."""
        with urlopen(f"{self.url}{path}?{urlencode(parameters)}", timeout=10) as answer:
            read = json.load(answer)
        assert read["status"] == "success", read
        return read["data"]

    def query(self, text: str, at: float) -> dict[Labels, float]:
        """What a query comes to at a time: its series, without their names, and their values."""
        found = self.get("/api/v1/query", query=text, time=f"{at:.3f}")
        assert found["resultType"] == "vector", found
        return {
            tuple(sorted((name, word) for name, word in one["metric"].items() if name != "__name__")): float(
                one["value"][1]
            )
            for one in found["result"]
        }

    def scraped(self, after: float) -> float:
        """The time of the first scrape behind a time; all series of the program have a sample there."""
        deadline = time.monotonic() + _SCRAPE_SECONDS
        while True:
            found = self.get("/api/v1/query", query='up{job="footprint"}[5m]')["result"]
            times = [
                float(at) for one in found for at, up in one["values"] if up == "1" and float(at) > after
            ]
            if times:
                return min(times)
            assert time.monotonic() < deadline, "Prometheus scraped nothing in time"
            self._tick()

    def await_ready(self) -> bool:
        """Wait until it answers; False when it ended instead."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            try:
                with urlopen(f"{self.url}/-/ready", timeout=5) as answer:
                    if answer.status == 200:
                        return True
            except (URLError, OSError):
                pass
            if self._tick():
                return False
        raise AssertionError("Prometheus started, and was not ready in time")

    def _tick(self) -> bool:
        """Let some time pass; True when the process has ended."""
        try:
            self._process.wait(_TICK_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True


@contextmanager
def scraping(page: str, folder: Path) -> Generator[Prometheus]:
    """A Prometheus that scrapes the page at an address every second.

    Args:
        page: The address, as `OtelMetrics.to_prometheus` says it.
        folder: Where it keeps what it has; empty.
    """
    (folder / "prometheus.yaml").write_text(_config(urlsplit(page).netloc), encoding="utf-8")
    shutil.copy(dashboards() / "alerts.yaml", folder)
    log = folder / "log"
    for _ in range(_TRIES):
        port = _free_port()
        command = [
            "prometheus",
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with log.open("wb") as out:
            ran = subprocess.Popen(command, stdout=out, stderr=out)
        try:
            running = Prometheus(ran, port)
            if running.await_ready():
                yield running
                return
        finally:
            _stop(ran)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace")[-2000:])


def _config(target: str) -> str:
    """The configuration users get, with the page of a test, every second."""
    text = (dashboards() / "prometheus.yaml").read_text(encoding="utf-8")
    for shipped, here, times in (("localhost:9464", target, 1), ("_interval: 15s", "_interval: 1s", 2)):
        assert text.count(shipped) == times, shipped
        text = text.replace(shipped, here)
    return text


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
