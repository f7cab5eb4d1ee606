"""A pause is answered by its id in another process that was handed nothing else, and by one of several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asked import DONE, YES, Till, adds, asks, pays, until_asked
from file_ledger import on_file, select
from footprint_core import StaleDecisionError
from sealed import KEYS, bodies, written
from story import run

ROOT = Path(__file__).parents[2]

PRELUDE = """
import json, sys
sys.path.insert(0, "tests")
from asked import DONE, Till, adds, asks
from footprint_core import FootprintError
from footprint_observe import KeyRing, Redaction, SqliteLedger
from story import run

class Waits(SqliteLedger):
    waits = True

    async def kept_pause(self, pause_id, /):
        kept = await super().kept_pause(pause_id)
        if self.waits:
            # Found open, as the others find it; nobody goes on before all have.
            print("found", flush=True)
            assert sys.stdin.readline() == "go on\\n"
        return kept

path, pause_id, answer, waits = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), sys.argv[4] == "waits"
Waits.waits = waits
ledger = Waits(path, redact=Redaction.none(), durability="process", keys=KeyRing.from_env())
till = Till(ledger)

async def go():
    async with till.agent([DONE] * 3, [asks(), adds(-1)]) as agent:
        try:
            out = await agent.resume(pause_id=pause_id, answer=answer)
        except FootprintError as error:
            return type(error).__name__
        return [out.text, out.run_id, [row.to_dict() for row in out.decisions]]

said = run(go())
print(json.dumps({"said": said, "paid": till.paid, "identity": [c.identity for c in till.contexts]}))
"""


def process(path: Path, pause_id: str, answer: Any, *, waits: bool = False) -> subprocess.Popen[str]:
    """A process that answers a pause of a file by its id, under the keys of its environment."""
    return subprocess.Popen(
        [
            *(sys.executable, "-W", "error", "-c", PRELUDE),
            *(os.fspath(path), pause_id, json.dumps(answer), "waits" if waits else "goes"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "FOOTPRINT_KEYS": written()},
        text=True,
    )


def said(answering: subprocess.Popen[str], given: str = "") -> Any:
    out, errors = answering.communicate(given, timeout=60)
    assert answering.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def test_a_pause_is_answered_in_another_process_that_was_handed_nothing_but_its_id(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till = Till(on_file(path, keys=KEYS))
    agent = till.agent([*pays(1, 500), DONE], [asks(), adds(-1)])
    pause = run(until_asked(agent, identity={"user": "ada"}))
    theirs = said(process(path, pause.pause_id, YES))
    assert (theirs["paid"], till.paid) == ([499], [0])
    assert theirs["identity"] == [{"user": "ada"}]
    text, run_id, rows = theirs["said"]
    assert (text, run_id) == ("done", pause.run_id)
    assert rows == [row.to_dict() for row in till.ledger.decisions(pause.run_id)]
    assert [row["segment"] for row in rows] == [1, 1, 1, 2, 2]
    assert bodies(path) == []
    for given in ({"pause_id": pause.pause_id}, {"checkpoint": pause.checkpoint}):
        with pytest.raises(StaleDecisionError):
            run(agent.resume(answer=YES, **given))
    run(till.ledger.close())


def test_of_processes_that_answer_by_id_at_once_one_acts_and_the_others_are_stale(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till = Till(on_file(path, keys=KEYS))
    pause = run(until_asked(till.agent(pays(500), [asks(), adds(-1)])))
    run(till.ledger.close())
    answering = [process(path, pause.pause_id, YES, waits=True) for _ in range(2)]
    for one in answering:
        assert one.stdout is not None
        assert one.stdout.readline() == "found\n"
    for one in answering:
        assert one.stdin is not None
        one.stdin.write("go on\n")
        one.stdin.flush()
    told = [said(one) for one in answering]
    outcomes = sorted(one["said"] if isinstance(one["said"], str) else one["said"][0] for one in told)
    assert outcomes == ["StaleDecisionError", "done"]
    assert sorted(one["paid"] for one in told) == [[], [499]]
    kinds = "SELECT count(*) FROM facts WHERE kind = '{}'"
    assert (
        select(path, kinds.format("pause.answered")) == select(path, kinds.format("tool.finished")) == [(1,)]
    )
    assert bodies(path) == []
