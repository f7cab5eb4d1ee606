"""A page of figures that Prometheus fetches, with a registry and a server of its own."""

from __future__ import annotations

import errno
import logging
import socket
import threading
from collections.abc import Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider

from footprint_core.errors import RecorderError

from .otel_metrics_ways import CLOSED
from .otlp_endpoint import resource

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_log = logging.getLogger("footprint")
_POLL_SECONDS = 0.1
_CLIENT_SECONDS = 5.0
_NO_PAGE = (
    "This process was forked, and /metrics is its parent's, so nothing is counted here; make OtelMetrics in "
    "the new process, with a port of its own, or use to_otlp."
)
_SAID = {
    errno.EADDRINUSE: "somebody else has it; give another port=",
    errno.EACCES: "this user may not have it; give a port= from 1024 on",
    errno.EADDRNOTAVAIL: "this machine has no such address; give another host=",
}


class Scrape:
    """The way of a page at `http://host:port/metrics`.

    A forked process has no page: the port is its parent's, and so are the figures on it.

    Args:
        host: The address to listen at.
        port: The port; with 0, one that is free.
        service_name: The service the figures belong to.

    Raises:
        RecorderError: A package is not installed, or nobody can listen there.
    """

    dropped = queued = errors = 0

    def __init__(self, *, host: str, port: int, service_name: str | None) -> None:
        registry, provider = _registry(service_name)
        self.provider: MeterProvider = provider
        self._left = self._closed = self._late = False
        self._server = _listening(host, port, _page(registry))
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), name="footprint-metrics", daemon=True
        )
        self._thread.start()
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self._server.server_address[1]}/metrics"

    @property
    def notices(self) -> tuple[str, ...]:
        """Whether this process has no page."""
        if self._late:
            return (CLOSED,)
        return (_NO_PAGE,) if self._left else ()

    def begin(self) -> None:
        """The page is there from the beginning, until it is closed."""
        if self._closed and not self._late:
            self._late = True
            _log.warning("%s", CLOSED)

    def leave(self) -> bool:
        """Let go of the port, which would stay taken when the parent gives it back."""
        self._server.socket.close()
        self._left = True
        return True

    def anew(self) -> Scrape:
        """The same without a page."""
        self.provider = NoOpMeterProvider()
        return self

    def flush(self, _timeout: float, /) -> bool:
        """Whoever fetches the page gets what there is."""
        return True

    def close(self, timeout: float, /) -> None:
        """Stop serving and free the port, within `timeout` seconds."""
        self._closed = not self._left
        if self._left or not self._thread.is_alive():
            return
        self._server.shutdown()
        self._thread.join(timeout)
        self._server.server_close()


class _Server(ThreadingMixIn, WSGIServer):
    """Answers in a thread each, so that a client that is slow keeps nobody waiting."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


class _SixServer(_Server):
    """The same for an address with colons."""

    address_family = socket.AF_INET6


class _Client(WSGIRequestHandler):
    """One request; who takes too long for it is left."""

    timeout = _CLIENT_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on standard error."""


def _registry(service_name: str | None) -> tuple[CollectorRegistry, MeterProvider]:
    """A registry, and the meter provider whose figures it shows."""
    try:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise RecorderError(
            "OtelMetrics.to_prometheus() needs two more packages; install footprint-ledger[prometheus]."
        ) from None
    registry = CollectorRegistry()
    # The labels of the scope say the same on every line.
    reader = PrometheusMetricReader(registry=registry, scope_info_enabled=False)
    # Nothing has to be shipped on exit.
    return registry, SdkMeterProvider([reader], resource=resource(service_name), shutdown_on_exit=False)


def _page(registry: CollectorRegistry) -> WSGIApplication:
    from prometheus_client import make_wsgi_app  # pyright: ignore[reportUnknownVariableType]

    whole = cast("WSGIApplication", make_wsgi_app(registry))
    one_at_a_time = threading.Lock()

    def page(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        # The exporter puts two collections that are made at once into one page, each line twice.
        with one_at_a_time:
            return whole(environ, start_response)

    return page


def _listening(host: str, port: int, page: WSGIApplication) -> WSGIServer:
    kind = _SixServer if ":" in host else _Server
    try:
        server = kind((host, port), _Client)
    except (OSError, OverflowError, TypeError) as error:
        why = _SAID.get(getattr(error, "errno", None) or 0, "give a host= and a port= of this machine")
        raise RecorderError(f"Nobody can listen at the port {port} of {host}: {why}.") from None
    server.set_app(page)
    return server
