"""Events kept in memory: in order, bounded, from any thread, also behind a fork."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from footprint_core import Agent, Answer, Recorder, RecorderError, allow, before_tool, tool
from footprint_core.events import DecisionFiled, ToolCallEnded
from footprint_core.providers import Scripted, call, reply
from footprint_observe.plugins import recorder
from footprint_observe.testing import sample_events
from footprint_observe.testing.bounds import in_fork
from recorders.memory import Memory


@tool
def look(what: str) -> str:
    """Look."""
    return what


def test_a_run_can_be_looked_at_behind_its_end() -> None:
    memory: Any = recorder("memory")()
    rule = before_tool("lets pass")(lambda _: allow())
    script = Scripted([reply(calls=[call("c1", "look", {"what": "here"})]), reply(text="done")])
    builder = Agent.create(provider=script, model="m", name="a").tool(look).act(before_tool=[rule])

    async def play() -> None:
        async with builder.watch(memory).build() as agent:
            assert isinstance(await agent.run("look"), Answer)

    asyncio.run(play())
    assert [row.middleware for row in memory.of(DecisionFiled)] == ["lets pass"]
    assert [end.status for end in memory.of(ToolCallEnded)] == ["ran"]
    assert (memory.events[0].type, memory.events[-1].type) == ("agent.run_configured", "agent.turn_end")
    memory.clear()
    assert memory.events == ()


def test_the_oldest_go_first_and_are_counted() -> None:
    memory = Memory(keep=3, id="short")
    events = sample_events()
    for event in events:
        memory.on_event(event)
    assert memory.events == events[-3:]
    lost = len(events) - 3
    assert memory.dropped == lost
    assert memory.notices == (f"{lost} events are kept no more; give Memory(keep=...) a higher number.",)
    assert isinstance(memory, Recorder)
    assert (memory.id, memory.flush(0.0)) == ("short", True)
    memory.clear()
    assert not memory.events
    assert not memory.notices


def test_it_keeps_ten_thousand_or_all() -> None:
    usual, endless = Memory(), Memory(keep=None)
    event = sample_events()[0]
    for _ in range(10_001):
        usual.on_event(event)
        endless.on_event(event)
    assert (len(usual.events), usual.dropped) == (10_000, 1)
    assert (len(endless.events), endless.dropped) == (10_001, 0)


@pytest.mark.parametrize("keep", [0, -1, True, 2.5, "3"])
def test_a_bound_that_is_none_is_refused(keep: Any) -> None:
    with pytest.raises(RecorderError, match="positive number"):
        Memory(keep=keep)


def test_threads_lose_nothing_and_readers_see_it_whole() -> None:
    memory = Memory(keep=500)
    events = sample_events()
    done = threading.Event()
    seen: list[bool] = []

    def tells() -> None:
        for _ in range(100):
            for event in events:
                memory.on_event(event)

    def reads() -> None:
        while not done.is_set():
            seen.append(len(memory.events) <= 500)

    reader = threading.Thread(target=reads)
    tellers = [threading.Thread(target=tells) for _ in range(4)]
    for thread in (reader, *tellers):
        thread.start()
    for thread in tellers:
        thread.join(60)
    done.set()
    reader.join(60)
    assert memory.dropped == 400 * len(events) - 500
    assert all(seen)


def test_a_fork_in_the_middle_of_an_event_stops_nobody() -> None:
    memory = Memory()
    (event, *_) = sample_events()
    stop = threading.Event()

    def tells() -> None:
        while not stop.is_set():
            memory.on_event(event)

    teller = threading.Thread(target=tells)
    teller.start()
    try:
        for _ in range(20):
            assert in_fork(10.0, lambda: memory.on_event(event)) is None
    finally:
        stop.set()
        teller.join(60)


def test_what_is_dropped_is_given_back() -> None:
    memory = Memory()
    gone = weakref.ref(memory)
    del memory
    gc.collect()
    assert gone() is None
