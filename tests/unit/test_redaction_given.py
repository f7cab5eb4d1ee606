"""What a ledger is given as its policy, and who decided under one that masks personal data."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, cast

import pytest

from footprint_core import Agent, AskPause, MemoryLedger, ask, before_tool, check_in_approved
from footprint_core.errors import BuilderError
from footprint_core.providers import Scripted, call, reply
from footprint_observe import Redaction, SqliteLedger
from story import run

NO_POLICIES = ("standard", 3, object(), Redaction, Redaction.standard)


@pytest.mark.parametrize("given", NO_POLICIES, ids=["a text", "a number", "an object", "a class", "a method"])
def test_what_is_no_policy_is_refused_when_the_ledger_is_made(given: Any, tmp_path: Path) -> None:
    with pytest.raises(BuilderError, match="takes a policy"):
        SqliteLedger(tmp_path / "f.db", redact=given)
    with pytest.raises(BuilderError, match="takes a policy"):
        MemoryLedger(redact=given)


@pytest.mark.parametrize("flag", ["personal", "credentials"])
def test_a_word_of_a_policy_is_true_or_false_and_nothing_that_counts_as_it(flag: str) -> None:
    with pytest.raises(BuilderError, match=rf"{flag}=\.\.\.\) takes True or False"):
        Redaction.of(**cast("Any", {flag: "no"}))


def test_who_decided_is_kept_where_personal_data_is_masked(tmp_path: Path) -> None:
    path = tmp_path / "f.db"

    @before_tool("four-eyes")
    def four_eyes(_: Any) -> Any:
        return ask("Pay bob@example.com?")

    def pay(to: str) -> str:
        return to

    model = Scripted([reply(calls=[call("c1", "pay", {"to": "bob@example.com"})]), reply(text="Done.")])
    builder = Agent.create(provider=model, model="m", name="till").tool(pay).act(before_tool=[four_eyes])
    agent = builder.ledger(SqliteLedger(path, redact=Redaction.personal())).build()

    async def story() -> None:
        async with agent:
            pause = await agent.run("pay")
            assert isinstance(pause, AskPause)
            await agent.resume(pause.checkpoint, check_in_approved(by="dana@example.com"))

    run(story())
    db = sqlite3.connect(path)
    who = db.execute("select decided_by from decisions where decided_by is not null").fetchall()
    held = db.execute("select count(*) from vals where json like '%bob@example.com%'").fetchone()
    db.close()
    assert who == [("dana@example.com",)]
    assert held == (0,)
