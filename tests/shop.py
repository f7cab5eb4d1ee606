"""A server of the official parts, and what a model reads of its tools: for tests of its client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import mcp_types as wire
import pytest
from mcp.server import Server, ServerRequestContext

from footprint_core import (
    Tool,
    ToolMessage,
)
from footprint_core.providers import Scripted, call, reply
from story import describe

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


async def answers_ok(_args: dict[str, Any]) -> wire.CallToolResult:
    return text("ok")
