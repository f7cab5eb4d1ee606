"""A server that does not exist yet, whose tools run here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable
from typing import Any

import pytest

from footprint_core import (
    BuilderError,
    ShadowedToolError,
    ToolContext,
    tool,
)
from footprint_core.mcp import mock_mcp_client
from shop import ask_for
from story import run


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
