"""The reference of the loop's benchmark: a bare agent loop that does the same work without governing it.

Like any loop that could be traced and governed, it has a place for a span around the run, each model call
and each tool call, and a place where each call would be decided about; both are empty here.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

TEXT = "x" * 200


class Script:
    """What the model says next: one call a turn, then the final text."""

    def __init__(self, calls: int) -> None:
        self.calls, self.asked = calls, 0

    def next(self) -> list[tuple[str, dict[str, Any]]] | None:
        """The calls of the next turn; None for the final text."""
        if self.asked >= self.calls:
            return None
        asked = [(f"call_{i}", {"key": f"k{i}", "n": i}) for i in range(self.asked, self.asked + 1)]
        self.asked += 1
        return asked


class Tool:
    """Looks something up, and counts how often."""

    def __init__(self) -> None:
        self.runs = 0

    async def lookup(self, key: str, n: int) -> str:
        """Look something up."""
        self.runs += 1
        return TEXT


class Span:
    """The place of a span, when nobody traces."""

    def __init__(self, name: str, **attributes: Any) -> None:
        self.inner: Any = None

    def __enter__(self) -> Any:
        return self.inner.__enter__() if self.inner else None

    def __exit__(self, *error: object) -> Any:
        return self.inner.__exit__(*error) if self.inner else None


async def loop(script: Script, tool: Tool, message: str) -> tuple[str, list[dict[str, Any]]]:
    """Run one turn."""
    history: list[dict[str, Any]] = [{"role": "user", "content": message}]

    async def one(call_id: str, args: dict[str, Any]) -> tuple[str, str]:
        attributes = {"gen_ai.tool.name": "lookup", "gen_ai.tool.call.id": call_id}
        with Span("execute_tool lookup", **attributes):
            result = await tool.lookup(**args)
        return call_id, result

    with Span("invoke_agent bare"):
        while True:
            with Span("chat fake"):
                calls = script.next()
            if calls is None:
                history.append({"role": "assistant", "content": "done"})
                return "done", history
            said = [{"id": i, "name": "lookup", "arguments": json.dumps(x)} for i, x in calls]
            history.append({"role": "assistant", "tool_calls": said})
            if len(calls) == 1:
                done = [await one(*calls[0])]
            else:
                done = await asyncio.gather(*(one(i, x) for i, x in calls))
            history.extend({"role": "tool", "tool_call_id": i, "content": r} for i, r in done)
