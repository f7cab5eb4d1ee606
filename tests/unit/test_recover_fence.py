"""The segment of a dead process is closed, the next one begins behind it, and one process goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from file_ledger import on_file, select
from footprint_core import (
    Agent,
    Answer,
    FootprintError,
    Ledger,
    LedgerWriteError,
    MemoryLedger,
    RunTakenOverError,
    ToolContext,
    tool,
)
from footprint_core.events import AgentConfigured, ToolCallEnded, ToolCallStarted, TurnEnded
from footprint_core.facts import (
    CallTaken,
    ModelAsked,
    RunConfigured,
    RunRecovered,
    SegmentEnded,
    ToolIntended,
    TraceRef,
)
from footprint_core.ledger import Batch, Entry, Receipt, RunStanding
from footprint_core.providers import call, reply
from prefixes import cut_behind, facts_of_run
from story import Seen, answered, describe, run

PAYS = (reply(calls=[call("1", "pay", {"amount": 5})]), reply(text="ok"))


class Traced(Seen):
    """A watcher that gives each segment a span of its own."""

    def correlation(self, run_id: str, segment: int, /) -> TraceRef:
        return TraceRef(trace_id=f"{segment}" * 32, span_id=f"{segment}" * 16)


class Till:
    """A tool that pays, idempotent, and agents over it."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    def agent(self, ledger: Ledger, behind: int = 0, *watchers: Any) -> Agent:
        @tool(idempotent=True)
        async def pay(amount: int, context: ToolContext) -> str:
            self.paid.append(context.idempotency_key)
            return f"paid {amount}"

        builder, _ = describe(PAYS[behind:], pay, ledger=ledger, watch=watchers)
        return builder.build()


def died(kind: type[Any] = ToolIntended) -> tuple[MemoryLedger, str]:
    whole = MemoryLedger()
    run_id = answered(run(Till().agent(whole).run("pay"))).run_id
    return cut_behind(whole, run_id, kind), run_id


def test_the_segment_that_died_ends_as_abandoned_and_the_next_one_begins_alone(tmp_path: Path) -> None:
    class Keeping(MemoryLedger):
        """Keeps the batches."""

        def __init__(self) -> None:
            super().__init__()
            self.batches: list[Batch] = []

        def append_inline(self, batch: Batch, /) -> Receipt:
            self.batches.append(batch)
            return super().append_inline(batch)

    ledger = Keeping()
    shorter, run_id = died(ModelAsked)
    for entry in shorter.entries(run_id):
        ledger.append_inline(Batch(run_id=run_id, segment=1, entries=(entry,)))
    ledger.batches.clear()
    run(Till().agent(ledger).recover(run_id))
    closing, opening = ledger.batches[:2]
    (ended,), (configured,) = closing.entries, opening.entries
    assert isinstance(ended.fact, SegmentEnded)
    assert (ended.fact.outcome, closing.segment, ended.fact.iterations) == ("abandoned", 1, 1)
    assert isinstance(configured.fact, RunConfigured)
    assert (configured.fact.resumed, opening.segment) == (True, 2)
    third = ledger.batches[2].entries[0].fact
    assert third == RunRecovered(finished=0, in_doubt=0)


def test_watchers_are_told_of_both_segments_and_of_each_call_once_more_only_when_it_ends() -> None:
    ledger, run_id = died(CallTaken)
    seen = Traced()
    run(Till().agent(ledger, 1, seen).recover(run_id))
    first, second = seen.events[:2]
    assert isinstance(first, TurnEnded)
    assert (first.outcome, first.segment) == ("abandoned", 1)
    assert isinstance(second, AgentConfigured)
    assert (second.segment, second.resumed) == (2, True)
    assert not seen.of(ToolCallStarted)
    assert len(seen.of(ToolCallEnded)) == 1
    assert [event.outcome for event in seen.of(TurnEnded)] == ["abandoned", "answered"]


def test_the_next_segment_is_linked_to_the_span_of_the_one_that_died(tmp_path: Path) -> None:
    path = tmp_path / "l.db"

    class GoneError(Exception):
        """Stands for a process that is gone."""

    class Breaks:
        """A ledger that takes nothing any more from the intent on."""

        def __init__(self, inner: Ledger) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def append_inline(self, batch: Batch, /) -> Receipt | None:
            if any(isinstance(entry.fact, ToolIntended) for entry in batch.entries):
                raise GoneError
            return self.inner.append_inline(batch)

    ledger = on_file(path)
    breaks: Any = Breaks(ledger)
    agent = Till().agent(breaks, 0, Traced())
    with pytest.raises(LedgerWriteError):
        run(agent.run("pay"))
    run_id = agent.last_run_id or ""
    seen = Traced()
    run(Till().agent(ledger, 0, seen).recover(run_id))
    (configured,) = seen.of(AgentConfigured)
    assert configured.resumed_from == TraceRef(trace_id="1" * 32, span_id="1" * 16)
    closed = select(path, "SELECT segment, trace_id FROM facts WHERE kind = 'segment.ended' ORDER BY id")
    assert closed == [(1, "1" * 32), (2, "2" * 32)]
    run(ledger.close())


class Fails(MemoryLedger):
    """A ledger that takes so many appends and no more, as if the process had died there."""

    def __init__(self, shorter: MemoryLedger, run_id: str) -> None:
        super().__init__()
        self.left = 10**6
        segment = 0
        for entry in shorter.entries(run_id):
            segment += isinstance(entry.fact, RunConfigured)
            self.append_inline(Batch(run_id=run_id, segment=segment, entries=(entry,)))

    def append_inline(self, batch: Batch, /) -> Receipt:
        if self.left == 0:
            raise LedgerWriteError("The process is gone.")
        self.left -= 1
        return super().append_inline(batch)


@pytest.mark.parametrize("kind", [ModelAsked, CallTaken, ToolIntended])
def test_a_recovery_that_died_between_any_two_commits_is_recovered_again(kind: type[Any]) -> None:
    shorter, run_id = died(kind)
    for commits in range(12):
        ledger, till = Fails(shorter, run_id), Till()
        ledger.left = commits
        replied = 1 if kind is not ModelAsked else 0
        try:
            out: Any = run(till.agent(ledger, replied).recover(run_id))
        except FootprintError:
            ledger.left = 10**6
            facts = facts_of_run(ledger, run_id)
            replies = sum(type(fact).__name__ == "ModelReplied" for fact in facts)
            out = run(till.agent(ledger, replies).recover(run_id))
        assert answered(out).text == "ok"
        # One key, whoever tried: an attempt more where its outcome could not be kept.
        assert len(set(till.paid)) == 1
        ends = [f.outcome for f in facts_of_run(ledger, run_id) if isinstance(f, SegmentEnded)]
        opened = sum(isinstance(f, RunConfigured) for f in facts_of_run(ledger, run_id))
        assert ends == ["abandoned"] * (opened - 1) + ["answered"]
        if commits >= 8:
            return
    pytest.fail("No recovery came to its end.")


class Waits:
    """A ledger that tells two processes the same, and lets both go on at once."""

    def __init__(self, inner: Ledger, both: asyncio.Barrier) -> None:
        self.inner, self.both = inner, both

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def run_standing(self, run_id: str, /) -> RunStanding | None:
        standing = await self.inner.run_standing(run_id)
        await self.both.wait()
        return standing


@pytest.mark.parametrize("closed", [False, True])
def test_of_two_that_recover_one_run_at_once_one_acts(tmp_path: Path, closed: bool) -> None:
    shorter, run_id = died()
    path = tmp_path / "l.db"

    async def play() -> None:
        for_both = on_file(path)
        for entry in shorter.entries(run_id):
            await for_both.append(Batch(run_id=run_id, segment=1, entries=(entry,)))
        if closed:
            # A recovery died behind its first commit.
            end = SegmentEnded(
                outcome="abandoned", iterations=1, input_tokens=0, output_tokens=0, duration_us=1
            )
            at = len(shorter.entries(run_id)) + 1
            await for_both.append(
                Batch(run_id=run_id, segment=1, entries=(Entry(position=at, time=1, fact=end),))
            )
        both = asyncio.Barrier(2)
        tills = Till(), Till()
        ledgers = on_file(path), on_file(path)
        waiting: Any = [Waits(ledger, both) for ledger in ledgers]
        agents = [till.agent(ledger, 1) for till, ledger in zip(tills, waiting, strict=True)]
        ends = await asyncio.gather(*(agent.recover(run_id) for agent in agents), return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["Answer", "RunTakenOverError"]
        for outcome, till in zip(ends, tills, strict=True):
            assert bool(till.paid) is isinstance(outcome, Answer)
        assert len(tills[0].paid + tills[1].paid) == 1
        for ledger in (for_both, *ledgers):
            await ledger.close()

    asyncio.run(play())


def test_a_process_that_still_ran_stops_at_its_next_step() -> None:
    async def play() -> None:
        ledger = MemoryLedger()
        entered, go_on = asyncio.Event(), asyncio.Event()

        def agent(behind: int, body: Callable[[], Any]) -> Agent:
            @tool
            async def pay(amount: int) -> str:
                await body()
                return f"paid {amount}"

            return describe(PAYS[behind:], pay, ledger=ledger)[0].build()

        async def slow() -> None:
            entered.set()
            await go_on.wait()

        first = agent(0, slow)
        running = asyncio.ensure_future(first.run("pay"))
        await entered.wait()
        run_id = first.last_run_id or ""

        async def never() -> None:
            raise AssertionError

        out = answered(await agent(1, never).recover(run_id))
        go_on.set()
        with pytest.raises(RunTakenOverError):
            await running
        assert out.text == "ok"

    run(play())


def test_a_run_that_is_written_while_it_is_read_is_not_recovered() -> None:
    shorter, run_id = died(ModelAsked)

    class Behind(MemoryLedger):
        """Gives the entries as they were a moment ago."""

        def entries(self, run_id: str, /) -> tuple[Entry, ...]:
            return super().entries(run_id)[:-1]

    ledger = Behind()
    for entry in shorter.entries(run_id):
        ledger.append_inline(Batch(run_id=run_id, segment=1, entries=(entry,)))
    with pytest.raises(RunTakenOverError, match="at this moment"):
        run(Till().agent(ledger).recover(run_id))
