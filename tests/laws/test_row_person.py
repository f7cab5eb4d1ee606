"""The rows of a question a person answered, and of rules that change what they approved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from file_ledger import on_file, select
from footprint_core import (
    Answer,
    AskPause,
    PersonDecision,
    ToolCallContext,
    ToolOutcome,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
)
from footprint_core.mcp import mock_mcp_client
from footprint_core.providers import call, reply
from footprint_observe.cli import main
from story import answered, describe, run

PAYS = [
    reply(calls=[call("c0", "pay", {"amount": 1})]),
    reply(calls=[call("c1", "pay", {"amount": 500})]),
    reply(text="done"),
]


class Pays:
    """A tool that remembers what it paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def tool(self) -> Any:
        def pay(amount: int) -> int:
            self.paid.append(amount)
            return amount

        return pay


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?") if call.args["amount"] > 100 else allow()


@before_tool("fee")
def fee(call: ToolCallContext) -> ToolOutcome:
    return allow({"amount": call.args["amount"] - 1}, why="fee")


@before_tool("look")
def look(call: ToolCallContext) -> ToolOutcome:
    return allow(why="seen")


def play(path: Path, rules: list[Any], answer: PersonDecision) -> tuple[AskPause, Answer, Pays]:
    """Run up to the question, and answer it."""
    pays = Pays()
    tools = mock_mcp_client("billing", [pays.tool()]).tools_now()
    builder, _ = describe(PAYS, *tools, act={"before_tool": rules}, ledger=on_file(path))
    agent = builder.build()

    async def go() -> tuple[AskPause, Answer]:
        async with agent:
            pause = await agent.run("go")
            assert isinstance(pause, AskPause)
            return pause, answered(await agent.resume(pause.checkpoint, answer))

    return *run(go()), pays


@pytest.mark.parametrize(
    ("answer", "outcome", "word"),
    [
        (check_in_approved(by="dana@ops", note="checked it"), "allow", "approved"),
        (check_in_declined(by="dana@ops", note="checked it"), "deny", "declined"),
    ],
)
def test_a_persons_answer_is_a_second_row_of_the_rule_that_asked(
    tmp_path: Path, answer: PersonDecision, outcome: str, word: str
) -> None:
    path = tmp_path / "l.db"
    pause, ended, _ = play(path, [four_eyes, look], answer)
    asked = pause.decisions[-1].to_dict()
    second = ended.decisions[len(pause.decisions)].to_dict()
    assert (asked["middleware"], asked["outcome"]) == ("four-eyes", "ask")
    assert (second["middleware"], second["outcome"], second["changed"]) == ("four-eyes", outcome, False)
    for name in ("tool_name", "tool_call_id", "tool_source", "iteration", "moment", "version"):
        assert second[name] == asked[name]
    assert (second["tool_call_id"], second["iteration"]) == ("c1", 2)
    for said in (word, "dana@ops", "checked it"):
        assert said in second["why"]
    assert second["decided_by"] == "dana@ops"
    assert "decided_by" not in asked
    stored = select(path, f"SELECT decided_by, outcome FROM decisions WHERE position = {second['position']}")
    assert stored == [("dana@ops", outcome)]
    assert select(path, "SELECT json FROM vals WHERE field = 'decided_by'") == [('"dana@ops"',)]


def test_a_rule_that_changes_what_was_approved_says_so_and_the_call_runs(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    approval = check_in_approved(by="dana@ops")
    _, ended, pays = play(path, [look, four_eyes, fee, look_again()], approval)
    assert pays.paid == [0, 499]
    rows = [row.to_dict() for row in ended.decisions if row.tool_call_id == "c1"]
    assert [row["middleware"] for row in rows] == ["look", "four-eyes", "four-eyes", "fee", "look-again"]
    assert [row.get("after_approval", False) for row in rows] == [False, False, False, True, False]
    assert (rows[3]["before"], rows[3]["after"]) == ({"amount": 500}, {"amount": 499})
    assert not any("after_approval" in row.to_dict() for row in ended.decisions if row.tool_call_id == "c0")
    after_approval = select(path, "SELECT middleware FROM decisions WHERE after_approval = 1")
    assert after_approval == [("fee",)]


def test_footprint_why_shows_what_was_approved_beside_what_ran(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    play(path, [four_eyes, fee], check_in_approved(by="dana@ops"))
    told = CliRunner().invoke(main, ["why", "c1", "--db", str(path)], env={"COLUMNS": "100"})
    assert told.exit_code == 0, told.output
    lines = [" ".join(line.split()) for line in told.output.splitlines()]
    assert "approved ran" in lines
    assert '{"amount":500} {"amount":499}' in lines
    assert any("Really?" in line for line in lines)
    assert any("approved by dana@ops" in line for line in lines)
    untouched = CliRunner().invoke(main, ["why", "c0", "--db", str(path)], env={"COLUMNS": "100"})
    assert untouched.exit_code == 0
    assert "approved" not in untouched.output
    missing = CliRunner().invoke(main, ["why", "c9", "--db", str(path)])
    assert missing.exit_code == 1
    assert "a call of that id" in missing.output


def look_again() -> Any:
    @before_tool("look-again")
    def rule(call: ToolCallContext) -> ToolOutcome:
        return allow({"amount": call.args["amount"]}, why="the same")

    return rule
