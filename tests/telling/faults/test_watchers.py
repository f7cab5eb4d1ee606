"""A watcher that raises, blocks for ever or calls the agent: the run is what it is when nobody watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from footprint_core import Agent, ReentrantCallError
from footprint_core.events import Event, TurnEnded
from footprint_observe.recording import queued
from recorders.memory import Memory
from story import Seen, answered, run
from telling.faults.turns import SLACK_SECONDS, agent_of, in_time, play, undisturbed


class Raises(Seen):
    """Raises on everything."""

    def on_event(self, event: Event, /) -> None:
        super().on_event(event)
        raise RuntimeError("a secret")


class Blocks:
    """Never comes back from the first event until it is opened."""

    id = "blocks"

    def __init__(self) -> None:
        self.told: list[Event] = []
        self.entered = threading.Event()
        self.opened = threading.Event()

    def on_event(self, event: Event, /) -> None:
        self.entered.set()
        self.opened.wait(60)
        self.told.append(event)


class Calls:
    """Starts a turn of the agent it watches at the end of the first one."""

    id = "calls"

    def __init__(self) -> None:
        self.agent: Agent | None = None
        self.came: list[str] = []
        self.ended = threading.Event()

    def on_event(self, event: Event, /) -> None:
        if self.agent is None or not isinstance(event, TurnEnded):
            return
        agent, self.agent = self.agent, None
        self.came.append(answered(agent.session().run_sync("again")).text)
        self.ended.set()


@pytest.fixture
def blocks() -> Iterator[Blocks]:
    made = Blocks()
    yield made
    made.opened.set()


def test_one_that_raises_is_counted_and_the_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory()
    played = play(Raises("raises"), memory)
    assert undisturbed(played)
    failures = played.health["raises"].failures
    assert failures == len([event for event in memory.events if event.type != "observer.error"])
    assert "a secret" not in caplog.text


def test_behind_a_queue_one_that_raises_is_counted_by_the_queue(caplog: pytest.LogCaptureFixture) -> None:
    raises = Raises("raises")
    played = play(queued(raises))
    assert undisturbed(played)
    health = played.health["raises"]
    assert (health.failures, health.errors, health.dropped) == (0, len(raises.events), 0)
    assert health.notices == (f"raises raised {len(raises.events)} times; the first is in the log.",)
    assert caplog.messages == ["The recorder raises failed: RuntimeError."]


def test_behind_a_queue_one_that_blocks_for_ever_holds_up_nothing(blocks: Blocks) -> None:
    memory = Memory()
    played = play(queued(blocks), memory)
    assert undisturbed(played)
    health = played.health["blocks"]
    assert (health.dropped, health.queued, health.failures) == (len(memory.events), 0, 0)
    assert health.notices == (
        f"{health.dropped} events were lost before blocks was told; it is too slow, or stands still.",
    )


def test_a_queue_that_is_full_drops_the_oldest_and_says_so_while_the_run_goes_on(blocks: Blocks) -> None:
    recorder = queued(blocks, bound=8)
    memory = Memory()
    agent = agent_of(recorder, memory, turns=2)
    run(agent.session().run("go"))
    assert blocks.entered.wait(10)
    run(agent.session().run("go"))
    health = agent.health().watchers[0]
    assert health.dropped + health.queued == len(memory.events)
    assert health.dropped > 0
    assert "were lost before blocks was told" in health.notices[0]
    blocks.opened.set()
    recorder.close(10.0)
    assert tuple(blocks.told[-8:]) == memory.events[-8:]
    assert len(blocks.told) + recorder.dropped == len(memory.events)


def test_one_that_calls_the_agent_is_refused_and_the_run_goes_on() -> None:
    refused: list[str] = []

    class CallsBack(Calls):
        def on_event(self, event: Event, /) -> None:
            assert self.agent is not None
            try:
                self.agent.run("again")
            except ReentrantCallError:
                refused.append(event.type)
            super().on_event(event)

    calls, memory = CallsBack(), Memory()
    agent = agent_of(calls, memory, turns=2)
    calls.agent = agent
    assert answered(run(agent.run("go"))).text == "done"
    assert refused == [event.type for event in memory.events]
    # Its run_sync in the middle of a loop is an error like any other.
    assert agent.health().watchers[0].failures == 1


def test_behind_a_queue_one_may_call_the_agent() -> None:
    calls = Calls()
    recorder = queued(calls)
    agent = agent_of(recorder, turns=2)
    calls.agent = agent

    async def story() -> Any:
        async with agent:
            out = await agent.run("go")
            assert calls.ended.wait(20)
            return out

    assert answered(run(story())).text == "done"
    assert calls.came == ["done"]
    assert in_time(lambda: recorder.flush(5.0), 5.0 + SLACK_SECONDS)
