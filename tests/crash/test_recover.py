"""A process is killed in a tool, and another one goes on with its run; of two that try, one does."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from file_ledger import select

CHILD = """
import asyncio, os, signal, sys, time
from pathlib import Path
from footprint_core import Agent, FootprintError, ToolCallContext, ToolContext, ToolMessage, ToolOutcome
from footprint_core import allow, before_tool, tool
from footprint_core.facts import ModelReplied
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger

path, effects, how, idempotent, run_id, gate = sys.argv[1:]
said = [
    reply(calls=[call("c1", "note", {"n": 1})]),
    reply(calls=[call("c1", "pay", {"amount": 5}), call("c2", "note", {"n": 2})]),
    reply(text="done"),
]

def write(text):
    with open(effects, "a") as file:
        file.write(text + "\\n")
        file.flush()
        os.fsync(file.fileno())

@before_tool("looks", version="1")
def looks(given: ToolCallContext) -> ToolOutcome:
    return allow()

@tool(idempotent=idempotent == "yes")
async def pay(amount: int, context: ToolContext) -> str:
    write("pay " + context.idempotency_key)
    if how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"

@tool
async def note(n: int) -> str:
    write(f"note {n}")
    return f"noted {n}"

ledger = SqliteLedger(path)
replied = sum(isinstance(entry.fact, ModelReplied) for entry in ledger.entries(run_id))
model = Scripted(said[replied:])
agent = (
    Agent.create(provider=model, model="m", name="dies")
    .tool(pay, note).act(before_tool=[looks]).ledger(ledger).build()
)
if gate:
    # Whoever is first waits until the other one is there too.
    Path(gate).touch()
    until = time.monotonic() + 30
    while len(list(Path(gate).parent.glob("gate-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.001)
try:
    out = asyncio.run(agent.run("go") if how == "dies" else agent.recover(run_id))
except FootprintError as error:
    print(type(error).__name__)
else:
    print(out.text)
    print(*[m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)], sep="|")
"""


def child(path: Path, how: str, idempotent: str, run_id: str = "", gate: str = "") -> subprocess.Popen[str]:
    arguments = (str(path), str(path.with_name("effects")), how, idempotent, run_id, gate)
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.splitlines()


def killed(tmp_path: Path, idempotent: str) -> tuple[Path, str]:
    """A file whose run was killed in the body of `pay`."""
    path = tmp_path / "f.db"
    process = child(path, "dies", idempotent)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    ((run_id,),) = select(path, "SELECT run_id FROM runs")
    assert select(path, "SELECT outcome FROM runs") == [("open",)]
    return path, run_id


def effects(path: Path) -> list[str]:
    return path.with_name("effects").read_text().splitlines()


CALLS = "SELECT tool_name, status, in_doubt FROM tool_calls ORDER BY id"


def test_what_died_in_a_body_is_told_to_the_model_and_everything_else_goes_on(tmp_path: Path) -> None:
    path, run_id = killed(tmp_path, "no")
    text, told = ended(child(path, "recovers", "no", run_id))
    assert text == "done"
    assert told.split("|")[0] == "noted 1"
    assert told.split("|")[1].startswith("The tool pay may have run before the process died")
    assert [line.split()[0] for line in effects(path)] == ["note", "pay", "note"]
    assert select(path, CALLS) == [("note", "ran", 0), ("pay", "blocked", 1), ("note", "ran", 0)]
    assert select(path, "SELECT outcome, segments FROM runs") == [("answered", 2)]


def test_an_idempotent_tool_that_died_runs_again_with_the_same_key(tmp_path: Path) -> None:
    path, run_id = killed(tmp_path, "yes")
    assert ended(child(path, "recovers", "yes", run_id)) == ["done", "noted 1|paid|noted 2"]
    note, first, second, last = effects(path)
    assert (note, last) == ("note 1", "note 2")
    assert first == second
    assert first.startswith(f"pay {run_id}:")
    assert select(path, CALLS) == [("note", "ran", 0), ("pay", "ran", 0), ("note", "ran", 0)]


@pytest.mark.parametrize("idempotent", ["yes", "no"])
def test_of_two_processes_that_recover_a_run_at_once_one_goes_on(tmp_path: Path, idempotent: str) -> None:
    path, run_id = killed(tmp_path, idempotent)
    gates = [str(tmp_path / f"gate-{i}") for i in range(2)]
    both: list[Any] = [child(path, "recovers", idempotent, run_id, gate) for gate in gates]
    said = sorted(ended(process)[0] for process in both)
    # The other one lost a commit, or found the run over.
    assert said[1] == "done"
    assert said[0] in {"RunTakenOverError", "RecoverError"}
    ran = effects(path)
    assert ran.count("note 1") == ran.count("note 2") == 1
    # The second one may have taken the run from the first while that was in the body, under the same key.
    paid = [line for line in ran if line.startswith("pay")]
    assert len(set(paid)) == 1
    assert len(paid) == 1 or idempotent == "yes"
    assert select(path, "SELECT outcome FROM runs") == [("answered",)]
    positions = [row[0] for row in select(path, "SELECT position FROM facts ORDER BY id")]
    assert positions == list(range(1, len(positions) + 1))
