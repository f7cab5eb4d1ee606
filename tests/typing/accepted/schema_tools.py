"""Tools described by a JSON Schema, and tools of a server that is not there yet."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

from footprint_core import Agent, Answer, Tool, ToolArgs, ToolContext, tool
from footprint_core.mcp import MockMcpClient, mock_mcp_client
from footprint_core.providers import Scripted, call, reply

ADDRESS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


@tool(name="find", schema=ADDRESS)
def find(args: ToolArgs) -> str:
    """Find an address."""
    return f"in {args['city']}"


@tool(name="post", schema=ADDRESS, idempotent=True)
async def post(args: dict[str, Any], context: ToolContext) -> str:
    """Post a letter."""
    await asyncio.sleep(0)
    return f"to {args['city']} ({context.call_id})"


def stamp(count: int) -> int:
    """Sell stamps."""
    return count


assert_type(find, Tool)
assert_type(post, Tool)
client = mock_mcp_client("office", tools=[stamp, post])
assert_type(client, MockMcpClient)


async def main() -> None:
    served = await client.tools()
    assert_type(served, tuple[Tool, ...])
    assert [one.source for one in served] == ["office", "office"]
    asked = [call("1", "find", {"city": "Bern"}), call("2", "post", {"city": "Bern"})]
    model = Scripted([reply(calls=[*asked, call("3", "stamp", {"count": 2})]), reply(text="Done.")])
    builder = Agent.create(provider=model, model="m", name="post").tool(find, *client.tools_now())
    assert isinstance(await builder.build().run("Post it"), Answer)
    assert [message.text for message in model.requests[1].messages[2:]] == ["in Bern", "to Bern (2)", "2"]


if __name__ == "__main__":
    asyncio.run(main())
