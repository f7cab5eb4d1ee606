"""`footprint demo --otlp`, and what Jaeger then shows of it: the golden files."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from commanded import environment, installed
from viewers.jaeger_golden import FILES, demonstrate, read, shown
from viewers.jaeger_server import Jaeger
from viewers.jaeger_spans import faults


@pytest.mark.parametrize("answer", FILES)
@pytest.mark.parametrize("way", ["http", "grpc"])
def test_the_demonstration_is_two_linked_traces_as_the_golden_file_has_them(
    jaeger: Jaeger, tmp_path: Path, way: str, answer: str
) -> None:
    output = demonstrate(tmp_path, answer, {"http": jaeger.http, "grpc": jaeger.grpc}[way])
    traces = read(jaeger, output, answer)
    assert shown(traces) == FILES[answer].read_text(encoding="utf-8")
    assert [faults(trace) for trace in traces] == [[], []]


def test_the_search_that_the_demonstration_prints_finds_both_traces(jaeger: Jaeger, tmp_path: Path) -> None:
    output = demonstrate(tmp_path, "--approve", jaeger.http)
    both = read(jaeger, output, "--approve")
    (address,) = [line.strip() for line in output.splitlines() if "://localhost:16686/" in line]
    asked = parse_qs(urlsplit(address).query, strict_parsing=True)
    # The page takes the same parameters as the query API below it.
    found = jaeger.get("/api/traces", **{name: value for name, (value,) in asked.items()})["data"]
    assert {trace["traceID"] for trace in found} == {trace[0].trace_id for trace in both}


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
@pytest.mark.parametrize(("typed", "answer"), [("y", "--approve"), ("n", "--decline")])
def test_what_a_person_answers_at_the_terminal_is_what_jaeger_shows(
    jaeger: Jaeger, tmp_path: Path, typed: str, answer: str
) -> None:
    output = _answered(jaeger.http, tmp_path / "demo.db", typed)
    assert shown(read(jaeger, output, answer)) == FILES[answer].read_text(encoding="utf-8")


def test_the_demonstration_is_filed_under_the_service_the_environment_names(
    jaeger: Jaeger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "refund-desk")
    output = demonstrate(tmp_path, "--approve", jaeger.http)
    assert "for the service refund-desk." in output
    jaeger.wait(22, "refund-desk")


def test_a_password_in_the_endpoint_is_not_printed(jaeger: Jaeger, tmp_path: Path) -> None:
    output = demonstrate(tmp_path, "--approve", jaeger.http.replace("//", "//dana:swordfish@"))
    assert "swordfish" not in output
    assert f"sent to {jaeger.http}," in output


def test_no_value_of_the_demonstration_is_in_jaeger(jaeger: Jaeger, tmp_path: Path) -> None:
    (first, second) = read(jaeger, demonstrate(tmp_path, "--approve", jaeger.grpc), "--approve")
    held = json.dumps([jaeger.get(f"/api/v3/traces/{trace[0].trace_id}") for trace in (first, second)])
    for value in ("123-45-6789", "espresso", "ada@example", "Sample Street", "not yours to give", "Bluebird"):
        assert value not in held
    assert "refund-ceiling" in held


def _answered(endpoint: str, path: Path, typed: str) -> str:
    """What the demonstration prints at a terminal, at which its question is answered."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [installed(), "demo", "--db", str(path), "--otlp", endpoint],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(COLUMNS="200", NO_COLOR="1"),
        start_new_session=True,
    ) as demo:
        os.close(theirs)
        try:
            said = _read(ours, until=b"Approve?")
            os.write(ours, f"{typed}\n".encode())
            said += _read(ours)
            assert demo.wait(timeout=60) == 0
        finally:
            demo.kill()
            os.close(ours)
    return said.decode()


def _read(terminal: int, *, until: bytes | None = None) -> bytes:
    """What is written to a terminal, to its end or until something is."""
    said = b""
    while until is None or until not in said:
        assert select.select([terminal], [], [], 60)[0], said
        try:
            some = os.read(terminal, 4096)
        except OSError:
            # So Linux says that nobody has it open any more.
            some = b""
        if not some:
            break
        said += some
    return said
