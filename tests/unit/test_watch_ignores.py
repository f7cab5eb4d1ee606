"""A watcher that has no use for some events is not told of them, and what nobody wants is not built."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import TracerProvider

from footprint_core import Agent
from footprint_core.events import (
    EVENTS,
    AgentConfigured,
    ContextInjected,
    DecisionFiled,
    Event,
    IterationFinished,
    IterationStarted,
    RouteDecided,
    SlotComposed,
    TokenStreamed,
    ToolCallEnded,
    ToolsOffered,
    TurnEnded,
)
from footprint_core.projection import events_for
from footprint_core.providers import Scripted, call, reply
from footprint_core.watch import Watcher
from recorders.console import Console
from recorders.jsonl import Jsonl
from recorders.memory import Memory
from recorders.otel_metrics import OtelMetrics
from recorders.otel_spans import OtelSpans
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


def agent_of(*watchers: Watcher) -> Agent:
    replies = [reply(calls=[call("c1", "lookup", {"key": "a"})]), reply(tokens=["Do", "ne."])]
    model = Scripted(replies, streaming=True)
    builder = Agent.create(provider=model, model="m", name="shop").system("Be kind.").tool(lookup)
    return builder.watch(*watchers).build()


def played(*watchers: Watcher, on: Callable[[Event], object] | None = None) -> None:
    agent = agent_of(*watchers)
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


def kinds(events: Iterable[Event]) -> set[type[Event]]:
    return {type(event) for event in events}


def words(event: Event) -> tuple[type[Event], int, str | None]:
    """What an event has in common with the same one of an equal run."""
    return type(event), event.sequence, getattr(event, "slot", None)


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


@pytest.mark.parametrize("ignores", [["context.*"], {"context.*"}, [RouteDecided], {RouteDecided, str}, None])
def test_a_watcher_that_uses_the_name_otherwise_is_told_of_everything(ignores: object) -> None:
    choosy, seen = Choosy(ignores), Seen()
    played(choosy, seen)
    assert choosy.events == seen.events


def test_a_plain_set_will_do_and_is_read_once() -> None:
    ignores = set(OF_EVERY_CALL)
    choosy, seen = Choosy(ignores), Seen()
    agent = agent_of(choosy, seen)
    ignores.clear()
    run(agent.run("hello"))
    assert choosy.events == [event for event in seen.events if type(event) not in OF_EVERY_CALL]


@pytest.mark.parametrize("together", [False, True])
def test_chunks_that_nobody_wants_are_not_built(together: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[TokenStreamed] = []

    class Counted:
        """Stands for the class where it is built; it is equal to it where it is looked up."""

        def __call__(self, **fields: Any) -> TokenStreamed:
            made.append(TokenStreamed(**fields))
            return made[-1]

        def __hash__(self) -> int:
            return hash(TokenStreamed)

        def __eq__(self, other: object) -> bool:
            return other is TokenStreamed

    monkeypatch.setattr("footprint_core.loop.call_model.TokenStreamed", Counted())
    seen = Seen()
    played(Choosy({TokenStreamed}), *[seen] * together)
    assert len(made) == (2 if together else 0)
    assert seen.of(TokenStreamed) == made


@pytest.mark.parametrize("detached", ["choosy", "other"])
def test_who_is_detached_in_a_run_neither_wants_nor_ignores_anything_more(
    detached: str, built: list[Event]
) -> None:
    class Leaves(Choosy):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if isinstance(event, ToolCallEnded) and self.id == detached:
                ends()

    choosy, other = Leaves(OF_EVERY_CALL), Leaves(frozenset())
    other.id = "other"
    stays, leaves = (choosy, other) if detached == "other" else (other, choosy)
    agent = agent_of(stays)
    ends = agent.attach(leaves)
    run(agent.run("hello"))
    left = next(event.sequence for event in built if isinstance(event, ToolCallEnded))
    assert kinds(event for event in built if event.sequence <= left) >= OF_EVERY_CALL - {IterationFinished}
    later = kinds(event for event in built if event.sequence > left)
    assert later & OF_EVERY_CALL == (OF_EVERY_CALL if detached == "choosy" else set())
    assert TurnEnded in later
    assert not kinds(choosy.events) & OF_EVERY_CALL


@pytest.mark.parametrize("ignored", [OF_EVERY_CALL, *(frozenset({kind}) for kind in OF_EVERY_CALL)])
def test_whoever_subscribes_at_an_event_hears_every_later_one_also_what_nobody_wanted_before(
    ignored: frozenset[type[Event]],
) -> None:
    class Subscribes(Choosy):
        def __init__(self, at: int) -> None:
            super().__init__(ignored)
            self.at = at
            self.agent = agent_of(self)
            self.later: list[Event] = []

        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if len(self.events) == self.at:
                self.agent.on("*", self.later.append)

    seen = Seen()
    played(seen)
    told = [words(event) for event in seen.events]
    heard = [place for place, (kind, *_) in enumerate(told) if kind not in ignored]
    for at, place in enumerate(heard, 1):
        choosy = Subscribes(at)
        run(choosy.agent.run("hello"))
        assert [words(event) for event in choosy.later] == told[place + 1 :]
        assert [words(event) for event in choosy.events] == [told[place] for place in heard]


def test_what_our_recorders_ignore_are_events_and_changes_nothing_of_what_they_tell() -> None:
    every: set[type[Event]] = set(EVENTS.values())
    for recorder in (Console, OtelMetrics, OtelSpans):
        assert recorder.ignores < every
        assert type(recorder.ignores) is frozenset
        assert TokenStreamed in recorder.ignores
        assert not recorder.ignores & {AgentConfigured, DecisionFiled, ToolCallEnded, TurnEnded}
    assert not any(hasattr(recorder, "ignores") for recorder in (Jsonl, Memory))


def test_a_run_that_only_our_spans_watch_builds_none_of_every_call(built: list[Event]) -> None:
    played(OtelSpans(tracer_provider=TracerProvider(shutdown_on_exit=False)))
    assert built
    assert not kinds(built) & OF_EVERY_CALL


def test_a_watcher_that_ignores_everything_is_none_that_harms() -> None:
    choosy = Choosy(frozenset(EVENTS.values()))
    played(cast("Watcher", choosy))
    assert choosy.events == []
