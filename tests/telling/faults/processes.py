"""Starts the process that plays turns, and waits for what it says, within a bound."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import msgspec

from file_ledger import select
from otlp_receiver import ReceivedSpan

TESTS = Path(__file__).parents[2]
SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Its exit code.
        runs: The runs it and its children played.
        processes: The process that played each of them.
        said: What it wrote to standard error.
    """

    code: int
    runs: list[str]
    processes: dict[str, str]
    said: str


def played(how: str, endpoint: str, folder: Path, *, signalled: int | None = None) -> Ended:
    """Play in a process, and signal it when its turns are played."""
    # At an exit the exporter's HTTP library lets go of its sockets unclosed, which nobody sees by default.
    warned = ["-W", "error", "-W", "ignore::ResourceWarning"]
    command = [sys.executable, *warned, "-m", "telling.faults.child", how, endpoint, str(folder)]
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
    with subprocess.Popen(
        command, cwd=TESTS, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            lines: list[str] = []
            if signalled is not None:
                assert process.stdout is not None
                lines = list(takewhile(lambda line: line != "ready\n", process.stdout))
                process.send_signal(signalled)
            out, err = process.communicate(timeout=SECONDS)
        except BaseException:
            process.send_signal(signal.SIGKILL)
            raise
    by = [line.split() for line in (*lines, *out.splitlines())]
    return Ended(code=process.returncode, runs=[run for run, _ in by], processes=dict(by), said=err)


def rows(folder: Path) -> dict[str, int]:
    """How many decisions the ledger has of each run."""
    query = "select run_id, count(*) from decisions group by run_id"
    return dict(select(folder / "l.db", query))


def told(folder: Path) -> list[str]:
    """The run of each event that ended one, sorted."""
    events = [msgspec.json.decode(line) for line in (folder / "lines").read_bytes().splitlines()]
    return sorted(event["run_id"] for event in events if event["type"] == "agent.turn_end")


def agents(spans: tuple[ReceivedSpan, ...]) -> list[str]:
    """The run of each span that stands for a whole run, sorted; a run that is told twice is in it twice."""
    return sorted(
        span.attributes["footprint.run.id"] for span in spans if span.name.startswith("invoke_agent")
    )
