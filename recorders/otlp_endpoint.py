"""Where a collector is: an endpoint as written, what exporters want of it, and whether anybody is there."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from opentelemetry.sdk.resources import Resource

from footprint_core.errors import RecorderError
from footprint_observe import semconv

E = TypeVar("E")

EXPORT_SECONDS = 3.0
"""How long one export may take, what the exporter tries again included."""

_PROBE_SECONDS = 0.5
_PORTS = {"http": 80, "https": 443, "grpc": 4317, "grpcs": 4317}
_SERVICE = "footprint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A collector's address.

    Attributes:
        grpc: Whether it speaks OTLP over gRPC; if not, over HTTP with protobuf.
        secure: Whether TLS is spoken.
        target: What the exporter is given: `host:port` for gRPC, a URL with its path for HTTP.
        host: The host.
        port: The port.
    """

    grpc: bool
    secure: bool
    target: str
    host: str
    port: int

    def anybody_there(self) -> bool:
        """Whether a connection can be made now; it may wait for half a second, or for a name server.

        Behind a proxy it cannot be known, and somebody is taken to be there.
        """
        if getproxies().get("https" if self.secure else "http") and not proxy_bypass(self.host):
            return True
        try:
            with socket.create_connection((self.host, self.port), _PROBE_SECONDS):
                return True
        except OSError:
            return False


def parsed(endpoint: str, *, path: str) -> Endpoint:
    """The collector an endpoint names.

    Args:
        endpoint: `http://host:port` or `https://host:port`, `grpc://host:port`, or `grpcs://host:port` with
            TLS.
        path: Where the signal goes over HTTP, as `/v1/traces`: behind the path of the endpoint, unless that
            ends with it, as a collector's base address and that of its signal are both in use.

    Raises:
        RecorderError: The endpoint is none of these.
    """
    # The endpoint is not quoted in the error: it may hold a password.
    error = RecorderError(
        "That is no OTLP endpoint; give http://host:port, https://host:port or grpc://host:port."
    )
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except (AttributeError, TypeError, ValueError):
        raise error from None
    host = parts.hostname
    if parts.scheme not in _PORTS or not host or any(letter.isspace() for letter in endpoint):
        raise error
    port = port or _PORTS[parts.scheme]
    grpc = parts.scheme in {"grpc", "grpcs"}
    base = parts.path.rstrip("/")
    url = parts._replace(path=base if base.endswith(path) else f"{base}{path}").geturl()
    return Endpoint(
        grpc=grpc,
        secure=parts.scheme in {"https", "grpcs"},
        target=f"{f'[{host}]' if ':' in host else host}:{port}" if grpc else url,
        host=host,
        port=port,
    )


def from_environment(make: Callable[[], E]) -> E:
    """What `make` makes, which reads `OTEL_EXPORTER_OTLP_*`.

    Raises:
        RecorderError: One of these variables says what nobody can do.
    """
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - each exporter has errors of its own
        # Its text is left out: it may quote a header, and so a credential.
        name = type(error).__name__
        raise RecorderError(
            f"The exporter refuses what OTEL_EXPORTER_OTLP_* says ({name}); mend or unset these variables."
        ) from None


def resource(service_name: str | None) -> Resource:
    """Whose signals they are: of the service of that name, else as the environment says, else `footprint`."""
    if service_name is not None:
        return Resource.create({semconv.SERVICE_NAME: service_name})
    found = Resource.create()
    if str(found.attributes.get(semconv.SERVICE_NAME, "unknown_service")).startswith("unknown_service"):
        return found.merge(Resource({semconv.SERVICE_NAME: _SERVICE}))
    return found
