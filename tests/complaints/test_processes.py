"""A pause outlives its process: it is on the disk before anybody is handed it, and another one goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from complaints.people import DONE, PAUSING, Till, answer_about
from file_ledger import on_file, select
from footprint_core import StaleDecisionError
from story import answered, run

KILLED = """
import asyncio, json, os, signal, sys
from complaints.people import Till, paused, pays
from footprint_observe import SqliteLedger

path, name, durability = sys.argv[1:]
till = Till()
agent, _ = till.agent(pays(1, 500, 2, name=name), ledger=SqliteLedger(path, durability=durability))
pause = paused(asyncio.run(agent.run("go")))
print(json.dumps([pause.checkpoint, till.did]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _child(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[1],
    )


@pytest.mark.parametrize("durability", ["power", "process"])
@pytest.mark.parametrize("name", PAUSING)
def test_c070_a_pause_is_on_the_disk_before_its_caller_is_handed_it(
    name: str, durability: str, tmp_path: Path
) -> None:
    path = tmp_path / "f.db"
    killed = _child(KILLED, str(path), name, durability)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    checkpoint, did = json.loads(killed.stdout)
    assert select(path, "select pause_id, open, tool_name from pauses") == [(checkpoint["pause_id"], 1, name)]
    assert select(path, "select outcome from runs") == [("paused",)]
    till = Till()
    agent, model = till.agent(DONE, ledger=on_file(path))
    answer = answer_about(name)
    outcome = answered(run(agent.resume(checkpoint, answer)))
    # What the process that was killed had done is not done again, and what was left is.
    before = [(did_name, amount) for did_name, amount in did]
    assert before == ([(name, 1), (name, 500)] if name == "person" else [(name, 1)])
    assert before + till.did == [(name, 1), (name, 500), (name, 2)]
    assert len(model.requests) == 1
    assert select(path, "select outcome, segments from runs") == [("answered", 2)]
    assert select(path, "select open, count(*) from pauses") == [(0, 1)]
    assert select(path, "select sum(in_doubt), count(*) from tool_calls") == [(0, 3)]
    assert outcome.run_id == checkpoint["run_id"]
    with pytest.raises(StaleDecisionError):
        run(agent.session().resume(checkpoint, answer))


NESTED = """
import asyncio, json, os, sys
from footprint_core import Agent, Answer, ask, before_tool, check_in_approved, pause_here
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger

path, effects, step = sys.argv[1:]

def effect(word):
    with open(effects, "a") as file:
        file.write(f"{os.getpid()} {word}\\n")

def describe(said, name, *tools):
    builder = Agent.create(provider=Scripted(said), model="m", name=name)
    return builder.tool(*tools).ledger(SqliteLedger(path))

def pay(amount: int) -> str:
    effect(f"pay {amount}")
    return "paid"

PAYS = [reply(calls=[call("i1", "pay", {"amount": 1}), call("i2", "pay", {"amount": 2})])]
gate = before_tool("gate")(lambda c: ask(f"Pay {c.args['amount']}?"))

def inner(said):
    return describe(said, "inner", pay).tool_middleware(gate).build()

async def clerk(task: str) -> str:
    effect("clerk")
    outcome = await inner(PAYS).run(task)
    if isinstance(outcome, Answer):
        return outcome.text
    pause_here({"question": outcome.question, "inner": outcome.checkpoint})

def outer(said):
    return describe(said, "outer", clerk).build()

CALLS = [reply(calls=[call("o1", "clerk", {"task": "pay"}), call("o2", "clerk", {"task": "pay again"})])]
YES = check_in_approved(by="dana@ops")

async def ask_first():
    pause = await outer(CALLS).run("go")
    return {"outer": pause.checkpoint, "data": pause.data}

async def answer(held):
    inside = await inner([reply(text="inner is done")]).resume(held["data"]["inner"], YES)
    if not isinstance(inside, Answer):
        return {**held, "data": {"question": inside.question, "inner": inside.checkpoint}}
    pause = await outer([reply(text="outer is done")]).resume(held["outer"], inside.text)
    if isinstance(pause, Answer):
        return {"text": pause.text}
    return {"outer": pause.checkpoint, "data": pause.data}

held = asyncio.run(ask_first() if step == "ask" else answer(json.loads(sys.stdin.read())))
print(json.dumps(held))
"""


def test_c068_an_agent_that_is_the_tool_of_another_one_goes_on_in_new_processes(tmp_path: Path) -> None:
    path, effects = tmp_path / "f.db", tmp_path / "effects"

    def step(word: str, held: Any = None) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", NESTED, str(path), str(effects), word],
            input=json.dumps(held),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    held = step("ask")
    questions: list[str] = []
    while "text" not in held:
        questions.append(held["data"]["question"])
        held = step("answer", held)
    assert held["text"] == "outer is done"
    # Two calls of the clerk, each with two payments that a person was asked about, each in a new process.
    assert questions == ["Pay 1?", "Pay 2?"] * 2
    done = [line.split(" ", 1) for line in effects.read_text().splitlines()]
    assert [word for _, word in done] == ["clerk", "pay 1", "pay 2"] * 2
    assert len({process for process, _ in done}) == 5
    assert select(path, "select agent, outcome, segments from runs order by id") == [
        ("outer", "answered", 3),
        ("inner", "answered", 3),
        ("inner", "answered", 3),
    ]
    assert select(path, "select count(*), sum(open) from pauses") == [(6, 0)]
    assert select(path, "select sum(in_doubt) from tool_calls") == [(0,)]
