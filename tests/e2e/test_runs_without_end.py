"""`footprint doctor` lists the runs without an end; `footprint abandon` gives one of them up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from commanded import footprint, records, refused
from file_ledger import select
from footprint_core import Agent, Ledger, MemoryLedger, Pause, RecoverError, ask, before_tool, tool
from footprint_core.facts import MessageTaken, SegmentEnded, ToolIntended
from footprint_core.ledger import Batch, Entry
from footprint_core.providers import call, reply
from footprint_observe import SqliteLedger
from footprint_observe.query.doctor import doctor
from prefixes import cut_behind
from story import answered, describe, run

PAYS = (reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="ok"))


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def agent_of(ledger: Ledger, *, asks: bool = False, behind: int = 0) -> Agent:
    rule = before_tool("asks", version="1")(lambda _: ask("Pay?"))
    act: Any = {"before_tool": [rule]} if asks else None
    return describe(PAYS[behind:], pay, ledger=ledger, act=act)[0].build()


async def into(ledger: SqliteLedger, kind: type[Any]) -> str:
    """A run that died behind a kind of fact, in a file."""
    whole = MemoryLedger()
    run_id = answered(await agent_of(whole).run("pay")).run_id
    for entry in cut_behind(whole, run_id, kind).entries(run_id):
        await ledger.append(Batch(run_id=run_id, segment=1, entries=(entry,)))
    return run_id


def written(path: Path, work: Callable[[SqliteLedger], Awaitable[Any]]) -> Any:
    """What came of some work on the file, which is closed behind it."""

    async def play() -> Any:
        async with SqliteLedger(path, durability="process") as ledger:
            return await work(ledger)

    return asyncio.run(play())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "l.db"


def test_a_run_without_an_end_is_listed_with_its_age_and_its_calls_that_may_have_run(path: Path) -> None:
    async def work(ledger: SqliteLedger) -> tuple[str, str]:
        await agent_of(ledger).run("pay")
        died = await into(ledger, ToolIntended)
        paused = await agent_of(ledger, asks=True).run("pay")
        assert isinstance(paused, Pause)
        return died, await into(ledger, MessageTaken)

    died, begun = written(path, work)
    found = doctor(path, now=datetime.now(UTC) + timedelta(days=2))
    assert [one["run_id"] for one in found["endless"]] == [died, begun]
    first, second = found["endless"]
    assert first["in_doubt"] == [
        {"iteration": 1, "tool_call_id": "c1", "tool_name": "pay", "tool_source": None}
    ]
    assert (first["agent"], first["segments"], first["last_kind"]) == ("tested", 1, "tool.intended")
    assert 172_700 < first["quiet_seconds"] < 172_900
    assert second["in_doubt"] == []
    assert found["open_pauses"] == 1
    said = footprint("doctor", "--db", str(path)).stdout
    assert "2 runs without an end" in said
    assert f"{died} of tested" in said
    assert "may have run: pay, call c1 of model call 1" in said
    assert "1 question open" in said
    (record,) = records("doctor", "--db", str(path))
    assert record["endless"] == [
        {**one, "quiet_seconds": seen["quiet_seconds"]}
        for one, seen in zip(found["endless"], record["endless"], strict=True)
    ]
    assert record["log_bytes"] >= 0


def test_the_size_of_the_log_beside_the_file_is_told_while_it_is_there(path: Path) -> None:
    ledger = SqliteLedger(path, durability="process")
    run(into(ledger, ToolIntended))
    size = path.with_name("l.db-wal").stat().st_size
    assert size > 0
    assert doctor(path)["log_bytes"] == size
    run(ledger.close())


def test_a_ledger_in_which_every_run_has_an_end_needs_nobody(path: Path) -> None:
    written(path, lambda ledger: agent_of(ledger).run("pay"))
    assert "0 runs without an end." in footprint("doctor", "--db", str(path)).stdout


def test_a_run_whose_recovery_died_is_listed_until_it_is_given_up(path: Path) -> None:
    async def work(ledger: SqliteLedger) -> str:
        run_id = await into(ledger, ToolIntended)
        at = len(ledger.entries(run_id)) + 1
        end = SegmentEnded(outcome="abandoned", iterations=1, input_tokens=0, output_tokens=0, duration_us=1)
        await ledger.append(Batch(run_id=run_id, segment=1, entries=(Entry(position=at, time=1, fact=end),)))
        return run_id

    run_id = written(path, work)
    assert [one["run_id"] for one in doctor(path)["endless"]] == [run_id]
    footprint("abandon", run_id, "--by", "dana", "--reason", "stuck", "--db", str(path))
    assert doctor(path)["endless"] == []


def test_a_run_is_given_up_from_the_command_line(path: Path) -> None:
    run_id = written(path, lambda ledger: into(ledger, ToolIntended))
    done = footprint("abandon", run_id[:12], "--by", "dana@ops", "--reason", "stuck", "--db", str(path))
    assert f"The run {run_id} is given up." in done.stderr
    assert select(path, "SELECT outcome FROM runs") == [("abandoned",)]
    assert select(
        path,
        "SELECT v.field, v.json FROM vals AS v JOIN facts AS f ON f.id = v.fact_id "
        "WHERE f.kind = 'run.abandoned' ORDER BY 1",
    ) == [("by", '"dana@ops"'), ("reason", '"stuck"')]

    async def again(ledger: SqliteLedger) -> None:
        with pytest.raises(RecoverError, match="abandoned by a person"):
            await agent_of(ledger, behind=1).recover(run_id)

    written(path, again)


def test_what_cannot_be_given_up_is_refused_in_one_sentence(path: Path) -> None:
    written(path, lambda ledger: agent_of(ledger).run("pay"))
    rest = ("--by", "dana", "--reason", "r", "--db", str(path))
    assert "is over, it is answered" in refused("abandon", "last", *rest, code=1)
    assert "no such run" in refused("abandon", "0123", *rest, code=1)
    assert "it is blank, and goes on record" in refused("abandon", "last", "--by", " ", *rest[2:], code=2)
    nowhere = path.with_name("none.db")
    refused("abandon", "last", "--by", "d", "--reason", "r", "--db", str(nowhere), code=3)
    assert not nowhere.exists()
    for missing in ("--by", "--reason"):
        given = [part for part in zip(rest[::2], rest[1::2], strict=True) if part[0] != missing]
        done = footprint("abandon", "last", *(word for pair in given for word in pair), code=2)
        assert missing in done.stderr


def test_a_call_the_model_was_told_may_have_run_stays_in_doubt(path: Path) -> None:
    async def work(ledger: SqliteLedger) -> str:
        run_id = await into(ledger, ToolIntended)
        await agent_of(ledger, behind=1).recover(run_id)
        return run_id

    run_id = written(path, work)
    assert select(path, "SELECT status, executed, in_doubt FROM tool_calls") == [("blocked", 0, 1)]
    assert doctor(path)["endless"] == []
    shown = footprint("show", run_id, "--db", str(path)).stdout
    assert "may have run" in shown
    assert select(path, "SELECT count(*) FROM facts WHERE kind = 'run.configured'") == [(2,)]
