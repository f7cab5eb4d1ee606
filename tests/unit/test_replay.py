"""`footprint replay`: what it says of a run, and how; runs that began elsewhere, and ends of every kind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from file_ledger import on_file, select
from footprint_core import (
    Agent,
    AskPause,
    MessageDeniedError,
    PolicyHaltError,
    ProviderError,
    ToolCallContext,
    ToolOutcome,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
    tool,
)
from footprint_core.facts import Usage
from footprint_core.loop.abandon import abandon_run
from footprint_core.mcp import mcp_serve
from footprint_core.permission import Permission
from footprint_core.providers import Completed, call, reply
from footprint_observe import SqliteLedger
from footprint_observe.cli import main
from footprint_observe.query.replay import Replay, replay
from served import refund, served
from story import answered, describe, run
from unguarded import altered, cut_off, unguarded

YES = check_in_approved(by="dana")
SECRET = "the shoes are blue"


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?") if call.args["amount"] > 100 else allow()


def pay(amount: int) -> str:
    """Pay."""
    return SECRET


def agent_on(ledger: SqliteLedger, *replies: Completed) -> Agent:
    builder, _ = describe(replies, pay, ledger=ledger, act={"before_tool": [four_eyes]})
    return builder.build()


def asked(amount: int) -> Completed:
    return reply(calls=[call("c1", "pay", {"amount": amount})], usage=Usage(input=7, output=3))


def one_run(path: Path) -> Replay:
    ((run_id,),) = select(path, "SELECT DISTINCT run_id FROM facts")
    return replay(path, run_id)


def footprint(*args: str) -> Result:
    return CliRunner().invoke(main, ["replay", *args], env={"COLUMNS": "120"})


@pytest.fixture
def paid(tmp_path: Path) -> Path:
    """A file with one run that paid."""

    async def go() -> None:
        async with agent_on(on_file(tmp_path / "l.db"), asked(5), reply(text=SECRET)) as agent:
            answered(await agent.run(SECRET))

    run(go())
    return tmp_path / "l.db"


def test_a_run_that_matches_says_so_and_ends_with_zero(paid: Path) -> None:
    result = footprint("last", "--db", str(paid))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("matches: 14 facts of run ")
    assert "1 segment, answered; 0 values redacted, 0 erased" in result.output


def test_a_run_that_does_not_says_where_and_what_and_ends_with_one(paid: Path) -> None:
    with unguarded(paid) as connection:
        (asking,) = connection.execute("SELECT max(id) FROM facts WHERE kind = 'model.asked'").fetchone()
        with altered(connection, asking, "messages", 9):
            result = footprint("last", "--db", str(paid), "--steps", "--json")
            table = footprint("last", "--db", str(paid))
    assert (result.exit_code, table.exit_code) == (1, 1)
    *steps, found = map(json.loads, result.output.splitlines())
    assert found["matches"] is False
    assert found["difference"] == {
        "position": asking, "kind": "model.asked", "what": "messages", "says": 9, "folded": 3
    }  # fmt: skip
    assert [step["position"] for step in steps] == list(range(1, 15))
    assert f"does not match at position {asking} (model.asked)" in table.output
    assert "messages: the fact says 9, the facts before it say 3" in table.output


def test_its_steps_hold_no_value_unless_values_are_asked_for(paid: Path) -> None:
    for how in ([], ["--json"]):
        plain = footprint("last", "--db", str(paid), "--steps", *how)
        assert plain.exit_code == 0
        assert SECRET not in plain.output
        assert "model.asked" in plain.output
        assert SECRET in footprint("last", "--db", str(paid), "--steps", "--values", *how).output


def test_a_step_says_how_long_the_conversation_is_and_what_came(paid: Path) -> None:
    lines = footprint("last", "--db", str(paid), "--steps", "--json").output.splitlines()
    by_kind = {step["kind"]: step for step in map(json.loads, lines[:-1])}
    assert by_kind["call.answered"] == {
        "position": 9, "segment": 1, "kind": "call.answered", "iteration": 1, "messages": 3,
        "came": ["tool"], "input_tokens": 7, "output_tokens": 3, "call_id": "c1",
    }  # fmt: skip


def test_a_run_that_is_not_there_is_refused_by_name(paid: Path) -> None:
    result = footprint("ffff", "--db", str(paid))
    assert result.exit_code == 1
    assert "There is no such run" in result.output


def test_a_run_that_came_behind_a_pause_matches_from_there_on_and_what_follows_it_too(tmp_path: Path) -> None:
    async def go() -> tuple[str, str]:
        async with agent_on(on_file(tmp_path / "first.db"), asked(5), asked(500)) as agent:
            pause = await agent.run("pay")
            assert isinstance(pause, AskPause)
        elsewhere = agent_on(on_file(tmp_path / "l.db"), asked(6), reply(text="done"), reply(text="more"))
        async with elsewhere as agent:
            checkpoint = json.loads(json.dumps(pause.checkpoint))
            first = answered(await agent.resume(checkpoint, YES))
            second = answered(await agent.follow_up("and now?"))
            return first.run_id, second.run_id

    imported, following = run(go())
    for run_id in (imported, following):
        found = replay(tmp_path / "l.db", run_id)
        assert found.matches, found.difference
        assert found.elsewhere
        assert found.outcome == "answered"
    whole = replay(tmp_path / "first.db", imported)
    assert whole.matches
    assert (whole.elsewhere, whole.outcome) == (False, "paused")
    # Its first request says how long the conversation is; the next one is compared with that.
    with unguarded(tmp_path / "l.db") as connection:
        last = "SELECT max(id) FROM facts WHERE kind = 'model.asked' AND run_id = ?"
        (asking,) = connection.execute(last, (imported,)).fetchone()
        with altered(connection, asking, "messages", 99):
            assert not replay(tmp_path / "l.db", imported).matches


def test_a_run_behind_a_conversation_the_file_does_not_have_matches(tmp_path: Path) -> None:
    async def go() -> str:
        async with agent_on(
            on_file(tmp_path / "l.db"), reply(text="one"), asked(5), reply(text="two")
        ) as agent:
            await agent.run("first")
            return answered(await agent.follow_up("second")).run_id

    run_id = run(go())
    assert replay(tmp_path / "l.db", run_id).elsewhere is False
    with unguarded(tmp_path / "l.db") as connection:
        connection.execute(
            "DELETE FROM vals WHERE fact_id IN (SELECT id FROM facts WHERE run_id <> ?)", (run_id,)
        )
        connection.execute("DELETE FROM facts WHERE run_id <> ?", (run_id,))
    found = replay(tmp_path / "l.db", run_id)
    assert found.matches, found.difference
    assert found.elsewhere


def test_a_call_that_was_served_matches(tmp_path: Path) -> None:
    async def go() -> None:
        async with mcp_serve(name="desk", tools=[refund], ledger=on_file(tmp_path / "l.db")) as serving:
            await served(serving, "refund", {"amount": 5})

    run(go())
    found = one_run(tmp_path / "l.db")
    assert found.matches, found.difference
    assert found.facts > 4


@pytest.mark.parametrize("ending", ["denied", "halted", "failed", "cancelled", "paused", "open"])
def test_a_run_matches_however_it_ended(tmp_path: Path, ending: str) -> None:
    ledger = on_file(tmp_path / "l.db")

    async def go() -> None:
        started = asyncio.Event()

        @tool(name="pay")
        async def slow(amount: int) -> None:
            started.set()
            await asyncio.sleep(60)

        builder, _ = describe(
            [] if ending == "failed" else [asked(500), reply(text="done")],
            slow if ending in {"cancelled", "open"} else pay,
            ledger=ledger,
        )
        match ending:
            case "denied":
                builder.act(input=[on_message("no")(lambda message: deny("never"))])
            case "halted":
                builder.permission(Halts())
            case "paused":
                builder.act(before_tool=[four_eyes])
            case _:
                pass
        async with builder.tool().build() as agent:
            turn = asyncio.ensure_future(agent.run("pay"))
            if ending in {"cancelled", "open"}:
                await started.wait()
                turn.cancel()
            await asyncio.wait([turn])
            expected = {"denied": MessageDeniedError, "halted": PolicyHaltError, "failed": ProviderError}
            assert isinstance(None if turn.cancelled() else turn.exception(), expected.get(ending, object))

    run(go())
    if ending == "open":
        # As a crash in the body leaves it.
        with unguarded(tmp_path / "l.db") as connection:
            intent = "SELECT run_id, max(position) FROM facts WHERE kind = 'tool.intended'"
            cut_off(connection, *connection.execute(intent).fetchone())
    found = one_run(tmp_path / "l.db")
    assert found.matches, found.difference
    assert (found.outcome or "open") == ending
    if ending in {"open", "paused"}:
        given_up = on_file(tmp_path / "l.db")
        run(abandon_run(given_up, found.run_id, by="dana", reason="nobody waits"))
        run(given_up.close())
        again = one_run(tmp_path / "l.db")
        assert again.matches, again.difference
        assert (again.outcome, again.facts) == ("abandoned", found.facts + 2)


class Halts:
    """A checker that ends the run."""

    name = "halts"

    def check(self, call: Any) -> Permission:
        return Permission(result="halt", reason="never")
