"""A window strategy of one's own, by either door."""

from __future__ import annotations

import asyncio

from footprint_core import (
    Agent,
    Answer,
    AssistantMessage,
    Message,
    ToolMessage,
    UserMessage,
    WindowPlan,
    WindowStrategy,
    WindowView,
    sliding_window,
)
from footprint_core.providers import Scripted, reply


class Forgetful:
    """Lets the oldest turn go as soon as there are too many."""

    name = "forgetful"

    def __init__(self, most: int) -> None:
        self.most = most
        self.seen: list[str] = []

    def plan(self, view: WindowView) -> WindowPlan | None:
        if view.turn_count <= self.most:
            return None
        self.seen.append(opening(view.opens(view.turns[0])))
        return WindowPlan(remove=(0,), figures={"most": self.most})


def opening(message: Message) -> str:
    match message:
        case UserMessage(text=text):
            return text
        case AssistantMessage(calls=calls):
            return str(len(calls))
        case ToolMessage(tool_name=name):
            return name


strategies: list[WindowStrategy] = [Forgetful(2), sliding_window(keep_recent_turns=2)]


async def main() -> None:
    strategy = Forgetful(2)
    script = [reply(text=f"Answer {n}.") for n in range(3)]
    agent = Agent.create(provider=Scripted(script), model="m", name="brief").window(strategy).build()
    assert isinstance(await agent.run("One"), Answer)
    assert isinstance(await agent.follow_up("Two"), Answer)
    assert isinstance(await agent.follow_up("Three"), Answer)
    assert strategy.seen[0] == "One"
    for one in strategies:
        Agent.create(provider=Scripted([]), model="m", name="brief").act(window=one).build()


if __name__ == "__main__":
    asyncio.run(main())
