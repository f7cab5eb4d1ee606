"""The reference of the loop's benchmark: a bare agent loop that does the same work without governing it."""

from __future__ import annotations

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
        i = self.asked
        self.asked += 1
        return [(f"call_{i}", {"key": f"k{i}", "n": i})]


async def lookup(key: str, n: int) -> str:
    """Look something up."""
    return TEXT


async def loop(script: Script, message: str) -> tuple[str, list[dict[str, Any]]]:
    """Run one turn."""
    history: list[dict[str, Any]] = [{"role": "user", "content": message}]
    while True:
        calls = script.next()
        if calls is None:
            history.append({"role": "assistant", "content": "done"})
            return "done", history
        history.append(
            {
                "role": "assistant",
                "tool_calls": [{"id": i, "name": "lookup", "arguments": json.dumps(x)} for i, x in calls],
            }
        )
        done = [(i, await lookup(**x)) for i, x in calls]
        history.extend({"role": "tool", "tool_call_id": i, "content": r} for i, r in done)
