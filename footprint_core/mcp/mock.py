"""A server that does not exist yet: its tools run here, and carry its name as if they came from it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from footprint_core import plain
from footprint_core.errors import BuilderError, McpToolError, ShadowedToolError
from footprint_core.mcp.package import server_name
from footprint_core.tools.function import tool as tool_of
from footprint_core.tools.tool import Tool


class MockMcpClient:
    """What `mcp_client` gives, without a server: rules can be tested before there is one.

    Attributes:
        name: The server's name; the source of its tools.
    """

    def __init__(self, name: str, tools: Sequence[Tool | Callable[..., object]]) -> None:
        self.name = server_name(name, "mock_mcp_client")
        stamped: dict[str, Tool] = {}
        for given in tools:
            if isinstance(given, type) or not callable(getattr(given, "body", given)):
                raise BuilderError("mock_mcp_client(tools=...) takes tools and functions; pass one of them.")
            tool = given if isinstance(given, Tool) else tool_of(given)
            if tool.name in stamped:
                raise ShadowedToolError(tool=tool.name)
            stamped[tool.name] = _stamped(tool, self.name)
        self._tools = tuple(stamped.values())

    async def tools(self) -> tuple[Tool, ...]:
        """The tools, in the order given."""
        return self._tools

    def tools_now(self) -> tuple[Tool, ...]:
        """The tools, where nothing can be awaited."""
        return self._tools

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing to give back."""


def mock_mcp_client(name: str, /, tools: Sequence[Tool | Callable[..., object]]) -> MockMcpClient:
    """Give tools the source they will have once they come from a server.

    Args:
        name: The server's name.
        tools: Its tools, or typed functions.

    Raises:
        BuilderError: The name is blank, or a function cannot become a tool.
        ShadowedToolError: Two have one name.
    """
    return MockMcpClient(name, tools)


def _stamped(tool: Tool, server: str) -> Tool:
    """The tool with its source; what it raises reads as what a server answers."""
    body = tool.body

    def failed(error: Exception) -> McpToolError:
        return McpToolError(tool=tool.name, server=server, said=plain.message_of(error))

    async def awaited(value: Awaitable[object]) -> object:
        try:
            return await value
        except Exception as error:
            raise failed(error) from error

    async def answer(**kwargs: object) -> object:
        try:
            value = body(**kwargs)
        except Exception as error:
            raise failed(error) from error
        return await awaited(value) if inspect.isawaitable(value) else value

    def answer_plainly(**kwargs: object) -> object:
        try:
            value = body(**kwargs)
        except Exception as error:
            raise failed(error) from error
        return awaited(value) if inspect.isawaitable(value) else value

    return msgspec.structs.replace(tool, body=answer if tool.is_async else answer_plainly, source=server)
