"""A segment in events: first the posture, last its end, in between nothing out of order."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import Any, get_args

import pytest

from footprint_core import (
    Agent,
    AskPause,
    DecisionRequiredError,
    ForeignCheckpointError,
    InvalidRunInputError,
    LedgerError,
    MessageDeniedError,
    NoConversationError,
    PendingQuestionError,
    Permission,
    PolicyHaltError,
    ProviderError,
    RunInFlightError,
    StaleDecisionError,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
    sliding_window,
)
from footprint_core.events import AgentConfigured, Event, FatalError, Signal, TokenStreamed, TurnEnded
from footprint_core.facts import ModelAsked
from footprint_core.projection import events_for
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from permits import Checker
from planted import Failing, Full, World
from planted_stories import played
from story import Seen, answered, describe, run

DONE = reply(text="done")
REPLIES = [reply(calls=[call("1", "look", {"q": "x"})]), DONE]
SIGNALS = {kind.type for kind in get_args(Signal)} - {"error.fatal", "agent.turn_end"}


def look(q: str) -> str:
    return q * 2


async def cancels(_: object) -> Any:
    """A hook in which the caller cancels."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def asking(seen: Seen, *, ledger: Any = None) -> Agent:
    act: Any = {"before_tool": [before_tool("asks")(lambda _: ask("Really?"))]}
    return describe(REPLIES, look, act=act, watch=[seen], ledger=ledger)[0].build()


def test_every_segment_begins_with_its_posture_and_ends_once_and_nothing_follows() -> None:
    segments: dict[tuple[str, int], list[Event]] = defaultdict(list)
    for event in played().seen.events:
        segments[event.run_id, event.segment].append(event)
    assert len(segments) > 60
    for events in segments.values():
        types = [event.type for event in events]
        assert types[0] == "agent.run_configured"
        assert types[-1] == "agent.turn_end"
        assert (types.count("agent.run_configured"), types.count("agent.turn_end")) == (1, 1)


def test_the_posture_names_the_rules_of_each_moment_in_order_and_whether_the_run_goes_on() -> None:
    seen = Seen()

    class Versioned:
        name, version = "first", "3"

        def on_tool_call(self, _: object, /) -> Any:
            return ask("Really?")

    act: Any = {
        "input": [on_message("in")(lambda _: allow())],
        "before_tool": [Versioned(), before_tool("second")(lambda _: allow())],
        "after_tool": [after_tool("third")(lambda _: allow())],
        "window": sliding_window(keep_recent_turns=9),
        "output": [on_message("out")(lambda _: allow())],
    }
    agent = describe(REPLIES, look, act=act, watch=[seen])[0].build()
    paused = run(agent.run("go"))
    assert isinstance(paused, AskPause)
    run(agent.resume(paused.checkpoint, check_in_approved(by="dana")))
    for told in seen.of(AgentConfigured):
        assert {moment: [rule.name for rule in rules] for moment, rules in told.rules.items()} == {
            "input": ["in", "out"],
            "before-tool": ["first", "second"],
            "after-tool": ["third"],
            "window": [told.window],
            "output": ["in", "out"],
        }
        assert told.rules["before-tool"][0].version == "3"
        assert (told.tools, told.streaming, told.agent_name) == (("look",), False, "tested")
    assert [(told.segment, told.resumed) for told in seen.of(AgentConfigured)] == [(1, False), (2, True)]
    assert [event.segment for event in seen.events if event.type == "agent.turn_start"] == [1]


def test_events_are_the_projection_of_the_facts_at_their_positions_and_times() -> None:
    world = played()
    told: dict[str, list[Event]] = defaultdict(list)
    for event in world.seen.events:
        if event.type not in SIGNALS:
            told[event.run_id].append(event)
    compared = 0
    for run_id, events in told.items():
        entries = world.ledger.entries(run_id)
        if not entries or any(getattr(entry.fact, "imported", None) for entry in entries):
            continue
        expected = [
            (event.type, entry.position, entry.time)
            for entry in entries
            for event in events_for(entry, run_id=run_id, segment=1)
        ]
        assert [(event.type, event.sequence, event.time) for event in events] == expected
        compared += len(expected)
    assert compared > 900


def test_sequences_never_step_back_and_a_signal_carries_that_of_the_last_fact() -> None:
    world = World()

    async def story() -> None:
        agent = world.builder([reply(tokens=["a", "b"])], streaming=True).build()
        agent.on(TokenStreamed, lambda _: 1 / 0)
        await agent.run("go")

    run(story())
    sequences = [event.sequence for event in world.seen.events]
    assert sequences == sorted(sequences)
    entries = world.ledger.entries(world.seen.events[0].run_id)
    (asked,) = [entry.position for entry in entries if isinstance(entry.fact, ModelAsked)]
    signals = [event for event in world.seen.events if event.type in SIGNALS]
    assert [event.type for event in signals] == ["stream.token", "observer.error", "stream.token"]
    assert {event.sequence for event in signals} == {asked}
    assert [event.time for event in world.seen.events] == sorted(event.time for event in world.seen.events)


@pytest.mark.parametrize(
    ("act", "last"),
    [
        ({}, ["agent.iteration_end", "agent.turn_end answered"]),
        (
            {"input": [on_message("no")(lambda _: deny("no"))]},
            ["agent.turn_start", "agent.turn_end denied"],
        ),
        (
            {"output": [on_message("no")(lambda _: deny("no"))]},
            ["agent.iteration_end", "agent.turn_end denied"],
        ),
        (
            {"before_tool": [before_tool("asks")(lambda _: ask("Really?"))]},
            ["pause.request", "agent.turn_end paused"],
        ),
        (
            {"before_tool": [before_tool("stops")(cancels)]},
            ["stream.tool_start", "agent.turn_end cancelled"],
        ),
    ],
)
def test_the_last_event_says_how_the_segment_ended(act: Any, last: list[str]) -> None:
    seen = Seen()
    agent = describe(REPLIES, look, act=act, watch=[seen])[0].build()

    async def story() -> None:
        with suppress(MessageDeniedError, asyncio.CancelledError):
            await asyncio.ensure_future(agent.run("go"))

    run(story())
    (end,) = seen.of(TurnEnded)
    assert [seen.types[-2], f"{seen.types[-1]} {end.outcome}"] == last


def test_a_halt_is_told_behind_its_check_and_the_call_and_the_segment_end() -> None:
    seen = Seen()
    halts = Checker(Permission(result="halt", reason="not here", policy_rule_id="P-1"))
    two = reply(calls=[call(name, "look", {"q": "x"}) for name in ("1", "2")])
    agent = describe([two], look, watch=[seen])[0].permission(halts).build()
    with pytest.raises(PolicyHaltError):
        run(agent.run("go"))
    assert seen.types[-5:] == [
        "stream.tool_start",
        "permission.check",
        "permission.halt",
        "stream.tool_end",
        "agent.turn_end",
    ]
    assert seen.types.count("stream.tool_start") == 1
    (end,) = seen.of(TurnEnded)
    assert end.outcome == "halted"


@pytest.mark.parametrize("takes", [1, 2])
def test_a_segment_that_fails_tells_the_class_and_the_stage_once_and_then_ends(takes: int) -> None:
    world = World()
    with pytest.raises(ProviderError):
        run(world.builder([], provider=Failing()).build().run("go"))
    with pytest.raises(LedgerError):
        run(world.builder([DONE], ledger=Full(takes)).build().run("go"))
    told = [(event.error_class, event.stage, event.recorded) for event in world.seen.of(FatalError)]
    assert told == [("OSError", "model", True), ("LedgerWriteError", "model" if takes == 1 else "end", False)]
    ends = [(event.outcome, event.recorded) for event in world.seen.of(TurnEnded)]
    assert ends == [("failed", True), ("failed", False)]
    for fatal in world.seen.of(FatalError):
        behind = world.seen.events[world.seen.events.index(fatal) + 1]
        assert (behind.type, behind.run_id) == ("agent.turn_end", fatal.run_id)


@pytest.mark.parametrize("broken", ["turn_end raises", "both"])
def test_a_watcher_that_raises_at_the_end_is_counted_and_logged_and_nothing_follows(
    broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Breaks(Seen):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if isinstance(event, TurnEnded) or broken == "both":
                raise RuntimeError

    breaks, seen = Breaks("breaks"), Seen()
    agent = describe([DONE], watch=[breaks, seen])[0].build()
    assert answered(run(agent.run("go"))).text == "done"
    assert seen.types[-1] == "agent.turn_end"
    assert seen.types.count("observer.error") == (1 if broken == "both" else 0)
    assert agent.health().watchers[0].failures == (len(breaks.events) if broken == "both" else 1)
    assert len(caplog.records) == 1


def test_an_action_that_is_refused_starts_no_segment_and_tells_nothing() -> None:
    seen = Seen()
    agent = asking(seen)

    async def refused(work: Awaitable[object], error: type[Exception]) -> None:
        before = len(seen.events)
        with pytest.raises(error):
            await work
        assert len(seen.events) == before

    async def story() -> None:
        messages: tuple[Any, ...] = ("", "  ", None, 3)
        for bad in messages:
            await refused(agent.run(bad), InvalidRunInputError)
        await refused(agent.follow_up("go"), NoConversationError)
        paused = await agent.run("go")
        assert isinstance(paused, AskPause)
        for door in (agent.run, agent.follow_up):
            await refused(door("go"), PendingQuestionError)
        await refused(agent.resume(paused.checkpoint, "sure"), DecisionRequiredError)
        await refused(agent.resume({"not": "one"}, check_in_approved(by="dana")), ForeignCheckpointError)
        other: dict[str, Any] = {**paused.checkpoint, "run_id": "0" * 32}
        await refused(agent.resume(other, check_in_approved(by="dana")), ForeignCheckpointError)
        await agent.resume(paused.checkpoint, check_in_approved(by="dana"))
        await refused(agent.resume(paused.checkpoint, check_in_approved(by="dana")), StaleDecisionError)

    run(story())
    assert seen.types.count("agent.run_configured") == seen.types.count("agent.turn_end") == 2


def test_a_second_turn_in_flight_tells_nothing() -> None:
    seen = Seen()

    class Waits:
        name = "waits"

        def __init__(self) -> None:
            self.asked, self.go = asyncio.Event(), asyncio.Event()

        async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
            self.asked.set()
            await self.go.wait()
            yield Completed(text="done")

    async def story() -> None:
        model = Waits()
        agent = Agent.create(provider=model, model="m", name="n").watch(seen).build()
        first = asyncio.ensure_future(agent.run("go"))
        await model.asked.wait()
        before = len(seen.events)
        with pytest.raises(RunInFlightError):
            await agent.run("also")
        assert len(seen.events) == before
        model.go.set()
        await first

    run(story())
    assert seen.types.count("agent.turn_end") == 1
    assert len({event.run_id for event in seen.events}) == 1
