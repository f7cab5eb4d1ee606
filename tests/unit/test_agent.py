"""An agent closes what it holds, once, within a bound, and keeps nothing alive."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import pytest

from footprint_core import Agent, BuilderError, MemoryLedger
from footprint_core.providers import Scripted, reply
from story import Seen, describe, run


class Closes(Seen):
    """A recorder that says when it was closed."""

    def __init__(self, id: str = "closes") -> None:
        super().__init__(id)
        self.closed: list[float] = []

    def flush(self, timeout: float, /) -> bool:
        return True

    def close(self, timeout: float, /) -> None:
        self.closed.append(timeout)


class ClosingLedger(MemoryLedger):
    """A ledger that counts how often it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


def test_leaving_an_agent_closes_its_recorders_and_its_ledger_once() -> None:
    recorder, ledger = Closes(), ClosingLedger()

    async def story() -> None:
        async with describe([reply(text="ok")], watch=[recorder], ledger=ledger)[0].build() as agent:
            await agent.run("hi")
        await agent.close()

    run(story())
    assert len(recorder.closed) == 1
    assert 0 < recorder.closed[0] <= 3
    assert ledger.closed == 1


def test_what_another_agent_still_holds_is_left_open() -> None:
    recorder, ledger = Closes(), ClosingLedger()
    one = describe([], watch=[recorder], ledger=ledger)[0].build()
    two = describe([], watch=[recorder], ledger=ledger)[0].build()
    run(one.close())
    assert (recorder.closed, ledger.closed) == ([], 0)
    run(two.close())
    assert (len(recorder.closed), ledger.closed) == (1, 1)


def test_an_agent_that_is_dropped_keeps_nothing_alive() -> None:
    ledger = ClosingLedger()
    agent = describe([reply(text="ok")], ledger=ledger)[0].build()
    run(agent.run("hi"))
    gone = weakref.ref(ledger)
    del agent, ledger
    gc.collect()
    assert gone() is None


def test_a_recorder_that_ignores_its_bound_does_not_hold_the_agent_open() -> None:
    leave = threading.Event()

    class Hangs(Closes):
        def close(self, timeout: float, /) -> None:
            leave.wait(30)

    ledger = ClosingLedger()
    agent = describe([], watch=[Hangs()], ledger=ledger)[0].build()
    began = time.monotonic()
    run(agent.close(timeout=0.05))
    leave.set()
    assert time.monotonic() - began < 10
    assert ledger.closed == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"provider": None},
        {"provider": Scripted},
        {"name": 3},
        {"model": None},
        {"keep_last_tool_results": -1},
        {"keep_last_tool_results": "2"},
    ],
)
def test_an_agent_described_by_what_it_cannot_use_is_refused(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"provider": Scripted([]), "model": "m", "name": "n", **wrong}
    with pytest.raises(BuilderError):
        Agent.create(**given)


@pytest.mark.parametrize("door", ["system", "ledger", "tool"])
@pytest.mark.parametrize("wrong", [None, 5, ["x"], int])
def test_a_door_refuses_what_it_cannot_use(door: str, wrong: Any) -> None:
    builder: Any = Agent.create(provider=Scripted([]), model="m", name="n")
    with pytest.raises(BuilderError):
        getattr(builder, door)(wrong)
