"""Watchers: objects with an id, handed over together; some also hold something, or enclose what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import assert_type

from footprint_core import Agent, Scope, Watcher, WatcherHealth
from footprint_core.events import DecisionFiled, Event, ToolCallEnded, TurnEnded
from footprint_core.facts import TraceRef
from footprint_core.providers import Scripted, call, reply


class Printer:
    id = "printer"

    def __init__(self) -> None:
        self.lines: list[str] = []

    def on_event(self, event: Event) -> None:
        match event:
            case ToolCallEnded(tool_name=tool, status="ran", duration=float(seconds)):
                self.lines.append(f"{tool} took {seconds >= 0}")
            case DecisionFiled():
                self.lines.append(f"{event.middleware} said {event.outcome}")
            case TurnEnded(outcome=outcome):
                self.lines.append(outcome)
            case _:
                pass


@dataclass
class Counter:
    id: str
    count: int = field(default=0)

    def on_event(self, event: Event, /) -> None:
        assert_type(event.run_id, str)
        assert_type(event.sequence, int)
        self.count += 1


class Tracing:
    """Says by which ids rows can be found elsewhere, is entered around what runs, and is closed."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.closed = False

    @property
    def id(self) -> str:
        return "tracing"

    def on_event(self, event: object) -> None:
        """A watcher may be less particular than it is told to be."""

    def correlation(self, run_id: str, segment: int) -> TraceRef | None:
        return TraceRef(trace_id=run_id, span_id="0" * 16) if segment == 1 else None

    def enclose(self, scope: Scope) -> AbstractContextManager[None]:
        return self._within(scope.kind)

    @contextmanager
    def _within(self, kind: str) -> Generator[None]:
        self.entered.append(kind)
        yield

    def flush(self, timeout: float) -> bool:
        return timeout > 0

    def close(self, timeout: float) -> None:
        self.closed = self.flush(timeout)


def ping() -> str:
    """Ping."""
    return "pong"


async def main() -> None:
    printer, counter, tracing = Printer(), Counter("counter"), Tracing()
    watchers: tuple[Watcher, ...] = (printer, counter, tracing)
    script = [reply(calls=[call("1", "ping", {})]), reply(text="pong")]
    builder = Agent.create(provider=Scripted(script), model="m", name="watched").tool(ping)
    async with builder.watch(*watchers).watch().build() as agent:
        await agent.run("Ping")
        assert_type(agent.health().watchers, tuple[WatcherHealth, ...])
        assert [health.failures for health in agent.health().watchers] == [0, 0, 0]
    assert printer.lines == ["ping took True", "answered"]
    assert counter.count > len(printer.lines)
    assert tracing.entered == ["model", "tool", "model"]
    assert tracing.closed


if __name__ == "__main__":
    asyncio.run(main())
