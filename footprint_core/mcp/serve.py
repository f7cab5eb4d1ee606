"""A server whose tools are governed: every call of a client is decided about like a call of the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from footprint_core import plain
from footprint_core.agent import Agent, Health
from footprint_core.credentials import CredentialProvider
from footprint_core.errors import BuilderError
from footprint_core.ledger import Ledger
from footprint_core.loop.serve_call import Served, serve_call
from footprint_core.mcp.absent import NoLedger, NoModel
from footprint_core.mcp.package import need_mcp, server_name
from footprint_core.messages import ToolCall
from footprint_core.middleware import ToolCallRule, ToolResultRule
from footprint_core.spec import AgentSpec
from footprint_core.tools.tool import Tool
from footprint_core.watch import Watcher

if TYPE_CHECKING:
    import mcp_types
    from mcp.server import Server, ServerRequestContext

T = TypeVar("T")

_log = logging.getLogger("footprint")


class McpServing:
    """Tools served to clients.

    As an async context manager it flushes the recorders and closes the ledger when it is left, like an
    agent does.

    Attributes:
        server: The official server, to be run on any transport of the official package.
        tool_names: What it serves, in the order it is listed: own tools before those of other servers.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._holder = Agent(spec)
        self.tool_names = spec.offers.names
        self.server: Server[Any] = _server(spec)

    def health(self) -> Health:
        """How the watchers do."""
        return self._holder.health()

    async def close(self) -> None:
        """Close the recorders, then the ledger. Closing twice is harmless."""
        await self._holder.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def mcp_serve(
    *,
    name: str,
    tools: Sequence[Tool | Callable[..., object]],
    tool_middleware: Sequence[ToolCallRule | ToolResultRule] = (),
    credentials: CredentialProvider | None = None,
    ledger: Ledger | None = None,
    watch: Sequence[Watcher] = (),
) -> McpServing:
    """Serve tools over MCP under rules. An agent's own rules do not come along: only those given here apply.

    Each call of a client is a run of its own, at iteration 0, without history or identity. A person cannot
    be asked, so a rule that asks refuses.

    Args:
        name: What the server calls itself.
        tools: Own tools or typed functions, and tools of other servers, which keep their source.
        tool_middleware: The rules of the tool chain, in order.
        credentials: Who gives the secrets tools declare a need for.
        ledger: Where the facts of the calls are appended; nowhere when it is not given.
        watch: Who is told what happens.

    Raises:
        BuilderError: There is no tool, or one that cannot be served; or the package is not installed.
        ShadowedToolError: Two tools have one name.
        MissingHookError: A rule has neither tool hook.
    """
    server_name(name, "mcp_serve")
    need_mcp("mcp_serve")
    builder = Agent.create(provider=NoModel(), model="none", name=name)
    builder.tool(*_listed("tools", tools)).tool_middleware(*_listed("tool_middleware", tool_middleware))
    builder.watch(*_listed("watch", watch)).ledger(NoLedger() if ledger is None else ledger)
    if credentials is not None:
        builder.credentials(credentials)
    spec = builder.spec()
    if not spec.tools:
        raise BuilderError("mcp_serve(tools=[]) has nothing to serve; give it at least one tool.")
    for tool in spec.tools.values():
        _refuse_unserved(tool, credentials)
    return McpServing(spec)


def _listed(word: str, given: Sequence[T]) -> Sequence[T]:
    if not isinstance(cast("object", given), list | tuple):
        raise BuilderError(f"mcp_serve({word}=...) takes a list, not {type(given).__name__}.")
    return given


def _refuse_unserved(tool: Tool, credentials: CredentialProvider | None) -> None:
    if tool.check_in is not None:
        raise BuilderError(
            f"The tool {tool.name} demands a person's consent, which no client can be asked for; serve it "
            "without check_in=, or not at all."
        )
    if tool.needs is not None and credentials is None:
        raise BuilderError(
            f"The tool {tool.name} needs a credential for {tool.needs}; give mcp_serve(credentials=...)."
        )


def _server(spec: AgentSpec) -> Server[Any]:
    import mcp_types
    from mcp.server import Server

    listing = [
        mcp_types.Tool(
            name=offer.name, description=offer.description or None, input_schema=plain.copy(offer.schema)
        )
        for offer in spec.offers.tools
    ]

    async def list_tools(
        _context: ServerRequestContext[Any], _params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=listing)

    async def call_tool(
        _context: ServerRequestContext[Any], params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        served = await _answer(spec, params.name, params.arguments or {})
        text = mcp_types.TextContent(type="text", text=served.text)
        return mcp_types.CallToolResult(content=[text], is_error=served.is_error)

    return Server(spec.name, on_list_tools=list_tools, on_call_tool=call_tool)


async def _answer(spec: AgentSpec, name: str, arguments: dict[str, Any]) -> Served:
    """What a client gets of a call, in a task of its own.

    The official package cancels over and over until a task gives up, and a tool in a thread that is
    cancelled twice is left in doubt. Here the call hears of it once, and what the tool did is on record.
    """
    import anyio

    if name not in spec.tools:
        text = f"There is no tool called {name}, so nothing was run; use one of the tools listed."
        return Served(text=text, is_error=True)
    args_json = plain.encode(plain.detach(arguments)).decode()
    task = asyncio.create_task(_call(spec, ToolCall(id=spec.new_id(), name=name, args_json=args_json)))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError as error:
        task_here = asyncio.current_task()
        if task_here is None or not task_here.cancelling():
            # Raised by a rule, of its own accord; let go, it would end the server.
            return _failed(name, error)
        with anyio.CancelScope(shield=True):
            while not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((task,))
        raise


async def _call(spec: AgentSpec, call: ToolCall) -> Served:
    """Whatever goes wrong is an answer: the client waits for one, and the server goes on serving."""
    try:
        return await serve_call(spec, call)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - a rule may raise anything, and a tool end the program
        return _failed(call.name, error)


def _failed(name: str, error: BaseException) -> Served:
    kind = type(error).__name__
    _log.warning("A served call of %s failed with %s.", name, kind)
    return Served(text=f"The call of {name} failed in the server ({kind}); try again later.", is_error=True)
