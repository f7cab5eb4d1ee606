"""A pause is answered in another process, once in all of them, and a run belongs to one at a time."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asked import DONE, NO, YES, Till, adds, asks, pays, until_asked
from file_ledger import on_file, select
from footprint_core import RunTakenOverError, StaleDecisionError, ToolContext, tool
from footprint_core.facts import PauseAnswered
from footprint_core.ledger import PauseStanding
from footprint_observe import Redaction, SqliteLedger
from story import answered, run

ROOT = Path(__file__).parents[2]

PRELUDE = """
import json, sys
sys.path.insert(0, "tests")
from asked import DONE, Till, adds, asks
from file_ledger import on_file
from story import run
path = sys.argv[1]
"""

RESUMES = """
from footprint_core import ResumeError
told = json.loads(sys.stdin.read())
till = Till(on_file(path) if path else None)
agent = till.agent([DONE] * 3, [asks(), adds(-1)])

async def go():
    async with agent:
        try:
            out = await agent.resume(told["checkpoint"], told["answer"])
        except ResumeError as error:
            return type(error).__name__
        return [out.text, out.run_id, [row.to_dict() for row in out.decisions]]

said = run(go())
print(json.dumps({"said": said, "paid": till.paid, "identity": [c.identity for c in till.contexts]}))
"""

CONTINUES = """
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
run_id, position = sys.argv[2], int(sys.argv[3])
entry = Entry(position=position, time=1, fact=CallTaken(iteration=1, call_id="theirs", tool_name="pay"))

async def go():
    ledger = on_file(path)
    await ledger.append(Batch(run_id=run_id, segment=9, entries=(entry,)))
    await ledger.close()

run(go())
"""


def elsewhere(story: str, path: Path | None, *arguments: str, told: Any = None) -> str:
    """What another process says."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + story, str(path or ""), *arguments],
        input=json.dumps(told),
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def resumed_elsewhere(path: Path | None, checkpoint: Any, answer: Any) -> Any:
    return json.loads(elsewhere(RESUMES, path, told={"checkpoint": checkpoint, "answer": answer}))


def test_a_pause_is_answered_in_another_process_over_the_same_file_and_only_once(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till = Till(on_file(path))
    agent = till.agent([*pays(1, 500), DONE], [asks(), adds(-1)])
    pause = run(until_asked(agent, identity={"user": "ada"}))
    theirs = resumed_elsewhere(path, pause.checkpoint, YES)
    assert (theirs["paid"], till.paid) == ([499], [0])
    assert theirs["identity"] == [{"user": "ada"}]
    text, run_id, rows = theirs["said"]
    assert (text, run_id) == ("done", pause.run_id)
    assert rows == [row.to_dict() for row in till.ledger.decisions(pause.run_id)]
    assert [row["segment"] for row in rows] == [1, 1, 1, 2, 2]
    with pytest.raises(StaleDecisionError):
        run(agent.resume(pause.checkpoint, YES))
    assert resumed_elsewhere(path, pause.checkpoint, NO) == {
        "said": "StaleDecisionError",
        "paid": [],
        "identity": [],
    }
    assert select(path, "SELECT count(*) FROM facts WHERE kind = 'pause.answered'") == [(1,)]
    run(till.ledger.close())


def test_a_pause_is_answered_in_another_process_that_shares_nothing_but_the_checkpoint() -> None:
    till = Till()
    pause = run(until_asked(till.agent(pays(1, 500), [asks(), adds(-1)])))
    theirs = resumed_elsewhere(None, pause.checkpoint, YES)
    assert theirs["paid"] == [499]
    text, run_id, rows = theirs["said"]
    assert (text, run_id) == ("done", pause.run_id)
    assert [row.get("imported", False) for row in rows] == [True, True, True, False, False]


def test_a_run_that_another_process_continued_fails_at_its_next_commit_before_it_acts(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    till = Till(on_file(path))
    paid: list[int] = []

    @tool(name="pay", inline=True)
    def pay(amount: int, context: ToolContext) -> int:
        paid.append(amount)
        if amount == 500:
            ((last,),) = select(path, f"SELECT max(position) FROM facts WHERE run_id = '{context.run_id}'")
            elsewhere(CONTINUES, path, context.run_id, str(last + 1))
        return amount

    agent = till.agent([*pays(500, 2), DONE], [asks()], pay)
    pause = run(until_asked(agent))
    with pytest.raises(RunTakenOverError) as caught:
        run(agent.resume(pause.checkpoint, YES))
    assert (caught.value.run_id, caught.value.segment) == (pause.run_id, 2)
    # The body had been entered; nothing behind it was: neither the next call nor the model.
    assert paid == [500]
    assert len(till.model.requests) == 1
    assert select(path, "SELECT tool_call_id FROM facts ORDER BY id DESC LIMIT 1") == [("theirs",)]
    run(till.ledger.close())


class Waits(SqliteLedger):
    """A ledger that looks a pause up, and is slow to go on."""

    go_on: asyncio.Event

    async def pause_standing(self, run_id: str, pause_id: str, /) -> PauseStanding | None:
        standing = await super().pause_standing(run_id, pause_id)
        await self.go_on.wait()
        return standing


@pytest.mark.parametrize("known", [True, False])
def test_of_two_that_answer_at_once_one_acts_and_the_other_is_stale(tmp_path: Path, known: bool) -> None:
    path = tmp_path / "l.db"
    first = Till(on_file(path)) if known else Till()
    pause = run(until_asked(first.agent(pays(500), [asks(), adds(-1)])))
    ledgers = [Waits(path, redact=Redaction.none(), durability="process") for _ in range(2)]
    tills = [Till(ledger) for ledger in ledgers]

    async def go() -> list[Any]:
        for ledger in ledgers:
            ledger.go_on = asyncio.Event()
        tasks = [
            asyncio.ensure_future(till.agent(DONE, [asks(), adds(-1)]).resume(pause.checkpoint, answer))
            for till, answer in zip(tills, (YES, NO), strict=True)
        ]
        # Both have found the pause open by now.
        await asyncio.sleep(0)
        for ledger in ledgers:
            ledger.go_on.set()
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return await asyncio.gather(*tasks, return_exceptions=True)

    approved, declined = run(go())
    answered(approved)
    assert isinstance(declined, StaleDecisionError)
    assert ([till.paid for till in tills], len(tills[1].model.requests)) == ([[499], []], 0)
    facts = [entry.fact for entry in ledgers[0].entries(pause.run_id)]
    assert [fact.answer for fact in facts if isinstance(fact, PauseAnswered)] == ["approved"]
    for ledger in ledgers:
        run(ledger.close())
