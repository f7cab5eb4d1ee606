"""Every TraceQL of the dashboards parses, by the grammar that Grafana's own editor has."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from dashboard_queries import asked, traceql

PACKAGES = ("@grafana/lezer-traceql@1.0.0", "@lezer/lr@1.4.12")
SCRIPT = Path(__file__).with_name("traceql.mjs")


@pytest.fixture(scope="module")
def grammar(request: pytest.FixtureRequest) -> Path:
    """The folder with the parser; it is fetched once, and kept with what pytest keeps."""
    for command in ("node", "npm"):
        if shutil.which(command) is None:
            pytest.skip(f"there is no {command} here")
    cache = request.config.cache
    assert cache is not None
    folder = cache.mkdir("traceql")
    if not (folder / "node_modules" / "@grafana" / "lezer-traceql").is_dir():
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        if not fetched([*install, *PACKAGES]):
            pytest.skip("npm could not fetch the grammar of TraceQL")
    return folder


def fetched(install: Sequence[str], seconds: float = 30) -> bool:
    """Whether npm got it; a registry that does not answer is waited for only so long."""
    # All it started goes with it: what npm leaves behind would keep the pipes open, and this waiting.
    with subprocess.Popen(
        install, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as npm:
        try:
            return npm.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            os.killpg(npm.pid, signal.SIGKILL)
            return False


def test_a_registry_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("there is no npm here")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        registry = f"--registry=http://127.0.0.1:{silent.getsockname()[1]}"
        install = ["npm", "install", registry, "--prefix", str(tmp_path), f"--cache={tmp_path / 'cache'}"]
        assert not fetched([*install, *PACKAGES], seconds=1)


def wrong(grammar: Path, *queries: str) -> list[list[int]]:
    """For each query, where it is no TraceQL."""
    done = subprocess.run(
        ["node", str(SCRIPT), str(grammar)],
        input=json.dumps(queries),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found


def test_every_traceql_parses(grammar: Path) -> None:
    queries = [traceql(query.text) for query in asked("tempo")]
    assert len(queries) >= 2
    assert wrong(grammar, *queries) == [[] for _ in queries]


def test_the_grammar_finds_what_is_wrong(grammar: Path) -> None:
    assert all(wrong(grammar, "{ span.footprint.outcome = }", "{ span.a.b == 1 }", "select(", "deny"))
