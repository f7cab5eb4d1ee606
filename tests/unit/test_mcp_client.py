"""Tools of MCP servers: where they come from is on every call."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as wire
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from footprint_core import (
    AskPause,
    BuilderError,
    RunError,
    ShadowedToolError,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    tool,
)
from footprint_core.events import ToolCallEnded
from footprint_core.mcp import McpToolError, mcp_client, mock_mcp_client
from footprint_core.providers import call, reply
from shop import DIALECTS, Dialect, Shop, answers_ok, ask_for, listed, text, told
from story import Seen, answered, describe, run


@DIALECTS
def test_a_tool_carries_the_name_its_client_was_given_and_rules_and_rows_say_it(mode: Dialect) -> None:
    @before_tool("only-here")
    def only_here(asked: ToolCallContext) -> ToolOutcome:
        return deny("not in production") if asked.tool_source == "prod" else allow()

    async def story() -> None:
        shop = Shop(listed("find"), find=answers_ok)
        seen = Seen()
        async with mcp_client("prod", Client(shop.server, mode=mode)) as client:
            (find,) = await client.tools()
            assert (find.name, find.source, find.description) == ("find", "prod", "find")
            own = tool(name="own")(lambda: "mine")
            calls = [call("1", "find", {"tool_source": "own", "source": "x"}), call("2", "own", {})]
            builder, model = describe([reply(calls=calls), reply(text="ok")], find, own, watch=[seen])
            answer = answered(await builder.act(before_tool=[only_here]).build().run("go"))
        assert told(model) == ["not in production", "mine"]
        assert shop.calls == []
        one, two = answer.decisions
        assert (one.tool_source, one.outcome) == ("prod", "deny")
        assert (two.tool_source, two.outcome) == (None, "allow")
        assert "tool_source" in one.to_dict()
        assert "tool_source" not in two.to_dict()
        assert [event.tool_source for event in seen.of(ToolCallEnded)] == ["prod", None]

    run(story())


def test_own_tools_are_offered_before_those_of_servers() -> None:
    far = mock_mcp_client("far", tools=[tool(name="c")(lambda: 1), tool(name="a")(lambda: 1)])
    builder, model = describe([reply(text="ok")], *far.tools_now(), tool(name="z")(lambda: 1))
    run(builder.tool(tool(name="b")(lambda: 1)).build().run("go"))
    assert [offer.name for offer in model.requests[0].tools] == ["z", "b", "c", "a"]


def test_one_name_on_two_servers_is_refused() -> None:
    def find() -> None:
        """Find."""

    one, two = (mock_mcp_client(name, tools=[find]).tools_now() for name in ("one", "two"))
    with pytest.raises(ShadowedToolError, match="find"):
        describe([], *one, *two)
    with pytest.raises(ShadowedToolError, match="find"):
        describe([], find, *two)


def test_arguments_are_checked_by_the_servers_schema_before_anything_is_sent() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}

    async def story() -> None:
        shop = Shop(listed("get", schema), get=answers_ok)
        async with mcp_client("shop", shop.server) as client:
            tools = await client.tools()
            assert tools[0].schema == schema
            assert tools[0].keys == {"id"}
            assert "id: expected integer, got string" in await ask_for(tools, "get", {"id": "hunter2"})
            assert shop.calls == []
            assert await ask_for(tools, "get", {"id": 3}) == "ok"
            assert shop.calls == [("get", {"id": 3})]

    run(story())


IMAGE = wire.ImageContent(data="aGk=", mime_type="image/png")


@pytest.mark.parametrize(
    ("result", "read"),
    [
        (text("found it"), "found it"),
        (text("one", "two"), ["one", "two"]),
        (wire.CallToolResult(content=[]), None),
        (wire.CallToolResult(content=[wire.TextContent(text="5")], structured_content={"n": 5}), {"n": 5}),
        (
            wire.CallToolResult(content=[IMAGE]),
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        ),
        (
            wire.CallToolResult(content=[wire.TextContent(text="see"), IMAGE]),
            ["see", {"type": "image", "data": "aGk=", "mimeType": "image/png"}],
        ),
    ],
)
@DIALECTS
def test_a_result_is_the_structured_content_or_else_the_text(
    mode: Dialect, result: wire.CallToolResult, read: object
) -> None:
    found: list[object] = []

    @after_tool("look")
    def look(ended: ToolResultContext) -> ToolResultOutcome:
        found.append(ended.result)
        return allow()

    async def gives(_args: dict[str, Any]) -> wire.CallToolResult:
        return result

    async def story() -> None:
        shop = Shop(listed("get"), get=gives)
        async with mcp_client("shop", Client(shop.server, mode=mode)) as client:
            said = await ask_for(await client.tools(), "get", {}, act={"after_tool": [look]})
        assert found == [read]
        assert said == (read if isinstance(read, str) else json.dumps(read, separators=(",", ":")))

    run(story())


@DIALECTS
def test_an_error_of_the_server_names_tool_and_server_and_result_rules_see_that_it_failed(
    mode: Dialect,
) -> None:
    found: list[tuple[bool, object]] = []

    @after_tool("look")
    def look(ended: ToolResultContext) -> ToolResultOutcome:
        found.append((ended.failed, ended.result))
        return allow()

    async def fails(_args: dict[str, Any]) -> wire.CallToolResult:
        return text("bad cursor", "start again", error=True)

    async def story() -> None:
        shop, seen = Shop(listed("find"), find=fails), Seen()
        async with mcp_client("crm", Client(shop.server, mode=mode)) as client:
            tools = await client.tools()
            said = await ask_for(tools, "find", {}, act={"after_tool": [look]}, watch=[seen])
        assert said == "The tool find of the server crm failed: bad cursor\nstart again"
        assert found == [(True, said)]
        (ended,) = seen.of(ToolCallEnded)
        assert (ended.status, ended.executed, ended.error_class) == ("failed", True, "McpToolError")

    run(story())


def test_the_error_tells_tool_and_server_as_facts() -> None:
    async def fails(_args: dict[str, Any]) -> wire.CallToolResult:
        return wire.CallToolResult(content=[IMAGE], is_error=True)

    async def story() -> None:
        async with mcp_client("crm", Shop(listed("find"), find=fails).server) as client:
            (find,) = await client.tools()
            body: Any = find.body
            with pytest.raises(McpToolError, match="the server gave no text") as caught:
                await body(args={})
            assert (caught.value.tool, caught.value.server) == ("find", "crm")

    run(story())


@DIALECTS
def test_a_call_the_protocol_refuses_and_one_that_breaks_its_promise_are_answered(mode: Dialect) -> None:
    promised = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    async def broken(_args: dict[str, Any]) -> wire.CallToolResult:
        return wire.CallToolResult(content=[], structured_content={"n": "hunter2"})

    async def story() -> None:
        shop = Shop(listed("gone"), listed("count", output_schema=promised), count=broken)
        async with mcp_client("shop", Client(shop.server, mode=mode)) as client:
            tools = await client.tools()
            gone = await ask_for(tools, "gone", {})
            count = await ask_for(tools, "count", {})
        assert gone.startswith("The tool gone of the server shop failed: ")
        assert "KeyError" not in gone
        assert count == "The tool count of the server shop failed: its client raised RuntimeError"

    run(story())


def test_all_pages_are_read_and_a_listing_without_an_end_is_refused() -> None:
    async def story() -> None:
        shop = Shop(*(listed(f"t{n}") for n in range(7)), pages=3)
        async with mcp_client("shop", shop.server) as client:
            assert [t.name for t in await client.tools()] == ["t0", "t3", "t6", "t1", "t4", "t2", "t5"]
            shop.pages = 10**9
            with pytest.raises(RunError, match="without an end"):
                await client.tools()

    run(story())


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (listed("sell/now"), "a name is 1 to 64"),
        (listed("sell", {"type": "object", "properties": {"a": {"type": "odd"}}}), "the tool sell of"),
        (listed("sell", {"type": "object", "properties": {"a": {"$ref": "http://x.example"}}}), "fetched"),
    ],
)
def test_a_tool_that_cannot_be_checked_is_refused_by_name(bad: wire.Tool, says: str) -> None:
    async def story() -> None:
        async with mcp_client("shop", Shop(bad).server) as client:
            with pytest.raises(BuilderError) as refused:
                await client.tools()
        assert says in str(refused.value)
        assert "shop" in str(refused.value)

    run(story())


def test_a_server_of_the_high_level_kind_works_like_any_other() -> None:
    desk = MCPServer("desk")

    @desk.tool()
    def add(a: int, b: int = 1) -> int:
        """Add."""
        if a < 0:
            raise ToolError("no debts")
        return a + b

    async def story() -> None:
        async with mcp_client("desk", desk) as client:
            tools = await client.tools()
            assert await ask_for(tools, "add", {"a": 2}) == '{"result":3}'
            assert "no debts" in await ask_for(tools, "add", {"a": -1})
            assert "a: expected integer, got string" in await ask_for(tools, "add", {"a": "2"})

    run(story())


@DIALECTS
def test_the_source_is_the_same_before_and_after_a_pause(mode: Dialect) -> None:
    @before_tool("four-eyes")
    def four_eyes(asked: ToolCallContext) -> ToolOutcome:
        return ask("sure?")

    @after_tool("look")
    def look(ended: ToolResultContext) -> ToolResultOutcome:
        return allow(why=f"from {ended.tool_source}")

    async def story() -> None:
        shop = Shop(listed("sell"), sell=answers_ok)
        async with mcp_client("shop", Client(shop.server, mode=mode)) as client:
            builder, _ = describe(
                [reply(calls=[call("1", "sell", {})]), reply(text="ok")], *await client.tools()
            )
            agent = builder.act(before_tool=[four_eyes], after_tool=[look]).build()
            paused = await agent.run("go")
            assert isinstance(paused, AskPause)
            assert paused.tool_source == "shop"
            ended = answered(await agent.resume(paused.checkpoint, check_in_approved(by="ada")))
        assert {row.tool_source for row in ended.decisions} == {"shop"}
        assert ended.decisions[-1].why == "from shop"
        assert shop.calls == [("sell", {})]

    run(story())
