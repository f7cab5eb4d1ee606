"""Tools served over MCP, and called by the official client in the same process."""

from __future__ import annotations

import msgspec
from mcp import Client
from mcp.types import TextContent

from conformance.values import Json
from conformance.world import World
from footprint_core import static_credentials
from footprint_core.mcp import McpServing, mcp_serve


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a client reads of a call."""

    is_error: bool
    text: str


def serve(world: World) -> McpServing:
    """Serve the tools of a scenario.

    Raises:
        BuilderError: They are refused.
    """
    spec = world.scenario.served
    return mcp_serve(
        name=spec.name,
        tools=world.served_tools,
        tool_middleware=[world.rule(key) for key in spec.tool_middleware],
        credentials=None if spec.credentials is None else static_credentials(spec.credentials),
    )


async def names(served: McpServing) -> list[str]:
    """The tools a client is shown, in order."""
    async with Client(served.server) as client:
        listed = await client.list_tools()
    return [tool.name for tool in listed.tools]


async def call(served: McpServing, tool: str, args: dict[str, Json]) -> Reading:
    """Call a tool as a client does."""
    async with Client(served.server) as client:
        result = await client.call_tool(tool, args)
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    return Reading(is_error=bool(result.is_error), text="".join(texts))
