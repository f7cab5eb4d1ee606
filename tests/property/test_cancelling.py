"""A run of three calls is cancelled at each of its awaits in turn: no tool without its row, one end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Generator
from typing import Any, TypeVar

import pytest

from footprint_core import (
    Agent,
    MemoryLedger,
    MessageContext,
    ToolCallContext,
    ToolResultContext,
    allow,
)
from footprint_core.events import TurnEnded
from footprint_core.facts import Decided, SegmentEnded, ToolIntended
from footprint_core.ledger import Batch, Receipt
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from story import Seen

T = TypeVar("T")
CALLS = 3


class Slow(MemoryLedger):
    """A ledger that always makes its caller wait."""

    def append_inline(self, batch: Batch, /) -> Receipt | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    async def append(self, batch: Batch, /) -> Receipt:
        await asyncio.sleep(0)
        return super().append_inline(batch)


class Model:
    """Streams each reply, with an await before each piece."""

    name = "slow"
    streaming = True

    def __init__(self, *, parallel: bool) -> None:
        calls = [call(f"c{i}", "act", {"n": i}) for i in range(CALLS)]
        said = [reply(calls=calls)] if parallel else [reply(calls=[one]) for one in calls]
        self._said = [*said, reply(text="done")]

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        await asyncio.sleep(0)
        yield Chunk(text="d")
        await asyncio.sleep(0)
        yield self._said.pop(0)


class Rule:
    """Awaits at every moment."""

    name = "slow"

    async def on_message(self, message: MessageContext) -> Any:
        await asyncio.sleep(0)
        return allow()

    async def on_tool_call(self, call: ToolCallContext) -> Any:
        await asyncio.sleep(0)
        return allow()

    async def on_tool_result(self, call: ToolResultContext) -> Any:
        await asyncio.sleep(0)
        return allow()


class Cancelling(Awaitable[T]):
    """Awaits something, and cancels its own task at the k-th time it is suspended."""

    def __init__(self, work: Awaitable[T], at: int) -> None:
        self._work = work
        self._at = at
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, T]:
        steps: Any = self._work.__await__()
        thrown: BaseException | None = None
        sent: Any = None
        while True:
            try:
                waited = steps.send(sent) if thrown is None else steps.throw(thrown)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            self.suspensions += 1
            if self.suspensions == self._at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            thrown, sent = None, None
            try:
                sent = yield waited
            except BaseException as error:  # noqa: BLE001 - handed on to what is awaited
                thrown = error


async def play(at: int, *, parallel: bool) -> int:
    """Cancel at one await; how often the run was suspended."""
    ledger, seen, rule, entered = Slow(), Seen(), Rule(), list[int]()

    async def act(n: int) -> int:
        entered.append(n)
        held = ledger.entries(str(agent.last_run_id))
        intents = [entry.fact for entry in held if isinstance(entry.fact, ToolIntended)]
        rows = [entry.fact for entry in held if isinstance(entry.fact, Decided)]
        assert f"c{n}" in [fact.call_id for fact in intents], "a body was entered without its intent"
        assert f"c{n}" in [row.call_id for row in rows], "a body was entered without its row"
        await asyncio.sleep(0)
        return n

    builder = Agent.create(provider=Model(parallel=parallel), model="m", name="a", parallel_tools=parallel)
    builder.tool(act).ledger(ledger).watch(seen)
    agent = builder.act(input=[rule], before_tool=[rule], output=[rule]).build()
    work = Cancelling(agent.run("go"), at)

    async def turn() -> Any:
        return await work

    task = asyncio.ensure_future(turn())
    await asyncio.wait([task], timeout=20)
    assert task.done()
    cancelled = work.suspensions >= at
    assert task.cancelled() is cancelled
    entries = ledger.entries(str(agent.last_run_id))
    ends = [entry.fact for entry in entries if isinstance(entry.fact, SegmentEnded)]
    told = seen.of(TurnEnded)
    assert [entry.position for entry in entries] == list(range(1, len(entries) + 1))
    assert len(ends) == len(told) == 1
    assert seen.types[-1] == "agent.turn_end"
    assert isinstance(entries[-1].fact, SegmentEnded)
    if not cancelled:
        assert ends[0].outcome == "answered"
        assert sorted(entered) == list(range(CALLS))
    elif ends[0].outcome != "answered":
        assert ends[0].outcome == told[0].outcome == "cancelled"
    # The agent goes on as if the turn had not been.
    assert agent.last_run_id is not None
    return work.suspensions


@pytest.mark.parametrize("parallel", [False, True])
def test_at_whichever_await_a_run_is_cancelled_no_tool_ran_without_its_row_and_there_is_one_end(
    parallel: bool,
) -> None:
    async def every() -> int:
        at = 1
        while await play(at, parallel=parallel) >= at:
            at += 1
        return at

    # A run that is never suspended would prove nothing.
    assert asyncio.run(every()) > 15
