"""Watching an agent that was built: whole watchers, and functions for one class of event."""

from __future__ import annotations

import asyncio
from typing import assert_type

from footprint_core import Agent, Subscription
from footprint_core.events import DecisionFiled, Event, ModelCallEnded, ToolCallEnded, TurnEnded
from footprint_core.providers import Scripted, call, reply

lines: list[str] = []


class Counter:
    id = "counter"

    def __init__(self) -> None:
        self.count = 0

    def on_event(self, event: Event) -> None:
        self.count += 1


def ended(event: TurnEnded) -> None:
    lines.append(event.outcome)


def anything(event: Event) -> None:
    lines.append(event.type)


def less_particular(event: DecisionFiled | ToolCallEnded) -> None:
    lines.append(str(event.tool_name))


def ping() -> str:
    """Ping."""
    return "pong"


async def main() -> None:
    script = [reply(calls=[call("1", "ping", {})]), reply(text="pong"), reply(text="pong")]
    builder = Agent.create(provider=Scripted(script), model="m", name="watched").tool(ping)
    counter = Counter()
    async with builder.build() as agent:
        assert_type(agent.on(TurnEnded, ended), Subscription)
        assert_type(agent.on("agent.turn_end", anything), Subscription)
        agent.on("stream.*", lambda event: lines.append(event.type))
        agent.on("*", anything)()
        agent.on(ToolCallEnded, less_particular)
        agent.on(ModelCallEnded, lambda event: lines.append(str(event.stop_reason)))
        agent.on(TurnEnded, anything)
        with agent.attach(counter) as subscription:
            assert_type(subscription, Subscription)
            await agent.run("Ping")
        counted = counter.count
        await agent.run("Ping")
    assert counter.count == counted > 0
    assert lines.count("answered") == 2
    assert lines.count("agent.turn_end") == 4
    assert lines.count("ping") == 1
    assert lines.count("stop") == 2
    assert "stream.tool_end" in lines


if __name__ == "__main__":
    asyncio.run(main())
