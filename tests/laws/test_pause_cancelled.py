"""A pause that is on record is in somebody's hands, also when its caller was cancelled meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from footprint_core import (
    AskPause,
    HumanPause,
    MemoryLedger,
    PendingQuestionError,
    ToolCallContext,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    tool,
)
from footprint_core.facts import PauseOpened, SegmentEnded
from footprint_core.ledger import Batch, Receipt
from footprint_core.providers import call, reply
from story import answered, describe, run


class Waiting(MemoryLedger):
    """A ledger that makes its caller wait for the batch that opens a pause."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()
        self.free = asyncio.Event()

    def append_inline(self, batch: Batch, /) -> Receipt | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return None if batch.pause is not None else super().append_inline(batch)

    async def append(self, batch: Batch, /) -> Receipt:
        self.waits.set()
        await self.free.wait()
        return super().append_inline(batch)


@pytest.mark.parametrize("kind", [AskPause, HumanPause])
def test_a_pause_whose_caller_was_cancelled_while_it_was_filed_stays_open_in_its_session(kind: Any) -> None:
    @before_tool("gate")
    def gate(call: ToolCallContext) -> Any:
        return ask("?") if kind is AskPause else allow()

    @tool(inline=True)
    def act() -> str:
        if kind is HumanPause:
            ask_human("which?")
        return "done"

    async def go() -> None:
        ledger = Waiting()
        replies = [reply(calls=[call("c", "act", {})]), reply(text="ok")]
        builder, _ = describe(replies, act, ledger=ledger, act={"before_tool": [gate]})
        agent = builder.build()
        turn = asyncio.ensure_future(agent.run("go"))
        await ledger.waits.wait()
        turn.cancel()
        ledger.free.set()
        with pytest.raises(asyncio.CancelledError):
            await turn
        facts = [entry.fact for entry in ledger.entries(str(agent.last_run_id))]
        assert sum(isinstance(fact, PauseOpened) for fact in facts) == 1
        assert [fact.outcome for fact in facts if isinstance(fact, SegmentEnded)] == ["paused"]
        with pytest.raises(PendingQuestionError):
            await agent.run("another")
        pause = agent.abandon_pause()
        assert isinstance(pause, AskPause | HumanPause)
        assert isinstance(pause, kind)
        given: Any = check_in_approved(by="dana") if kind is AskPause else "this one"
        assert answered(await agent.resume(pause.checkpoint, given)).text == "ok"

    run(go())
