"""Tools of MCP servers, real and mocked: where they come from is on every call."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import mcp_types as wire
import pytest
from mcp import Client
from mcp.server import Server, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from footprint_core import (
    AskPause,
    BuilderError,
    MemoryLedger,
    MessageDeniedError,
    RunError,
    ShadowedToolError,
    Tool,
    ToolCallContext,
    ToolContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
    tool,
)
from footprint_core.events import ToolCallEnded
from footprint_core.facts import ToolFinished
from footprint_core.mcp import McpToolError, mcp_client, mock_mcp_client
from footprint_core.providers import Scripted, call, reply
from story import Seen, answered, describe, run

Dialect = Literal["auto", "legacy"]
DIALECTS = pytest.mark.parametrize("mode", ["auto", "legacy"])
Handler = Callable[[dict[str, Any]], Awaitable[wire.CallToolResult]]


def text(*parts: str, error: bool = False) -> wire.CallToolResult:
    return wire.CallToolResult(content=[wire.TextContent(text=part) for part in parts], is_error=error)


def listed(name: str, schema: dict[str, Any] | None = None, **more: Any) -> wire.Tool:
    return wire.Tool(name=name, description=name, input_schema=schema or {"type": "object"}, **more)


class Shop:
    """A server made of the official parts: what it lists, and what its tools do."""

    def __init__(self, *tools: wire.Tool, pages: int = 1, **handlers: Handler) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.tools = tools
        self.handlers = handlers
        self.pages = pages
        self.server: Server[Any] = Server(
            "what it calls itself", on_list_tools=self._list, on_call_tool=self._call
        )

    async def _list(
        self, _context: ServerRequestContext[Any], params: wire.PaginatedRequestParams | None
    ) -> wire.ListToolsResult:
        page = 0 if params is None or params.cursor is None else int(params.cursor)
        more = str(page + 1) if page + 1 < self.pages else None
        return wire.ListToolsResult(tools=list(self.tools[page :: self.pages]), next_cursor=more)

    async def _call(
        self, _context: ServerRequestContext[Any], params: wire.CallToolRequestParams
    ) -> wire.CallToolResult:
        self.calls.append((params.name, params.arguments or {}))
        return await self.handlers[params.name](params.arguments or {})


def told(model: Scripted) -> list[str]:
    """What the model read of its calls."""
    return [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]


async def ask_for(tools: Sequence[Tool], name: str, args: dict[str, Any], **options: Any) -> str:
    """What the model reads of one call."""
    builder, model = describe([reply(calls=[call("1", name, args)]), reply(text="ok")], *tools, **options)
    await builder.build().run("go")
    (read,) = told(model)
    return read


async def _ok(_args: dict[str, Any]) -> wire.CallToolResult:
    return text("ok")


@DIALECTS
def test_a_tool_carries_the_name_its_client_was_given_and_rules_and_rows_say_it(mode: Dialect) -> None:
    @before_tool("only-here")
    def only_here(asked: ToolCallContext) -> ToolOutcome:
        return deny("not in production") if asked.tool_source == "prod" else allow()

    async def story() -> None:
        shop = Shop(listed("find"), find=_ok)
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
        shop = Shop(listed("get", schema), get=_ok)
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
        shop = Shop(listed("sell"), sell=_ok)
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


@DIALECTS
def test_cancelling_a_turn_cancels_the_call_on_the_server(mode: Dialect) -> None:
    async def story() -> None:
        entered, left = asyncio.Event(), asyncio.Event()

        async def hangs(_args: dict[str, Any]) -> wire.CallToolResult:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
            return text("never")

        shop, ledger = Shop(listed("wait"), listed("get"), wait=hangs, get=_ok), MemoryLedger()
        async with mcp_client("shop", Client(shop.server, mode=mode)) as client:
            tools = await client.tools()
            builder, _ = describe([reply(calls=[call("1", "wait", {})])], *tools, ledger=ledger)
            agent = builder.build()
            turn = asyncio.ensure_future(agent.run("go"))
            await entered.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            await left.wait()
            assert agent.last_run_id is not None
            (finished,) = [
                e.fact for e in ledger.entries(agent.last_run_id) if isinstance(e.fact, ToolFinished)
            ]
            assert finished.cancelled
            # The session is as good as before.
            assert await ask_for(tools, "get", {}) == "ok"

    run(story())


@DIALECTS
def test_calls_of_several_conversations_share_one_session(mode: Dialect) -> None:
    async def story() -> None:
        both = asyncio.Barrier(2)

        async def meets(args: dict[str, Any]) -> wire.CallToolResult:
            await both.wait()
            return text(args["who"])

        shop = Shop(listed("meet"), meet=meets)
        async with mcp_client("shop", Client(shop.server, mode=mode)) as client:
            tools = await client.tools()
            ada, bob = await asyncio.gather(
                ask_for(tools, "meet", {"who": "ada"}), ask_for(tools, "meet", {"who": "bob"})
            )
        assert (ada, bob) == ("ada", "bob")

    run(story())


@DIALECTS
def test_what_the_block_raises_leaves_it_bare(mode: Dialect, caplog: pytest.LogCaptureFixture) -> None:
    shut = on_message("shut")(lambda _: deny("closed"))

    async def story() -> None:
        async with mcp_client("shop", Client(Shop(listed("get")).server, mode=mode)) as client:
            builder, _ = describe([], *await client.tools())
            await builder.act(input=[shut]).build().run("go")

    with pytest.raises(MessageDeniedError, match="closed"):
        run(story())
    # And the session closed in good order.
    assert [record for record in caplog.records if record.name == "footprint"] == []


@DIALECTS
def test_a_block_that_is_cancelled_ends_and_closes_its_session(mode: Dialect) -> None:
    async def story() -> None:
        opened = asyncio.Event()
        shop = Shop(listed("get"), get=_ok)
        client = mcp_client("shop", Client(shop.server, mode=mode))

        async def holding() -> None:
            async with client:
                opened.set()
                await asyncio.Event().wait()

        holder = asyncio.ensure_future(holding())
        await opened.wait()
        holder.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holder
        with pytest.raises(RunError, match="not open"):
            await client.tools()

    run(story())


def test_a_session_is_used_inside_its_block_on_its_own_loop() -> None:
    shop = Shop(listed("get"), get=_ok)
    client = mcp_client("shop", shop.server)
    with pytest.raises(RunError, match="not open"):
        run(client.tools())

    async def opened() -> tuple[Tool, ...]:
        async with client:
            with pytest.raises(RunError, match="open already"):
                await client.__aenter__()
            tools = await client.tools()
            elsewhere = await asyncio.to_thread(asyncio.run, ask_for(tools, "get", {}))
            assert "another event loop" in elsewhere
            return tools

    tools = run(opened())
    assert "is not open" in run(ask_for(tools, "get", {}))
    # A server object can be opened again.
    assert [t.name for t in run(opened())] == ["get"]
    assert shop.calls == []


def test_a_server_that_cannot_be_reached_or_lists_nothing_is_told_with_its_cause() -> None:
    async def story() -> None:
        nowhere: Any = object()
        with pytest.raises(RunError, match="shop could not be reached") as refused:
            async with mcp_client("shop", nowhere):
                pass
        assert refused.value.__cause__ is not None
        async with mcp_client("shop", Server("no tools")) as client:
            with pytest.raises(RunError, match="did not list its tools"):
                await client.tools()

    run(story())


@pytest.mark.parametrize("name", ["", "  ", None, 3])
def test_a_client_needs_a_name(name: Any) -> None:
    with pytest.raises(BuilderError, match="not blank"):
        mcp_client(name, Shop().server)
    with pytest.raises(BuilderError, match="not blank"):
        mock_mcp_client(name, tools=[])


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(BuilderError, match=r"install footprint-ledger\[mcp\]"):
        mcp_client("shop", "http://127.0.0.1:9")


def test_a_mock_needs_neither_package_nor_connection() -> None:
    code = (
        "import sys; from footprint_core import tool; from footprint_core.mcp import mock_mcp_client; "
        "print([t.source for t in mock_mcp_client('crm', [tool(name='t')(lambda: 1)]).tools_now()]); "
        "print([name for name in ('mcp', 'anyio', 'jsonschema') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["['crm']", "[]"]


def test_a_mock_stamps_its_tools_and_works_where_the_real_one_will() -> None:
    @tool(name="get", schema={"required": ["id"]})
    def get(args: dict[str, Any], context: ToolContext) -> object:
        return [args["id"], context.call_id]

    def find(word: str) -> str:
        """Find."""
        return word

    async def story() -> None:
        async with mock_mcp_client("crm", tools=[get, find]) as client:
            tools = await client.tools()
            assert tools == client.tools_now()
            assert [(t.name, t.source) for t in tools] == [("get", "crm"), ("find", "crm")]
            assert get.source is None
            assert await ask_for(tools, "get", {"id": 7}) == '[7,"1"]'
            assert "id: expected a value, got nothing" in await ask_for(tools, "get", {})
            assert await ask_for(tools, "find", {"word": "x"}) == "x"

    run(story())


def test_a_tool_of_a_mock_that_raises_reads_like_a_server_that_answers_with_an_error() -> None:
    def plain() -> None:
        raise LookupError("bad cursor")

    async def later() -> None:
        raise LookupError("bad cursor")

    def handed_over() -> Awaitable[None]:
        return later()

    def stops() -> None:
        raise StopIteration

    class Mute(Exception):  # noqa: N818 - its name is what is told
        def __str__(self) -> str:
            raise RuntimeError

    def mute() -> None:
        raise Mute

    async def story() -> None:
        tools = mock_mcp_client("crm", tools=[plain, later, handed_over, stops, mute]).tools_now()
        for name, said in (
            ("plain", "bad cursor"),
            ("later", "bad cursor"),
            ("handed_over", "bad cursor"),
            ("stops", "StopIteration"),
            ("mute", "Mute"),
        ):
            read = await ask_for(tools, name, {})
            assert read == f"The tool {name} of the server crm failed: {said}"

    run(story())


def test_a_mock_takes_tools_and_functions_with_names_of_their_own() -> None:
    with pytest.raises(ShadowedToolError, match="same"):
        mock_mcp_client("crm", tools=[tool(name="same")(lambda: 1), tool(name="same")(lambda: 2)])
    nonsense: Any = [object]
    with pytest.raises(BuilderError, match="tools and functions"):
        mock_mcp_client("crm", tools=nonsense)
