"""What tests tell stories with: an agent in one line, its rows and its events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from footprint_core import ActOptions, Agent, AgentBuilder, Answer, Ledger, Outcome, Tool, Watcher
from footprint_core.events import Event
from footprint_core.providers import Completed, Scripted

T = TypeVar("T")


class Seen:
    """A watcher that keeps what it is told."""

    def __init__(self, id: str = "seen") -> None:
        self.id = id
        self.events: list[Event] = []

    def on_event(self, event: Event, /) -> None:
        self.events.append(event)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


def describe(
    replies: Sequence[Completed],
    *tools: Tool | Callable[..., object],
    ledger: Ledger | None = None,
    watch: Sequence[Watcher] = (),
    act: ActOptions | None = None,
    **options: Any,
) -> tuple[AgentBuilder, Scripted]:
    """A builder over scripted replies."""
    provider = Scripted(replies)
    builder = Agent.create(provider=provider, model="m", name="tested", **options).tool(*tools).watch(*watch)
    if act is not None:
        builder.act(**act)
    if ledger is not None:
        builder.ledger(ledger)
    return builder, provider


def run(work: Awaitable[T]) -> T:
    """Run to the end, within a bound."""

    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await work

    return asyncio.run(bounded())


def answered(outcome: Outcome) -> Answer:
    """The outcome, which is an answer."""
    assert isinstance(outcome, Answer), outcome
    return outcome


def facts_of(row: Any) -> dict[str, Any]:
    """A row without what differs between equal runs."""
    out: dict[str, Any] = row.to_dict()
    for key in ("run_id", "recorded_at", "duration"):
        with suppress(KeyError):
            del out[key]
    return out
