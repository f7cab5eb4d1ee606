"""Questions from Python: typed records, and the same filters for every question."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, assert_type

from footprint_core import Agent, ToolCallContext, ToolOutcome, allow, before_tool, deny
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from footprint_observe.query import (
    CallRow,
    DecisionRow,
    Filters,
    Found,
    RunRow,
    WhyRow,
    calls,
    decisions,
    find,
    follow,
    run,
    runs,
    sql,
    timeline,
    totals,
    why,
)
from story import run as run_to_the_end


@before_tool("ceiling", version="2")
def ceiling(context: ToolCallContext) -> ToolOutcome:
    return deny("Too much.") if context.args["amount"] > 100 else allow()


def pay(amount: int) -> int:
    """Pay an amount."""
    return amount


async def fill(path: Path) -> None:
    model = Scripted([reply(calls=[call("c1", "pay", {"amount": 500})]), reply(text="Refused.")])
    builder = Agent.create(provider=model, model="m", name="till").tool(pay).act(before_tool=[ceiling])
    async with builder.ledger(SqliteLedger(path)).build() as agent:
        await agent.run("Pay 500")


def test_questions_have_typed_answers_and_share_their_filters(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    run_to_the_end(fill(path))
    refused = decisions(path, outcome="deny", rule="ceiling", since=date(2020, 1, 1), limit=10)
    assert_type(refused, list[DecisionRow])
    assert [(row["tool_name"], row["why"], row["changed"]) for row in refused] == [
        ("pay", "Too much.", False)
    ]
    (started,) = runs(path, since=datetime.now(UTC) - timedelta(hours=1), ended="answered")
    assert_type(started, RunRow)
    assert run(path, started["run_id"][:20]) == run(path) == started
    (one,) = calls(path)
    assert_type(one, CallRow)
    assert one["status"] == "denied"
    (told,) = why(path, "c1")
    assert_type(told, WhyRow)
    assert told["asked_args"] == {"amount": 500}
    assert timeline(path)[0]["kind"] == "run.configured"
    of_the_rule: Filters = {"version": "2", "shadow": False, "until": "today"}
    assert_type(totals(path, by=["rule"], **of_the_rule), list[dict[str, Any]])
    assert totals(path, by=["rule"], **of_the_rule)[0]["deny"] == 1
    places = find(path, "too MUCH", run="last")
    assert_type(places, Generator[Found, None, None])
    assert {place["field"] for place in places} >= {"why"}
    following = follow(path, since="1h")
    assert next(following)["middleware"] == "ceiling"
    following.close()
    assert sql(path, "select count(*) as n from runs where agent = :name", {"name": "till"}) == [{"n": 1}]
