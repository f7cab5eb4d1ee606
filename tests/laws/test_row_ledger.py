"""Rows in a ledger file: when and where they stand there, and that every view of a run shows the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from file_ledger import on_file, select
from footprint_core import (
    Agent,
    Answer,
    AskPause,
    Decision,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    on_message,
)
from footprint_core.providers import call, reply
from footprint_observe.query.decisions import decisions as matching
from story import answered, describe, facts_of, run

YES = check_in_approved(by="dana@ops", note="checked")
PAYS = [reply(calls=[call("c1", "pay", {"amount": 500})]), reply(text="done")]


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


@on_message("greeting")
def greeting(message: MessageContext) -> MessageOutcome:
    return allow(f"{message.content}!", why="louder")


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?", detail={"n": 1}) if call.args["amount"] > 100 else allow()


@before_tool("fee")
def fee(call: ToolCallContext) -> ToolOutcome:
    return allow({"amount": call.args["amount"] - 1}, why="fee")


@after_tool("look")
def look(call: ToolResultContext) -> ToolResultOutcome:
    return allow(why="seen")


def governed(ledger: Any, replies: Any = PAYS, **options: Any) -> Agent:
    act: Any = {"input": [greeting], "before_tool": [four_eyes, fee], "after_tool": [look]}
    builder, _ = describe(replies, pay, act=act, ledger=ledger, **options)
    return builder.build()


async def paused(agent: Any) -> AskPause:
    outcome = await agent.run("hello")
    assert isinstance(outcome, AskPause)
    return outcome


def test_a_resumed_run_has_the_rows_before_the_pause_and_then_the_new_ones(tmp_path: Path) -> None:
    ledger = on_file(tmp_path / "l.db")
    agent = governed(ledger, [*PAYS, *PAYS])

    async def go() -> tuple[AskPause, Answer, AskPause]:
        pause = await paused(agent)
        shown = ledger.decisions(pause.run_id)
        assert pause.decisions == shown
        assert [msgspec.convert(row, Decision) for row in pause.checkpoint["rows"]] == list(shown)
        answer = answered(await agent.resume(pause.checkpoint, YES))
        again = await agent.follow_up("and again")
        assert isinstance(again, AskPause)
        await agent.close()
        return pause, answer, again

    pause, answer, again = run(go())
    assert answer.run_id == pause.run_id
    assert answer.decisions[: len(pause.decisions)] == pause.decisions
    assert [(row.segment, row.middleware) for row in answer.decisions] == [
        (1, "greeting"),
        (1, "four-eyes"),
        (2, "four-eyes"),
        (2, "fee"),
        (2, "look"),
        (2, "greeting"),
    ]
    assert again.run_id != answer.run_id
    assert [row.middleware for row in again.decisions] == ["greeting", "four-eyes"]
    assert {row.run_id for row in again.decisions} == {again.run_id}


def test_the_answer_and_the_ledger_give_the_same_rows(tmp_path: Path) -> None:
    ledger = on_file(tmp_path / "l.db")
    agent = governed(ledger)

    async def go() -> Answer:
        pause = await paused(agent)
        answer = answered(await agent.resume(pause.checkpoint, YES))
        await agent.close()
        return answer

    answer = run(go())
    assert answer.decisions
    assert answer.decisions == ledger.decisions(answer.run_id)
    told = [row.to_dict() for row in answer.decisions]
    assert told == [row.to_dict() for row in ledger.decisions(answer.run_id)]


def test_another_agent_that_resumes_gives_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    first, second = on_file(path), on_file(path)

    async def go() -> tuple[AskPause, Answer]:
        pause = await paused(governed(first))
        other = governed(second, PAYS[1:])
        answer = answered(await other.resume(pause.checkpoint, YES))
        await first.close()
        await other.close()
        return pause, answer

    pause, answer = run(go())
    assert answer.decisions[: len(pause.decisions)] == pause.decisions
    assert answer.decisions == first.decisions(answer.run_id)


def test_positions_have_no_gaps_in_a_run_and_ids_none_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)
    first, second = governed(ledger), governed(ledger, [reply(text="done")] * 2)

    async def go() -> tuple[AskPause, Answer, Answer]:
        pause = await paused(first)
        other = answered(await second.run("hello"))
        answer = answered(await first.resume(pause.checkpoint, YES))
        await ledger.close()
        return pause, other, answer

    pause, other, answer = run(go())
    rows = select(path, "SELECT id, run_id, segment, position FROM facts ORDER BY id")
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    for run_id in (pause.run_id, other.run_id):
        mine = [row for row in rows if row[1] == run_id]
        assert [row[3] for row in mine] == list(range(1, len(mine) + 1))
    assert {row[2] for row in rows if row[1] == pause.run_id} == {1, 2}
    # Positions of several runs say nothing about which came first; a query over them goes by id.
    asked = [(row["run_id"], row["position"]) for row in matching(path)]
    in_file = [(r.run_id, r.position) for r in (*pause.decisions, *other.decisions)]
    later = [(row.run_id, row.position) for row in answer.decisions if row.segment == 2]
    assert asked == [*in_file, *later]


def test_a_person_who_asks_the_file_finds_moment_and_the_older_spelling(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    async def go() -> Answer:
        agent = governed(on_file(path), [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")])
        async with agent:
            return answered(await agent.run("hello"))

    rows = run(go()).decisions
    spelled = [(row.moment, row.at, row.phase) for row in rows]
    assert spelled == [
        ("input", "message", "input"),
        ("before-tool", "tool", None),
        ("before-tool", "tool", None),
        ("after-tool", "tool", None),
        ("output", "message", "output"),
    ]
    assert select(path, "SELECT moment, at, phase FROM decisions ORDER BY id") == spelled


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE facts SET outcome = 'allow' WHERE kind = 'decision'",
        "DELETE FROM facts WHERE kind = 'decision'",
        "UPDATE vals SET json = '\"other\"' WHERE field = 'why'",
        "INSERT OR REPLACE INTO facts SELECT * FROM facts WHERE kind = 'decision'",
    ],
)
def test_a_row_is_never_rewritten_by_whoever_opens_the_file(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)

    async def go() -> AskPause:
        pause = await paused(governed(ledger))
        await ledger.close()
        return pause

    pause = run(go())
    connection = sqlite3.connect(path)
    try:
        with pytest.raises(sqlite3.Error):
            connection.execute(statement)
    finally:
        connection.close()
    assert ledger.decisions(pause.run_id) == pause.decisions


def test_equal_scripts_leave_equal_rows(tmp_path: Path) -> None:
    async def once(name: str) -> tuple[Decision, ...]:
        agent = governed(on_file(tmp_path / name))
        async with agent:
            pause = await paused(agent)
            return answered(await agent.resume(pause.checkpoint, YES)).decisions

    one, two = run(once("one.db")), run(once("two.db"))
    assert len(one) == 6
    assert [facts_of(row) for row in one] == [facts_of(row) for row in two]
    assert {row.run_id for row in one}.isdisjoint(row.run_id for row in two)
