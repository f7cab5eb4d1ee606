"""The tree of one governed run, whichever door it came in by: plain or async, streamed, in parallel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from footprint_core import (
    Agent,
    Outcome,
    Permission,
    after_tool,
    allow,
    before_tool,
    deny,
    on_message,
    static_credentials,
    tool,
)
from footprint_core.facts import Usage
from footprint_core.providers import Scripted, call, reply
from footprint_observe import semconv
from permits import Checker
from story import answered, run
from traced import Traced, said

USAGE = Usage(input=30, output=4, cache_read=20)
REPLIES = [
    reply(calls=[call("c1", "look", {"key": "a"}), call("c2", "pay", {"amount": 9})], usage=USAGE),
    reply(calls=[call("c3", "pay", {"amount": 900})], usage=USAGE),
    reply(calls=[call("c4", "pay", {"amount": "many"}), call("c5", "guess", {})], usage=USAGE),
    reply(text="Paid.", usage=USAGE),
]
TREE = [
    [
        "invoke_agent refunds",
        "middleware.decision scrub",
        "middleware.decision codenames",
        "chat m",
        ["execute_tool look", "middleware.decision ceiling", "middleware.decision pii"],
        ["execute_tool pay", "middleware.decision ceiling", "middleware.decision pii"],
        "chat m",
        ["execute_tool pay", "middleware.decision ceiling"],
        "chat m",
        ["execute_tool pay", "middleware.decision ceiling"],
        ["execute_tool (unknown)", "middleware.decision ceiling"],
        "chat m",
        "middleware.decision scrub",
        "middleware.decision codenames",
    ]
]

Door = Callable[[Agent], Outcome]
DOORS: dict[str, Door] = {
    "async": lambda agent: run(agent.run("Refund me.")),
    "sync": lambda agent: agent.run_sync("Refund me."),
}
EVERY_DOOR = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
EVERY_WAY = pytest.mark.parametrize(
    ("parallel", "streaming"),
    [(False, False), (True, False), (False, True), (True, True)],
    ids=["plain", "parallel", "streamed", "parallel and streamed"],
)


def look(key: str) -> str:
    """Look up."""
    return key


@tool(needs="bank")
async def pay(amount: int) -> int:
    """Pay."""
    return amount


def governed(traced: Traced, *, parallel: bool, streaming: bool) -> Agent:
    ceiling = before_tool("ceiling", version="3")
    return (
        Agent.create(
            provider=Scripted(REPLIES, streaming=streaming),
            model="m",
            name="refunds",
            parallel_tools=parallel,
        )
        .tool(look, pay)
        .act(
            input=[on_message("scrub")(lambda _: allow())],
            before_tool=[ceiling(lambda c: deny("no") if c.args.get("amount") == 900 else allow())],
            after_tool=[after_tool("pii")(lambda _: allow())],
            output=[on_message("codenames")(lambda _: allow())],
        )
        .permission(Checker(Permission(result="allow", policy_rule_id="P-7"), name="roles"))
        .credentials(static_credentials({"bank": "secret"}))
        .watch(traced.watcher)
        .build()
    )


@EVERY_DOOR
@EVERY_WAY
def test_a_governed_run_has_the_same_tree(door: Door, parallel: bool, streaming: bool) -> None:
    traced = Traced()
    answered(door(governed(traced, parallel=parallel, streaming=streaming)))
    assert traced.tree() == TREE
    assert traced.statuses() == {StatusCode.UNSET}
    assert traced.watcher._segments.found == {}


@EVERY_DOOR
@EVERY_WAY
def test_what_became_of_every_call_is_said_the_same(door: Door, parallel: bool, streaming: bool) -> None:
    traced = Traced()
    answered(door(governed(traced, parallel=parallel, streaming=streaming)))
    calls = [span for span in traced.spans if span.name.startswith("execute_tool ")]
    told = [
        (said(c)["gen_ai.tool.call.id"], said(c)["footprint.tool.status"], said(c)["footprint.tool.executed"])
        for c in calls
    ]
    assert told == [
        ("c1", "ran", True),
        ("c2", "ran", True),
        ("c3", "denied", False),
        ("c4", "invalid", False),
        ("c5", "unknown", False),
    ]
    notes = [[note.name for note in span.events] for span in calls]
    credential = ["credential.requested", "credential.acquired"]
    assert notes == [
        ["permission.check"],
        ["permission.check", *credential],
        ["permission.check"],
        ["permission.check", "validation.args_invalid"],
        ["permission.check"],
    ]


@pytest.mark.parametrize("streaming", [False, True])
def test_how_long_the_first_chunk_took_is_said_of_a_model_that_streams(streaming: bool) -> None:
    traced = Traced()
    answered(run(governed(traced, parallel=False, streaming=streaming).run("Refund me.")))
    last = said(traced.all_named("chat m")[-1])
    assert (semconv.RESPONSE_FIRST_CHUNK in last) is streaming
    assert (last[semconv.USAGE_INPUT], last[semconv.USAGE_CACHE_READ]) == (30, 20)


def test_the_totals_of_a_run_stand_on_its_agent_span_only() -> None:
    traced = Traced()
    answered(run(governed(traced, parallel=False, streaming=False).run("Refund me.")))
    agent = traced.said("invoke_agent refunds")
    assert (agent[semconv.TOTAL_INPUT], agent[semconv.TOTAL_OUTPUT]) == (120, 16)
    counts: dict[str, Any] = {name: agent[f"footprint.decisions.{name}"] for name in ("allow", "deny", "ask")}
    decisions = [s for s in traced.spans if s.name.startswith("middleware.decision")]
    outcomes = [said(s)[semconv.OUTCOME] for s in decisions]
    assert counts == {name: outcomes.count(name) for name in counts}
