"""A session with a server: shared, cancelled, closed, and used where it was opened."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import mcp_types as wire
import pytest
from mcp import Client
from mcp.server import Server

from footprint_core import (
    BuilderError,
    MemoryLedger,
    MessageDeniedError,
    RunError,
    Tool,
    deny,
    on_message,
)
from footprint_core.facts import ToolFinished
from footprint_core.mcp import mcp_client, mock_mcp_client
from footprint_core.providers import call, reply
from shop import DIALECTS, Dialect, Shop, answers_ok, ask_for, listed, text
from story import describe, run


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

        shop, ledger = Shop(listed("wait"), listed("get"), wait=hangs, get=answers_ok), MemoryLedger()
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
        shop = Shop(listed("get"), get=answers_ok)
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
    shop = Shop(listed("get"), get=answers_ok)
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
