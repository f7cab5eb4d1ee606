"""`footprint serve` as a process of its own, and what it answers."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from commanded import environment, installed
from footprint_observe.shipped import dashboards
from seeded import seed

yaml: Any = pytest.importorskip("yaml", reason="needs the extra datasette")

SECONDS = 60
LONG = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
"""A question without an end."""

_ADDRESS = re.compile(r"http://(\[[^]]+\]|[^:/]+):(\d+)")

FOLDER = dashboards() / "datasette"
METADATA: dict[str, Any] = yaml.safe_load((FOLDER / "metadata.yaml").read_text())
GOVERNANCE: dict[str, Any] = yaml.safe_load((FOLDER / "governance.yaml").read_text())
QUERIES: dict[str, dict[str, Any]] = METADATA["databases"]["ledger"]["queries"]
PANELS: dict[str, dict[str, Any]] = GOVERNANCE["plugins"]["datasette-dashboards"]["governance"]["charts"]


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A running site."""

    def __init__(self, process: subprocess.Popen[str], said: Sequence[str]) -> None:
        self.process = process
        self.said = said
        found = _ADDRESS.search(said[0])
        assert found is not None, said
        self.address = found[1]
        self.port = int(found[2])
        self.url = f"http://127.0.0.1:{self.port}"

    def get(
        self,
        path: str,
        headers: Mapping[str, str | None] | None = None,
        *,
        to: str = "127.0.0.1",
        method: str = "GET",
        body: bytes | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask; a header that is None is not sent."""
        sent: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        connection = HTTPConnection(to, self.port, timeout=SECONDS)
        try:
            connection.putrequest(method, f"{path}?{urlencode(query)}" if query else path, skip_host=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body or b"")))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def rows(self, path: str, **query: str) -> list[dict[str, Any]]:
        """The rows of a query."""
        answer = self.get(f"{path}.json", query={**query, "_shape": "array"})
        assert answer.status == 200, answer.body
        return list(answer.json)

    def opened(self) -> list[Path]:
        """The files the process has open, of those that are on a disk."""
        found: list[Path] = []
        for link in Path(f"/proc/{self.process.pid}/fd").iterdir():
            # One that it closes meanwhile is none it has open.
            with suppress(FileNotFoundError):
                found.append(link.readlink())
        return [file for file in found if file.is_file()]

    def sql(self, question: str, **more: str) -> Answer:
        """What a question in SQL comes to, as JSON."""
        return self.get("/ledger.json", query={"sql": question, "_shape": "array", **more})


def files(folder: Path) -> set[str]:
    """The names of the files of a folder."""
    return {file.name for file in folder.iterdir()}


@contextmanager
def serving(
    path: Path, *options: str, lines: int = 1, start: str | None = None, **env: str
) -> Generator[Served]:
    """Serve a file on a free port; it has printed its first lines by then, and ends as by Ctrl-C.

    Args:
        path: The file.
        options: More of the command.
        lines: How many lines it prints first.
        start: A program to start in the place of the command.
        env: More of its environment.
    """
    pytest.importorskip("datasette_dashboards", reason="needs the extra datasette")
    program = [installed()] if start is None else [sys.executable, "-c", start]
    command = [*program, "serve", "--db", str(path), "--port", "0", *options]
    with subprocess.Popen(
        command, env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield Served(process, _said(process, lines))
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            finally:
                process.kill()


def _said(process: subprocess.Popen[str], lines: int) -> list[str]:
    """The first lines a process prints, each waited for as long as a test waits for anything."""
    assert process.stdout is not None
    output, text = process.stdout.fileno(), ""
    while text.count("\n") < lines:
        ready, _, _ = select.select([output], [], [], SECONDS)
        more = os.read(output, 4096).decode() if ready else ""
        assert more, (text, process.poll())
        text += more
    return text.splitlines(keepends=True)


def seeded_file(folder: Path) -> Path:
    """A file of 500 runs, in a folder."""
    path = folder / "decisions.db"
    path.write_bytes(_seeded())
    return path


@cache
def _seeded() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "seeded.db"
        seed(path)
        assert files(Path(folder)) == {"seeded.db"}
        return path.read_bytes()
