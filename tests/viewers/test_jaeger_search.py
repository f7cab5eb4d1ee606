"""What was denied, paused, or raised is found in Jaeger by its tags, and only what raised is an error."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from footprint_core import (
    Agent,
    AskPause,
    ToolCallContext,
    ToolOutcome,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    deny,
)
from footprint_core.providers import Completed, Scripted, call, reply
from footprint_observe import SqliteLedger
from recorders.otel_spans import OtelSpans
from story import answered, run
from viewers.jaeger_server import Jaeger
from viewers.jaeger_spans import Span, named

SHOP = (
    reply(calls=[call("sells", "sell", {"item": "tea"})]),
    reply(calls=[call("denied", "sell", {"item": "gold"})]),
    reply(calls=[call("raises", "sell", {"item": "glass"})]),
    reply(calls=[call("invalid", "sell", {"thing": "tea"})]),
    reply(calls=[call("unknown", "borrow", {"item": "tea"})]),
    reply(text="closed"),
)
BUYS = (reply(calls=[call("asked", "sell", {"item": "silver"})]), reply(text="closed"))


def sell(item: str) -> str:
    """Sell an item."""
    if item == "glass":
        raise ValueError(item)
    return item


@before_tool("no-gold", version="1")
def no_gold(given: ToolCallContext) -> ToolOutcome:
    if given.args.get("item") == "gold":
        return deny("Gold is not for sale.")
    return ask("Sell silver?") if given.args.get("item") == "silver" else allow()


@before_tool("broken", version="1")
def broken(given: ToolCallContext) -> ToolOutcome:
    if given.args.get("item") == "lead":
        raise LookupError
    return allow()


class Shop:
    """Agents whose runs are in a Jaeger, under a service of their own."""

    def __init__(self, jaeger: Jaeger, folder: Path) -> None:
        self.jaeger = jaeger
        self.service = f"shop-{uuid.uuid4().hex}"
        self._path = folder / "shop.db"

    def agent(self, replies: Sequence[Completed]) -> Agent:
        return (
            Agent.create(provider=Scripted(replies), model="m", name="shop")
            .tool(sell)
            .act(before_tool=[no_gold, broken])
            .watch(OtelSpans.to_otlp(self.jaeger.http, service_name=self.service))
            .ledger(SqliteLedger(self._path))
            .build()
        )

    def calls(self, tags: Mapping[str, str]) -> list[str]:
        """The calls of every `execute_tool` span that has these tags, of the traces Jaeger finds by them."""
        return [span.tags["gen_ai.tool.call.id"] for span in self.spans(tags, "execute_tool")]

    def spans(self, tags: Mapping[str, str], name: str) -> list[Span]:
        found = [span for trace in self.jaeger.search(self.service, tags) for span in named(trace, name)]
        return [span for span in found if all(_shown(span.tags.get(k)) == v for k, v in tags.items())]


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.fixture
def shop(jaeger: Jaeger, tmp_path: Path) -> Shop:
    return Shop(jaeger, tmp_path)


def test_calls_are_found_by_what_became_of_them(shop: Shop) -> None:
    async def story() -> None:
        async with shop.agent(SHOP) as agent:
            answered(await agent.run("open"))

    run(story())
    shop.jaeger.wait(21, shop.service)
    assert shop.calls({"footprint.tool.status": "denied"}) == ["denied"]
    assert shop.calls({"footprint.outcome": "deny"}) == ["denied"]
    assert shop.calls({"footprint.tool.status": "ran"}) == ["sells"]
    assert shop.calls({"footprint.tool.status": "failed"}) == ["raises"]
    assert shop.calls({"footprint.tool.executed": "false"}) == ["denied", "invalid", "unknown"]
    assert shop.calls({"footprint.tool.status": "paused"}) == []
    (decision,) = shop.spans({"footprint.outcome": "deny"}, "middleware.decision")
    assert decision.tags["footprint.tool.call.id"] == "denied"
    assert decision.tags["footprint.middleware"] == "no-gold"


def test_only_what_raised_is_an_error(shop: Shop) -> None:
    async def story() -> None:
        async with shop.agent(SHOP) as agent:
            answered(await agent.run("open"))

    run(story())
    (trace,) = shop.jaeger.wait(21, shop.service)
    wrong = [span for span in trace if "error" in span.tags or "otel.status_code" in span.tags]
    assert [span.tags["gen_ai.tool.call.id"] for span in wrong] == ["raises"]
    assert wrong[0].tags["error"] is True
    assert wrong[0].tags["otel.status_code"] == "ERROR"
    assert wrong[0].tags["error.type"] == "ValueError"
    assert "otel.status_description" not in wrong[0].tags
    assert shop.jaeger.search(shop.service, {"error": "true"}) == (trace,)


@pytest.mark.parametrize(
    ("answer", "spans"),
    [(check_in_approved(by="dana@ops"), 9), (check_in_declined(by="dana@ops"), 8)],
    ids=["approved", "declined"],
)
def test_a_pause_and_what_was_declined_are_no_errors(shop: Shop, answer: object, spans: int) -> None:
    async def story() -> str:
        async with shop.agent(BUYS) as agent:
            pause = await agent.run("silver")
            assert isinstance(pause, AskPause)
            return answered(await agent.resume(pause.checkpoint, answer)).run_id

    run_id = run(story())
    by_run = {"footprint.run.id": run_id}
    paused, resumed = shop.jaeger.wait(spans, shop.service, by_run)
    assert [span.tags["footprint.run.outcome"] for span in shop.spans(by_run, "invoke_agent")] == [
        "paused",
        "answered",
    ]
    assert shop.calls({"footprint.tool.status": "paused"}) == ["asked"]
    assert shop.jaeger.search(shop.service, {"error": "true"}) == ()
    assert [span.name for span in (*paused, *resumed) if "otel.status_code" in span.tags] == []


def test_a_rule_that_raised_is_an_error_and_the_call_it_denied_is_none(shop: Shop) -> None:
    replies = [reply(calls=[call("lead", "sell", {"item": "lead"})]), reply(text="closed")]

    async def story() -> None:
        async with shop.agent(replies) as agent:
            answered(await agent.run("lead"))

    run(story())
    (trace,) = shop.jaeger.wait(6, shop.service)
    (wrong,) = [span for span in trace if "error" in span.tags]
    assert (wrong.name, wrong.tags["error.type"]) == ("middleware.decision broken", "LookupError")
    assert shop.calls({"footprint.tool.status": "denied"}) == ["lead"]


def test_both_traces_of_a_run_are_found_by_its_id_and_no_other_run_is(shop: Shop) -> None:
    async def story() -> list[str]:
        ids = []
        for _ in range(2):
            async with shop.agent(BUYS) as agent:
                pause = await agent.run("silver")
                assert isinstance(pause, AskPause)
                out = answered(await agent.resume(pause.checkpoint, check_in_approved(by="dana@ops")))
                ids.append(out.run_id)
        return ids

    ids = run(story())
    traces = shop.jaeger.wait(18, shop.service)
    for at, run_id in enumerate(ids):
        assert shop.jaeger.search(shop.service, {"footprint.run.id": run_id}) == traces[2 * at : 2 * at + 2]
    assert len(traces) == 4
