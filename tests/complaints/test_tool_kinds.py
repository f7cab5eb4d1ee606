"""One chain for every kind of tool: own, of a schema, of a server or a mock of one, and served."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import mcp_types as wire
import msgspec
import pytest
from mcp import Client
from mcp.server import Server

from footprint_core import (
    AskPause,
    MemoryLedger,
    Tool,
    ToolCallContext,
    ToolMessage,
    ToolResultContext,
    after_tool,
    allow,
    ask,
    before_tool,
    deny,
    tool,
)
from footprint_core.mcp import mcp_client, mcp_serve, mock_mcp_client
from footprint_core.providers import call, reply
from story import answered, describe, run

SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


class Till:
    """What was paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, amount: int) -> str:
        self.paid.append(amount)
        if amount == 13:
            raise LookupError("no such till")
        return f"paid {amount}"

    async def pay_later(self, amount: int) -> str:
        return self.pay(amount)

    def pay_dict(self, args: dict[str, Any]) -> str:
        return self.pay(args["amount"])

    def server(self) -> Server[Any]:
        """An official server with the tool `pay`."""

        async def listed(_context: Any, _params: Any) -> wire.ListToolsResult:
            return wire.ListToolsResult(tools=[wire.Tool(name="pay", input_schema=SCHEMA)])

        async def called(_context: Any, params: wire.CallToolRequestParams) -> wire.CallToolResult:
            try:
                text, failed = self.pay((params.arguments or {})["amount"]), False
            except LookupError as error:
                text, failed = str(error), True
            return wire.CallToolResult(content=[wire.TextContent(text=text)], is_error=failed)

        return Server("till", on_list_tools=listed, on_call_tool=called)


@contextlib.asynccontextmanager
async def _own(till: Till) -> AsyncIterator[Tool]:
    yield tool(name="pay")(till.pay)


@contextlib.asynccontextmanager
async def _inline(till: Till) -> AsyncIterator[Tool]:
    yield tool(name="pay", inline=True)(till.pay)


@contextlib.asynccontextmanager
async def _async(till: Till) -> AsyncIterator[Tool]:
    yield tool(name="pay")(till.pay_later)


@contextlib.asynccontextmanager
async def _schema(till: Till) -> AsyncIterator[Tool]:
    yield tool(name="pay", schema=SCHEMA)(till.pay_dict)


@contextlib.asynccontextmanager
async def _mock(till: Till) -> AsyncIterator[Tool]:
    (made,) = mock_mcp_client("till", [tool(name="pay")(till.pay)]).tools_now()
    yield made


@contextlib.asynccontextmanager
async def _server(till: Till) -> AsyncIterator[Tool]:
    async with mcp_client("till", till.server()) as client:
        (made,) = await client.tools()
        yield made


KINDS: dict[str, Callable[[Till], contextlib.AbstractAsyncContextManager[Tool]]] = {
    "plain": _own,
    "inline": _inline,
    "async": _async,
    "schema": _schema,
    "mock of a server": _mock,
    "server": _server,
}


class Came(msgspec.Struct, kw_only=True):
    """What one call came to: what was read of it, by model or client, and whether a person is asked."""

    read: str = ""
    asked: bool = False


async def _in_the_loop(kind: str, till: Till, amount: int, rules: list[Any]) -> Came:
    async with KINDS[kind](till) as made:
        replies = [reply(calls=[call("c1", "pay", {"amount": amount})]), reply(text="done")]
        builder, model = describe(replies, made, ledger=MemoryLedger())
        outcome = await builder.tool_middleware(*rules).build().run("go")
        if isinstance(outcome, AskPause):
            return Came(asked=True)
        answered(outcome)
        last = model.requests[-1].messages[-1]
        assert isinstance(last, ToolMessage)
        return Came(read=last.text)


async def _served(kind: str, till: Till, amount: int, rules: list[Any]) -> Came:
    async with KINDS[kind](till) as made:
        serving = mcp_serve(name="desk", tools=[made], tool_middleware=rules, ledger=MemoryLedger())
        async with serving, Client(serving.server) as client:
            result = await client.call_tool("pay", {"amount": amount})
        (block,) = result.content
        assert isinstance(block, wire.TextContent)
        return Came(read=block.text)


WAYS = {"in the loop": _in_the_loop, "served": _served}
every_tool = pytest.mark.parametrize("kind", KINDS)
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@every_way
@every_tool
def test_c015_a_refusal_keeps_every_kind_of_tool_from_running(kind: str, way: Any) -> None:
    till = Till()
    came = run(way(kind, till, 5, [before_tool("no")(lambda _: deny("closed"))]))
    assert (till.paid, came.read) == ([], "closed")


@every_way
@every_tool
def test_c015_changed_arguments_are_what_every_kind_of_tool_runs_with(kind: str, way: Any) -> None:
    till = Till()
    came = run(way(kind, till, 5, [before_tool("less")(lambda _: allow({"amount": 1}, why="less"))]))
    assert (till.paid, came.read) == ([1], "paid 1")


@every_way
@every_tool
def test_c015_a_question_keeps_every_kind_of_tool_from_running(kind: str, way: Any) -> None:
    till = Till()
    came = run(way(kind, till, 5, [before_tool("four-eyes")(lambda _: ask("Pay?"))]))
    assert till.paid == []
    assert came.asked == (way is _in_the_loop)
    assert way is _in_the_loop or "four-eyes" in came.read


@every_way
@every_tool
def test_c015_what_a_rule_does_not_let_through_is_read_of_no_kind_of_tool(kind: str, way: Any) -> None:
    till = Till()
    came = run(way(kind, till, 5, [after_tool("no")(lambda _: deny("withheld"))]))
    assert (till.paid, came.read) == ([5], "withheld")


@every_way
@every_tool
def test_c015_a_rule_that_raises_keeps_every_kind_of_tool_from_running(kind: str, way: Any) -> None:
    def broken(_: ToolCallContext) -> Any:
        raise LookupError("cannot tell")

    till = Till()
    came = run(way(kind, till, 5, [before_tool("broken")(broken)]))
    assert till.paid == []
    assert "cannot tell" in came.read


@every_way
@every_tool
@pytest.mark.parametrize("amount", [5, 13])
def test_c026_a_result_rule_is_told_of_every_kind_of_tool_whether_it_failed(
    kind: str, way: Any, amount: int
) -> None:
    told: list[tuple[bool, bool, dict[str, Any]]] = []

    def look(ended: ToolResultContext) -> Any:
        told.append((ended.failed, "no such till" in str(ended.result), ended.args))
        return allow()

    till = Till()
    run(way(kind, till, amount, [after_tool("look")(look)]))
    assert till.paid == [amount]
    assert told == [(amount == 13, amount == 13, {"amount": amount})]
