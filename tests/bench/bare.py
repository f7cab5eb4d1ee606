"""The reference of the loop's benchmark: a bare agent loop that does the same work without governing it.

Like any loop that could be traced and governed, it has a place for a span around the run, each model call
and each tool call, empty unless a tracer is given, and a place where each moment is decided about: empty
too, or four plain functions that keep a row of everything they decided in a list, with a span each when told
so.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import Any

TEXT = "x" * 200
MESSAGE = "please look these up, my ssn is 123-45-6789"
SSN = re.compile(r"\b\d{3}-\d{2}-\d{4}\b")


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
    """The place of a span, which is empty while nobody traces."""

    tracer: Any = None

    def __init__(self, name: str, **attributes: Any) -> None:
        tracer = self.tracer
        self.inner: Any = tracer.start_as_current_span(name, attributes=attributes) if tracer else None

    def __enter__(self) -> Any:
        return self.inner.__enter__() if self.inner else None

    def __exit__(self, *error: object) -> Any:
        return self.inner.__exit__(*error) if self.inner else None


class Rules:
    """The four rules, the rows of what they decided, and a span of each row when there is a tracer."""

    def __init__(self, tracer: Any = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.tracer = tracer
        self.db: Any = None

    def file(
        self, moment: str, rule: str, outcome: str, before: Any, after: Any, why: str | None = None
    ) -> None:
        """Keep a row, and end a span of it; there is a place for a database, which is empty."""
        self.rows.append(
            {
                "t": time.time(),
                "moment": moment,
                "rule": rule,
                "outcome": outcome,
                "changed": before is not after,
                "why": why,
                "before": before,
                "after": after,
            }
        )
        if self.tracer:
            told = {
                "footprint.moment": moment,
                "footprint.middleware": rule,
                "footprint.outcome": outcome,
                "footprint.changed": before is not after,
                "footprint.row": len(self.rows),
                "gen_ai.agent.name": "bare",
            }
            self.tracer.start_span(f"middleware.decision {rule}", attributes=told).end()
        if self.db is not None:
            raise NotImplementedError

    def scrub(self, moment: str, value: str) -> str:
        """Mask a social security number."""
        clean = SSN.sub("[ssn]", value) if "-" in value else value
        if clean == value:
            self.file(moment, "scrub", "allow", value, value)
            return value
        self.file(moment, "scrub", "allow", value, clean, "masked a US SSN")
        return clean

    def ceiling(self, args: dict[str, Any]) -> str | None:
        """Refuse what is above it."""
        if args["n"] > 10_000:
            self.file("before-tool", "ceiling", "deny", args, args, "too high")
            return "denied"
        self.file("before-tool", "ceiling", "allow", args, args)
        return None


async def loop(
    script: Script, tool: Tool, message: str, rules: Rules | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """Run one turn."""
    text = message if rules is None else rules.scrub("input", message)
    history: list[dict[str, Any]] = [{"role": "user", "content": text}]

    async def one(call_id: str, args: dict[str, Any]) -> tuple[str, str]:
        if rules is not None and (refused := rules.ceiling(args)):
            return call_id, refused
        attributes = {"gen_ai.tool.name": "lookup", "gen_ai.tool.call.id": call_id}
        with Span("execute_tool lookup", **attributes):
            result = await tool.lookup(**args)
        return call_id, result if rules is None else rules.scrub("after-tool", result)

    with Span("invoke_agent bare"):
        while True:
            with Span("chat fake"):
                calls = script.next()
            if calls is None:
                final = "done" if rules is None else rules.scrub("output", "done")
                history.append({"role": "assistant", "content": final})
                return final, history
            said = [{"id": i, "name": "lookup", "arguments": json.dumps(x)} for i, x in calls]
            history.append({"role": "assistant", "tool_calls": said})
            if len(calls) == 1:
                done = [await one(*calls[0])]
            else:
                done = await asyncio.gather(*(one(i, x) for i, x in calls))
            history.extend({"role": "tool", "tool_call_id": i, "content": r} for i, r in done)
