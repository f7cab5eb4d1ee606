"""Windows that count tokens, models that stream, and tools that run together."""

from __future__ import annotations

import asyncio

from footprint_core import (
    Agent,
    Answer,
    CompactionUnmeasurableError,
    WindowStrategy,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.events import TokenStreamed
from footprint_core.providers import Scripted, call, reply

summarizer = Scripted([])
windows: list[WindowStrategy] = [
    sliding_window(keep_recent_turns=3),
    token_budget(threshold_tokens=1000),
    token_budget(threshold_tokens=1000, keep_recent_turns=2),
    summarize_oldest(threshold_tokens=1000, keep_recent_turns=2, summarizer=summarizer, model="small"),
]


class Streamed:
    id = "streamed"

    def __init__(self) -> None:
        self.chars = 0

    def on_event(self, event: object) -> None:
        if isinstance(event, TokenStreamed):
            self.chars += event.chars


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def unmeasured_by(window: WindowStrategy) -> str | None:
    """Who did not report what a window has to count."""
    model = Scripted([reply(calls=[call("1", "add", {"a": 1, "b": 2})], usage=None), reply(text="3")])
    builder = Agent.create(provider=model, model="m", name="adder", keep_last_tool_results=0)
    try:
        await builder.tool(add).act(window=window).build().run("Add them")
    except CompactionUnmeasurableError as error:
        return error.provider
    return None


async def main() -> None:
    for window in windows:
        streamed = Streamed()
        both = [call("1", "add", {"a": 1, "b": 2}), call("2", "add", {"a": 3, "b": 4})]
        model = Scripted([reply(calls=both), reply(tokens=["three", " and ", "seven"])], streaming=True)
        builder = Agent.create(provider=model, model="m", name="adder", parallel_tools=True)
        agent = builder.tool(add).watch(streamed).window(window).build()
        out = await agent.run("Add them")
        assert isinstance(out, Answer)
        assert out.text == "three and seven"
        assert streamed.chars == len(out.text)

    assert await unmeasured_by(windows[0]) is None
    assert await unmeasured_by(windows[1]) == "scripted"


if __name__ == "__main__":
    asyncio.run(main())
