"""A client of an MCP server: the official one, whose tools carry the server's name as their source."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from footprint_core import plain
from footprint_core.errors import BuilderError, McpToolError, RunError
from footprint_core.mcp.package import need_mcp, server_name
from footprint_core.messages import TOOL_NAME
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json
from footprint_core.tools.schema_tool import tool_of_schema
from footprint_core.tools.tool import Tool

if TYPE_CHECKING:
    import mcp_types
    from mcp import Client
    from mcp.client import Transport
    from mcp.client.stdio import StdioServerParameters
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

_log = logging.getLogger("footprint")
_MAX_PAGES = 1000


class McpClient:
    """A session with a server, open inside its `async with` block, on one event loop.

    Attributes:
        name: The server's name; the source of its tools.
    """

    def __init__(
        self, name: str, target: Server[Any] | MCPServer | Transport | StdioServerParameters | Client | str
    ) -> None:
        self.name = server_name(name, "mcp_client")
        need_mcp("mcp_client")
        self._target = target
        self._open: tuple[Client, asyncio.AbstractEventLoop] | None = None

    async def __aenter__(self) -> Self:
        from mcp import Client

        if self._open is not None:
            raise RunError(f"The client of {self.name} is open already; use it inside its own block.")
        client = self._target if isinstance(self._target, Client) else Client(self._target)
        try:
            await client.__aenter__()
        except Exception as error:
            raise RunError(
                f"The server {self.name} could not be reached ({type(error).__name__}); see the cause."
            ) from error
        self._open = client, asyncio.get_running_loop()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open is None:
            return
        client, _ = self._open
        self._open = None
        try:
            # Told nothing of what the block raised: its task groups would wrap it, and a caller who waits
            # for a refusal would not catch it.
            await client.__aexit__(None, None, None)
        except Exception as raised:
            if error is None:
                raise
            _log.warning("The client of %s raised %s when it closed.", self.name, type(raised).__name__)

    async def tools(self) -> tuple[Tool, ...]:
        """The tools the server lists now, all pages.

        Raises:
            BuilderError: A tool's name or schema cannot be used.
            RunError: The session is not open here, or the server does not list them, or never stops to.
        """
        client = self._session()
        found: list[mcp_types.Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            try:
                page = await client.list_tools(cursor=cursor)
            except Exception as error:
                raise RunError(
                    f"The server {self.name} did not list its tools ({type(error).__name__}); see the cause."
                ) from error
            found.extend(page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return tuple(map(self._tool, found))
        raise RunError(f"The server {self.name} lists tools without an end; look at its paging.")

    def _tool(self, listed: mcp_types.Tool) -> Tool:
        if not TOOL_NAME.fullmatch(listed.name):
            raise BuilderError(
                f"The server {self.name} has a tool whose name no model could call; a name is 1 to 64 "
                "letters, digits, '_', '.' or '-'."
            )
        made = tool_of_schema(
            partial(self._call, listed.name),
            name=listed.name,
            of=f"the tool {listed.name} of the server {self.name}",
            description=plain.detach(listed.description or ""),
            schema=listed.input_schema,
            is_async=True,
        )
        return msgspec.structs.replace(made, source=self.name)

    async def _call(self, tool: str, args: ToolArgs) -> Json:
        from mcp.shared.exceptions import MCPError

        failed = partial(McpToolError, tool=tool, server=self.name)
        try:
            result = await self._session().call_tool(tool, args)
        except (MCPError, RunError) as error:
            raise failed(said=str(error)) from error
        except Exception as error:
            # What the client itself raises may quote the result, for example one of another shape than
            # the server promised.
            raise failed(said=f"its client raised {type(error).__name__}") from error
        if result.is_error:
            raise failed(said=_text(result) or "the server gave no text")
        return _value(result)

    def _session(self) -> Client:
        if self._open is None:
            raise RunError(
                f"The client of {self.name} is not open; use its tools inside its async with block."
            )
        client, loop = self._open
        if loop is not asyncio.get_running_loop():
            # Waiting for the other loop's answer here would never end.
            raise RunError(
                f"The client of {self.name} was opened on another event loop; open it on this one."
            )
        return client


def mcp_client(
    name: str, target: Server[Any] | MCPServer | Transport | StdioServerParameters | Client | str, /
) -> McpClient:
    """A client of an MCP server, to be opened with `async with`.

    Args:
        name: The server's name; its tools carry it as their source, whatever the server calls itself.
        target: A server object of the official package, or whatever else its `mcp.Client` takes; or such a
            client, made with options of its own and not opened.

    Raises:
        BuilderError: The name is blank, or the package is not installed.
    """
    return McpClient(name, target)


def _value(result: mcp_types.CallToolResult) -> Json:
    """What the server gave: its structured content, else its text, else its blocks as JSON."""
    if result.structured_content is not None:
        return result.structured_content
    blocks: list[Json] = [_block(block) for block in result.content]
    if not blocks:
        return None
    return blocks[0] if len(blocks) == 1 else blocks


def _block(block: mcp_types.ContentBlock) -> Json:
    if block.type == "text":
        return block.text
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def _text(result: mcp_types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")
