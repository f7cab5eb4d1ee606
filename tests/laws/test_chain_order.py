"""How the tool chain is walked: forth over the call, back over the result, by one walker everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from mcp import Client

from footprint_core import (
    Answer,
    AskPause,
    HumanPause,
    MemoryLedger,
    ToolCallContext,
    ToolResultContext,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    deny,
)
from footprint_core.facts import ToolFinished
from footprint_core.ledger import Batch, Receipt
from footprint_core.mcp import mcp_serve
from footprint_core.providers import call, reply
from story import answered, describe, facts_of, run


class Both:
    """A rule with both tool hooks, which answers what it is told and keeps what it was asked."""

    def __init__(self, name: str, asked: list[Any], before: Any = None, after: Any = None) -> None:
        self.name, self._asked, self._before, self._after = name, asked, before, after

    def on_tool_call(self, shown: ToolCallContext) -> Any:
        self._asked.append((self.name, "before-tool", shown.args["amount"]))
        return _answer(self._before)

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self._asked.append((self.name, "after-tool", ended.result))
        return _answer(self._after)


def _answer(said: Any) -> Any:
    if isinstance(said, Exception):
        raise said
    return allow() if said is None else said


async def pay(amount: int) -> int:
    """Pay."""
    return amount * 10


def paying(*rules: Any, act: Any = None, tools: Sequence[Any] = (pay,), named: str = "pay") -> Any:
    replies = [reply(calls=[call("c1", named, {"amount": 5})]), reply(text="done")]
    builder, model = describe(replies, *tools, act=act)
    return builder.tool_middleware(*rules), model


def walked(out: Answer) -> list[tuple[str, str]]:
    return [(row.middleware, row.moment) for row in out.decisions]


def test_the_chain_is_walked_first_to_last_over_the_call_and_last_to_first_over_the_result() -> None:
    asked: list[Any] = []
    rules = [Both(name, asked) for name in "abcd"]
    builder, _ = paying(*rules)
    out = answered(run(builder.build().run("go")))
    order = [(name, "before-tool") for name in "abcd"] + [(name, "after-tool") for name in "dcba"]
    assert [(name, moment) for name, moment, _ in asked] == order
    assert walked(out) == order
    assert [row.position for row in out.decisions] == sorted(row.position for row in out.decisions)


def test_each_link_is_shown_what_the_one_before_it_left_in_both_directions() -> None:
    asked: list[Any] = []
    builder, model = paying(
        Both("a", asked, allow({"amount": 6}, why="+1"), allow("a", why="last")),
        Both("b", asked, allow({"amount": 7}, why="+1"), allow("b", why="second")),
        Both("c", asked, None, allow("c", why="first")),
    )
    run(builder.build().run("go"))
    assert asked == [
        ("a", "before-tool", 5),
        ("b", "before-tool", 6),
        ("c", "before-tool", 7),
        ("c", "after-tool", 70),
        ("b", "after-tool", "c"),
        ("a", "after-tool", "b"),
    ]
    assert model.requests[1].messages[-1].text == "a"


def test_the_last_of_the_after_bucket_speaks_first_and_the_before_bucket_last() -> None:
    asked: list[Any] = []
    a, b = Both("a", asked), Both("b", asked)
    before_only = before_tool("o")(lambda _: allow())
    p, q = (after_tool(name)(lambda _: allow()) for name in "pq")
    builder, _ = paying(act={"before_tool": [a, before_only, b], "after_tool": [p, q]})
    out = answered(run(builder.build().run("go")))
    after = [row.middleware for row in out.decisions if row.moment == "after-tool"]
    assert after == ["q", "p", "b", "a"]


def test_a_link_takes_no_part_in_the_moment_it_has_no_hook_for() -> None:
    asked: list[Any] = []

    class AfterOnly:
        name = "after-only"
        on_tool_call = "no hook, only something of that name"

        def on_tool_result(self, shown: ToolResultContext) -> Any:
            return allow()

    before_only = before_tool("before-only")(lambda _: allow())
    builder, _ = paying(AfterOnly(), before_only, Both("both", asked))
    out = answered(run(builder.build().run("go")))
    assert walked(out) == [
        ("before-only", "before-tool"),
        ("both", "before-tool"),
        ("both", "after-tool"),
        ("after-only", "after-tool"),
    ]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (None, "no money"),
        (allow({"sorry": True}, why="kinder"), '{"sorry":true}'),
        (deny("ask a colleague"), "ask a colleague"),
    ],
)
def test_a_tool_that_raises_has_executed_and_the_model_reads_what_the_chain_let_through(
    said: Any, read: str
) -> None:
    looked: list[Any] = []

    async def pay(amount: int) -> int:
        raise LookupError("no money")

    class Looks(Both):
        def on_tool_result(self, ended: ToolResultContext) -> Any:
            looked.append((ended.failed, ended.result, ended.args))
            return super().on_tool_result(ended)

    builder, model = paying(Looks("looks", [], after=said), tools=[pay])
    run(builder.build().run("go"))
    assert looked == [(True, "no money", {"amount": 5})]
    assert model.requests[1].messages[-1].text == read


@pytest.mark.parametrize("value", [{"limit": 3}, None, "three", [], 0, False])
def test_the_value_a_person_gives_a_tool_that_asked_is_its_result_and_goes_through_the_after_chain(
    value: Any,
) -> None:
    shown: list[Any] = []

    async def pay(amount: int, to: str = "card") -> int:
        ask_human("how much may it be?")

    class Looks(Both):
        def on_tool_result(self, ended: ToolResultContext) -> Any:
            shown.append((ended.args, ended.result, ended.failed, ended.tool_call_id, ended.iteration))
            return allow({"checked": ended.result}, why="wrapped")

    builder, model = paying(Looks("looks", [], before=allow({"amount": 6}, why="a fee")), tools=[pay])
    agent = builder.build()

    async def story() -> Answer:
        paused = await agent.run("go")
        assert isinstance(paused, HumanPause)
        assert shown == []
        return answered(await agent.resume(paused.checkpoint, value))

    out = run(story())
    assert shown == [({"amount": 6, "to": "card"}, value, False, "c1", 1)]
    (after,) = [row for row in out.decisions if row.moment == "after-tool"]
    assert (after.before, after.after) == (value, {"checked": value})
    assert '"checked"' in model.requests[1].messages[-1].text


class Kept(MemoryLedger):
    """A ledger that knows its runs, so that those of a server can be found."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.runs = list(dict.fromkeys((*self.runs, batch.run_id)))
        return super().append_inline(batch)


VERBS: list[tuple[Any, Any]] = [
    (None, None),
    (allow({"amount": 6}, why="a fee"), allow(["wrapped"], why="wrapped")),
    (allow(why="looked"), allow(why="looked")),
    (deny("over the limit"), None),
    (LookupError("rules are down"), None),
    ({"outcome": "allow"}, None),
    (allow("no dict", why="x"), None),
    (None, deny("not for models")),
    (None, LookupError("rules are down")),
    (None, "fine"),
    (None, ask("may it read this?")),
]


async def _in_an_agent(ledger: Kept, rules: list[Any], *, asks: bool) -> str:
    """What the model reads of the call, with a question in front of the rules or without."""
    first = [before_tool("asks")(lambda _: ask("may I?"))] if asks else []
    builder, model = paying(*first, *rules)
    agent = builder.ledger(ledger).build()
    out = await agent.run("go")
    if asks:
        assert isinstance(out, AskPause)
        await agent.resume(out.checkpoint, check_in_approved(by="dana"))
    text: str = model.requests[1].messages[-1].text
    return text


async def _served(ledger: Kept, rules: list[Any]) -> str:
    server = mcp_serve(name="server", tools=[pay], tool_middleware=rules, ledger=ledger).server
    async with Client(server) as client:
        (block,) = (await client.call_tool("pay", {"amount": 5})).content
    return str(getattr(block, "text", None))


@pytest.mark.parametrize(("before", "after"), VERBS)
def test_an_agent_a_resumed_call_and_a_served_tool_are_walked_alike(before: Any, after: Any) -> None:
    found: list[Any] = []
    for way in ("agent", "resumed", "served"):
        asked: list[Any] = []
        ledger = Kept()
        rules = [Both("a", asked), Both("b", asked, before, after), Both("c", asked)]
        work = (
            _served(ledger, rules) if way == "served" else _in_an_agent(ledger, rules, asks=way == "resumed")
        )
        read = asyncio.run(asyncio.wait_for(work, 30))
        rows = [facts_of(row) for run_id in ledger.runs for row in ledger.decisions(run_id)]
        rows = [row for row in rows if row["middleware"] != "asks"]
        for row in rows:
            row.pop("after_approval", None)
            for key in ("position", "segment", "iteration", "tool_call_id"):
                del row[key]
        ran = [
            fact.result
            for run_id in ledger.runs
            for fact in (entry.fact for entry in ledger.entries(run_id))
            if isinstance(fact, ToolFinished)
        ]
        found.append((asked, rows, read, ran))
    assert found[0] == found[1] == found[2]
    assert found[0][0]
