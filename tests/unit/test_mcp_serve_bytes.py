"""A served call without rules, byte for byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import mcp_types as wire
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server import Server, ServerRequestContext

from footprint_core import (
    tool,
)
from footprint_core.mcp import mcp_serve
from served import Kept, breaks, refund
from story import Seen, run


class Tapped:
    """A stream whose messages are kept as the bytes a transport would write."""

    def __init__(self, stream: Any, passed: list[bytes]) -> None:
        self.stream = stream
        self.passed = passed

    async def receive(self) -> Any:
        return self._kept(await self.stream.receive())

    def __aiter__(self) -> Tapped:
        return self

    async def __anext__(self) -> Any:
        return self._kept(await self.stream.__anext__())

    def _kept(self, item: Any) -> Any:
        self.passed.append(item.message.model_dump_json(by_alias=True, exclude_none=True).encode())
        return item

    async def aclose(self) -> None:
        await self.stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()


@asynccontextmanager
async def tapped(server: Server[Any], passed: list[bytes]) -> AsyncIterator[Any]:
    """A transport to a server, and what the server says on it."""
    async with InMemoryTransport(server) as (received, sent):
        yield Tapped(received, passed), sent


REFUND_SCHEMA = {
    "additionalProperties": False,
    "properties": {
        "amount": {"title": "Amount", "type": "integer"},
        "to": {"title": "To", "type": "string", "default": "card"},
    },
    "required": ["amount"],
    "type": "object",
}


def by_hand() -> Server[Any]:
    """The same tools, served with the official package alone."""

    async def lists(_context: ServerRequestContext[Any], _params: object) -> wire.ListToolsResult:
        nothing = {"additionalProperties": False, "properties": {}, "type": "object"}
        return wire.ListToolsResult(
            tools=[
                wire.Tool(name="refund", description="Pay it back.", input_schema=REFUND_SCHEMA),
                wire.Tool(name="breaks", description="Never works.", input_schema=nothing),
                wire.Tool(name="say", input_schema={"type": "object"}),
            ]
        )

    async def calls(
        _context: ServerRequestContext[Any], params: wire.CallToolRequestParams
    ) -> wire.CallToolResult:
        texts = {
            "refund": '{"amount":5,"to":"card"}',
            "breaks": "kaput",
            "say": str((params.arguments or {}).get("text", "null")),
        }
        block = wire.TextContent(text=texts[params.name])
        return wire.CallToolResult(content=[block], is_error=params.name == "breaks")

    return Server("desk", on_list_tools=lists, on_call_tool=calls)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_without_rules_the_bytes_are_those_of_a_server_without_governance(mode: str) -> None:
    say = tool(name="say", schema={})(lambda args: args.get("text"))
    governed = mcp_serve(name="desk", tools=[refund, breaks, say], ledger=Kept(), watch=[Seen()]).server

    async def bytes_of(server: Server[Any]) -> list[bytes]:
        passed: list[bytes] = []
        async with Client(tapped(server, passed), mode=mode) as client:
            await client.list_tools()
            await client.call_tool("refund", {"amount": 5})
            await client.call_tool("breaks", {})
            await client.call_tool("say", {"text": "ä\n\u2028 </b>"})
            await client.call_tool("say")
        return passed

    ours, theirs = run(bytes_of(governed)), run(bytes_of(by_hand()))
    assert len(ours) == (6 if mode == "legacy" else 5)
    assert ours == theirs
