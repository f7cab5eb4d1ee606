"""A watcher that has no use for some events is not told of them, and what nobody wants is not built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from footprint_core import Agent
from footprint_core.events import (
    EVENTS,
    ContextInjected,
    Event,
    IterationFinished,
    IterationStarted,
    RouteDecided,
    SlotComposed,
    ToolsOffered,
    TurnEnded,
)
from footprint_core.projection import events_for
from footprint_core.providers import Scripted, call, reply
from footprint_core.watch import Watcher
from story import Seen, run

OF_EVERY_CALL: frozenset[type[Event]] = frozenset(
    {ContextInjected, IterationFinished, IterationStarted, RouteDecided, SlotComposed, ToolsOffered}
)


class Choosy(Seen):
    """Is told of some events only."""

    def __init__(self, ignores: Any) -> None:
        super().__init__("choosy")
        self.ignores = ignores


def lookup(key: str) -> str:
    """Look something up."""
    return key


def played(*watchers: Watcher, on: Callable[[Event], object] | None = None) -> None:
    model = Scripted([reply(calls=[call("c1", "lookup", {"key": "a"})]), reply(text="Done.")])
    agent = Agent.create(provider=model, model="m", name="shop").tool(lookup).watch(*watchers).build()
    if on is not None:
        agent.on("agent.turn_end", on)
    run(agent.run("hello"))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """The events that were built."""
    made: list[Event] = []

    def counted(*args: Any, **how: Any) -> tuple[Event, ...]:
        events = events_for(*args, **how)
        made.extend(events)
        return events

    monkeypatch.setattr("footprint_core.commit.events_for", counted)
    return made


def kinds(events: list[Event]) -> set[type[Event]]:
    return {type(event) for event in events}


def test_it_is_told_of_the_others_in_their_order_and_so_is_who_stands_beside_it() -> None:
    choosy, seen = Choosy(OF_EVERY_CALL), Seen()
    played(choosy, seen)
    assert choosy.events == [event for event in seen.events if type(event) not in OF_EVERY_CALL]
    assert kinds(seen.events) >= OF_EVERY_CALL


def test_what_nobody_wants_is_not_built(built: list[Event]) -> None:
    played(Choosy(OF_EVERY_CALL))
    assert built
    assert not kinds(built) & OF_EVERY_CALL


def test_what_one_of_two_wants_is_built(built: list[Event]) -> None:
    other = Choosy(OF_EVERY_CALL - {RouteDecided})
    other.id = "other"
    played(Choosy(OF_EVERY_CALL), other)
    assert kinds(built) & OF_EVERY_CALL == {RouteDecided}
    assert RouteDecided in kinds(other.events)


def test_for_a_function_that_subscribed_all_are_built(built: list[Event]) -> None:
    ended: list[Event] = []
    played(Choosy(frozenset(EVENTS.values())), on=ended.append)
    assert kinds(built) >= OF_EVERY_CALL
    assert kinds(ended) == {TurnEnded}


def test_a_watcher_that_uses_the_name_otherwise_is_told_of_everything() -> None:
    choosy, seen = Choosy(["context.*"]), Seen()
    played(choosy, seen)
    assert choosy.events == seen.events


def test_a_watcher_that_ignores_everything_is_none_that_harms() -> None:
    choosy = Choosy(frozenset(EVENTS.values()))
    played(cast("Watcher", choosy))
    assert choosy.events == []
