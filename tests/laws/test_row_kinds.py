"""What is a decision row and what is an entry of another kind; and which version of a rule decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from file_ledger import on_file, select
from footprint_core import Answer, ToolCallContext, ToolOutcome, allow, before_tool, sliding_window
from footprint_core.events import AgentConfigured
from footprint_core.facts import Decided, OutputJudged, WindowVisited
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

PAYS = [reply(calls=[call("c1", "pay", {"amount": 500})]), reply(text="done")]


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


@before_tool("fee")
def fee(call: ToolCallContext) -> ToolOutcome:
    return allow({"amount": call.args["amount"] - 1}, why="fee")


def test_window_visits_and_schema_attempts_are_entries_of_their_own_kinds(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)
    replies = [
        *(reply(calls=[call(f"c{i}", "pay", {"amount": i})]) for i in range(3)),
        reply(text="not json"),
        reply(text="5"),
    ]
    builder, _ = describe(replies, pay, ledger=ledger, act={"window": sliding_window(keep_recent_turns=1)})
    agent = builder.output_schema(int, retries=1).build()

    async def go() -> Answer:
        async with agent:
            return answered(await agent.run("hello"))

    answer = run(go())
    entries = ledger.entries(answer.run_id)
    assert answer.decisions == ()
    assert not any(isinstance(entry.fact, Decided) for entry in entries)
    assert [entry.fact.outcome for entry in entries if isinstance(entry.fact, OutputJudged)] == [
        "retried",
        "passed",
    ]
    assert any(isinstance(entry.fact, WindowVisited) and entry.fact.removed for entry in entries)
    kinds = dict(select(path, "SELECT kind, count(*) FROM facts GROUP BY kind"))
    assert kinds["output.judged"] == 2
    assert kinds["window.visited"] >= 1
    assert "decision" not in kinds


class Versioned:
    """A rule whose version can be changed."""

    name = "stated"

    def __init__(self) -> None:
        self.version: object = 7

    def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome:
        return allow()


class Builtin:
    """A rule whose hook is no code that can be had."""

    name = "hidden"
    on_tool_call: Any = staticmethod(repr)


def test_a_version_is_read_once_and_is_a_hash_of_the_code_where_none_is_stated(tmp_path: Path) -> None:
    stated, seen = Versioned(), Seen()
    path = tmp_path / "l.db"
    rules: list[Any] = [stated, fee, Builtin()]
    builder, _ = describe(PAYS, pay, act={"before_tool": rules}, ledger=on_file(path), watch=[seen])
    agent = builder.build()
    stated.version = 8

    async def go() -> Answer:
        async with agent:
            return answered(await agent.run("hello"))

    rows = {row.middleware: row.to_dict() for row in run(go()).decisions}
    assert rows["stated"]["version"] == "7"
    assert len(rows["fee"]["version"]) == 12
    int(rows["fee"]["version"], 16)
    assert "version" not in rows["hidden"]
    (configured,) = seen.of(AgentConfigured)
    by_rule = {name: row.get("version") for name, row in rows.items()}
    assert {ref.name: ref.version for ref in configured.rules["before-tool"]} == by_rule
    in_file = dict(select(path, "SELECT middleware, version FROM decisions"))
    assert in_file == by_rule


def test_other_code_has_another_version_and_equal_code_the_same() -> None:
    def version_of(rule: Any) -> str | None:
        builder, _ = describe([], pay, act={"before_tool": [rule]})
        return builder.spec().rules["before-tool"][0].version

    def made(limit: int) -> Any:
        @before_tool("rule")
        def rule(call: ToolCallContext) -> ToolOutcome:
            return allow(why=str(limit))

        return rule

    @before_tool("rule")
    def other(call: ToolCallContext) -> ToolOutcome:
        return allow(why="another")

    assert version_of(made(1)) == version_of(made(2)) is not None
    assert version_of(other) != version_of(made(1))
