"""A watcher that has an answer for every event there is."""

from __future__ import annotations

import asyncio
from typing import assert_never

from footprint_core import Agent, Watcher
from footprint_core import events as ev
from footprint_core.providers import Scripted, call, reply


class Topics:
    """Counts what it is told, by topic."""

    id = "topics"

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def on_event(self, event: ev.Event) -> None:
        topic = topic_of(event)
        self.counts[topic] = self.counts.get(topic, 0) + 1


def topic_of(event: ev.Event) -> str:
    match event:
        case ev.AgentConfigured() | ev.TurnStarted() | ev.TurnEnded() | ev.FatalError() | ev.ObserverError():
            return "run"
        case ev.IterationStarted() | ev.IterationFinished() | ev.RouteDecided() | ev.BudgetSpent():
            return "loop"
        case ev.ModelCallStarted() | ev.TokenStreamed() | ev.ModelCallEnded():
            return "model"
        case ev.ContextEvicted() | ev.ContextInjected() | ev.SlotComposed() | ev.BudgetPressure():
            return "window"
        case ev.ToolsOffered() | ev.ToolCallStarted() | ev.ArgsInvalid() | ev.ToolCallEnded():
            return "tools"
        case ev.DecisionFiled(outcome=outcome):
            return outcome
        case ev.PermissionAnswered() | ev.PermissionHalted():
            return "permission"
        case ev.CredentialRequested() | ev.CredentialAcquired() | ev.CredentialFailed():
            return "credentials"
        case ev.CheckInRequested() | ev.CheckInDecided() | ev.PauseRequested() | ev.PauseResumed():
            return "people"
        case ev.OutputRetried() | ev.OutputUnmet():
            return "schema"
        case _:
            assert_never(event)


def ping() -> str:
    """Ping."""
    return "pong"


async def main() -> None:
    topics = Topics()
    watchers: list[Watcher] = [topics]
    script = [reply(calls=[call("1", "ping", {})]), reply(text="pong")]
    builder = Agent.create(provider=Scripted(script), model="m", name="ping").tool(ping)
    await builder.watch(*watchers).build().run("Ping")
    assert topics.counts["run"] == 3
    assert topics.counts["model"] == 4
    assert "people" not in topics.counts


if __name__ == "__main__":
    asyncio.run(main())
