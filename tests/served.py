"""A server of our tools and what its clients get: for tests of what is served over MCP."""

from __future__ import annotations

from typing import Any, Literal

import mcp_types as wire
import pytest
from mcp import Client

from footprint_core import (
    Batch,
    Entry,
    MemoryLedger,
    Receipt,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    allow,
    deny,
)
from footprint_core.mcp import McpServing

Dialect = Literal["auto", "legacy"]
DIALECTS = pytest.mark.parametrize("mode", ["auto", "legacy"])
Answered = tuple[bool, str]


def refund(amount: int, to: str = "card") -> dict[str, object]:
    """Pay it back."""
    return {"amount": amount, "to": to}


def breaks() -> None:
    """Never works."""
    raise LookupError("kaput")


def read(result: wire.CallToolResult) -> Answered:
    """Whether it is an error, and its one text."""
    (block,) = result.content
    assert isinstance(block, wire.TextContent)
    assert result.structured_content is None
    return result.is_error, block.text


async def served(serving: McpServing, name: str, args: dict[str, Any] | None = None) -> Answered:
    """What a client gets of one call."""
    async with Client(serving.server) as client:
        return read(await client.call_tool(name, args))


class Kept:
    """A ledger that knows the runs it has."""

    def __init__(self) -> None:
        self.kept = MemoryLedger()
        self.runs: list[str] = []

    def append_inline(self, batch: Batch, /) -> Receipt:
        if batch.run_id not in self.runs:
            self.runs.append(batch.run_id)
        return self.kept.append_inline(batch)

    async def append(self, batch: Batch, /) -> Receipt:
        return self.append_inline(batch)

    async def pause_standing(self, run_id: str, pause_id: str, /) -> None:
        return None

    async def kept_pause(self, pause_id: str, /) -> None:
        return None

    async def run_standing(self, run_id: str, /) -> None:
        return None

    def entries(self, run_id: str, /) -> tuple[Entry, ...]:
        return self.kept.entries(run_id)

    def decisions(self, run_id: str, /) -> tuple[Any, ...]:
        return self.kept.decisions(run_id)

    async def close(self) -> None:
        self.runs.append("closed")

    def facts(self, kind: type[Any]) -> list[Any]:
        entries = [entry for run_id in self.runs for entry in self.entries(run_id)]
        return [entry.fact for entry in entries if isinstance(entry.fact, kind)]


class Ceiling:
    """Refuses much, wraps results, and keeps what it was shown."""

    name = "ceiling"

    def __init__(self) -> None:
        self.calls: list[ToolCallContext] = []
        self.results: list[ToolResultContext] = []

    def on_tool_call(self, asked: ToolCallContext, /) -> ToolOutcome:
        self.calls.append(asked)
        return deny("over the ceiling") if asked.args.get("amount", 0) > 10 else allow()

    def on_tool_result(self, ended: ToolResultContext, /) -> ToolResultOutcome:
        self.results.append(ended)
        return allow({"checked": ended.result}, why="wrapped")
