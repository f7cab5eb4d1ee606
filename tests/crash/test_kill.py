"""A process that dies in a tool leaves its decisions and its intent."""

from __future__ import annotations

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from footprint_observe.cli import main

CHILD = """
import asyncio, os, signal, sys
from footprint_core import Agent, ToolCallContext, ToolOutcome, allow, before_tool
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger

path, effect, body = sys.argv[1:]

@before_tool("looks")
def looks(call: ToolCallContext) -> ToolOutcome:
    return allow(why="looked at it")

async def pay(amount: int) -> str:
    if body == "first":
        os.kill(os.getpid(), signal.SIGKILL)
    with open(effect, "a") as file:
        file.write("THE-BODY-WRITES")
        file.flush()
        if body == "after":
            os.kill(os.getpid(), signal.SIGKILL)
    return "paid"

model = Scripted([reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")])
agent = (
    Agent.create(provider=model, model="m", name="dies")
    .tool(pay).act(before_tool=[looks]).ledger(SqliteLedger(path)).build()
)
asyncio.run(agent.run("pay 5"))
"""


def _child(path: Path, effect: Path, body: str, *, under: tuple[str, ...] = ()) -> Any:
    return subprocess.run(
        [*under, sys.executable, "-c", CHILD, str(path), str(effect), body],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _asked(path: Path, query: str) -> list[str]:
    """The rows as the plain `sqlite3` command prints them, or as the module does where there is none."""
    command = shutil.which("sqlite3")
    if command is not None:
        done = subprocess.run(
            [command, str(path), query], capture_output=True, text=True, timeout=30, check=True
        )
        return done.stdout.splitlines()
    db = sqlite3.connect(path)
    rows = db.execute(query).fetchall()
    db.close()
    return ["|".join("" if cell is None else str(cell) for cell in row) for row in rows]


DECISIONS = "select moment, middleware, outcome, why from decisions order by id"
CALLS = "select tool_name, args, status, in_doubt from tool_calls"


def test_a_body_that_kills_its_process_at_once_leaves_its_decision_and_its_intent(tmp_path: Path) -> None:
    path, effect = tmp_path / "f.db", tmp_path / "effect"
    assert _child(path, effect, "first").returncode == -signal.SIGKILL
    assert not effect.exists()
    assert _asked(path, DECISIONS) == ["before-tool|looks|allow|looked at it"]
    assert _asked(path, CALLS) == ['pay|{"amount":5}||1']
    assert _asked(path, "select outcome from runs") == ["open"]


def test_a_kill_between_the_effect_and_its_outcome_is_listed_as_may_have_run(tmp_path: Path) -> None:
    path, effect = tmp_path / "f.db", tmp_path / "effect"
    assert _child(path, effect, "after").returncode == -signal.SIGKILL
    assert effect.read_text() == "THE-BODY-WRITES"
    assert _asked(path, CALLS) == ['pay|{"amount":5}||1']
    shown = CliRunner().invoke(main, ["show", "last", "--db", str(path)])
    assert "may have run" in shown.output


def test_a_body_that_returns_is_in_no_doubt(tmp_path: Path) -> None:
    path, effect = tmp_path / "f.db", tmp_path / "effect"
    assert _child(path, effect, "returns").returncode == 0
    assert _asked(path, CALLS) == ['pay|{"amount":5}|ran|0']
    assert "may have run" not in CliRunner().invoke(main, ["show", "last", "--db", str(path)]).output


def test_the_intent_is_synced_before_the_body_writes(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    under = (strace, "-f", "-o", str(trace), "-e", "trace=fdatasync,fsync,write,pwrite64")
    done = _child(tmp_path / "f.db", tmp_path / "effect", "returns", under=under)
    if not trace.exists() or "ptrace" in done.stderr:
        pytest.skip("strace may not trace processes here")
    assert done.returncode == 0, done.stderr
    lines = trace.read_text().splitlines()
    body = next(i for i, line in enumerate(lines) if "THE-BODY-WRITES" in line)
    intent = max(i for i, line in enumerate(lines[:body]) if re.search(r"\bpwrite64\(", line))
    synced = [i for i, line in enumerate(lines[:body]) if re.search(r"\bfdatasync\(\d+\)\s+= 0", line)]
    assert synced, "no fdatasync precedes the body's first write"
    assert synced[-1] > intent, "something was written to the file behind the last sync"
