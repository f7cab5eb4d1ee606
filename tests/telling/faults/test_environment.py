"""What the standard variables of OpenTelemetry say holds: headers, certificates, compression, being off."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from story import run
from telling.faults.grpc_collector import grpc_collector
from telling.faults.turns import SPANS, agent_of


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """The files of a certificate of 127.0.0.1 that signed itself, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "collector")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, private = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return chain, private


@pytest.fixture(autouse=True)
def _no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    # The exporter's HTTP library lets these come before what the standard variables name.
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)


class Asked:
    """The headers of the last request, and who sent it."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.peer: Any = None


@contextmanager
def https_collector(context: ssl.SSLContext | None = None) -> Generator[tuple[Asked, int]]:
    """A collector that takes everything."""
    asked = Asked()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            asked.headers = {name.lower(): value for name, value in self.headers.items()}
            if isinstance(self.connection, ssl.SSLSocket):
                asked.peer = self.connection.getpeercert()
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing on standard error."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of a client that trusts nobody."""

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield asked, server.server_port
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def shipped(endpoint: str) -> bool:
    """Whether the spans of a turn arrive there."""
    spans = OtelSpans.to_otlp(endpoint)
    run(agent_of(spans).run("go"))
    arrived = spans.flush(10.0)
    spans.close(3.0)
    assert spans.dropped == (0 if arrived else SPANS)
    return arrived


def test_headers_and_compression_go_with_every_export(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=refunds")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    with https_collector() as (asked, port):
        assert shipped(f"http://127.0.0.1:{port}")
    assert (asked.headers["x-team"], asked.headers["content-encoding"]) == ("refunds", "gzip")
    with grpc_collector() as (came, port):
        assert shipped(f"grpc://127.0.0.1:{port}")
    assert came.headers["x-team"] == "refunds"


def test_the_headers_of_traces_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=all")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-team=traces")
    with https_collector() as (asked, port):
        assert shipped(f"http://127.0.0.1:{port}")
    assert asked.headers["x-team"] == "traces"


def test_a_certificate_is_trusted_when_the_environment_names_it(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with https_collector(context) as (_, port):
        assert not shipped(f"https://127.0.0.1:{port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate[0]))
        assert shipped(f"https://127.0.0.1:{port}")


def test_a_client_shows_the_certificate_the_environment_names(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.load_verify_locations(certificate[0])
    context.verify_mode = ssl.CERT_REQUIRED
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate[0]))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", str(certificate[0]))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CLIENT_KEY", str(certificate[1]))
    with https_collector(context) as (asked, port):
        assert shipped(f"https://127.0.0.1:{port}")
    assert asked.peer["subject"] == ((("commonName", "collector"),),)


def test_grpc_with_tls_trusts_what_the_environment_names(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate[0]))
    chain, key = certificate
    with grpc_collector(certificate=(chain.read_bytes(), key.read_bytes())) as (came, port):
        assert shipped(f"grpcs://127.0.0.1:{port}")
    assert len(came.span_ids) == SPANS


def test_a_proxy_is_used_and_what_it_refuses_is_lost_and_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with OtlpReceiver(status=400) as proxy:
        monkeypatch.setenv("http_proxy", proxy.endpoint)
        assert not shipped("http://collector.invalid:4318")


def test_nothing_is_made_or_shipped_when_the_sdk_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with OtlpReceiver() as collector:
        spans = OtelSpans.to_otlp(collector.endpoint)
        run(agent_of(spans).run("go"))
        assert spans.flush(10.0)
        spans.close(10.0)
        assert (collector.requests, spans.dropped, spans.queued) == (0, 0, 0)
