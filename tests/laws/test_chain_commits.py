"""Nothing acts on a decision that is not on record, and a commit that has begun is finished."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    Batch,
    Credential,
    CredentialRequest,
    LedgerWriteError,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    Receipt,
    ToolCallContext,
    ToolContext,
    ToolResultContext,
    allow,
    ask,
    check_in_approved,
    deny,
    tool,
)
from footprint_core.events import DecisionFiled, FatalError, TurnEnded
from footprint_core.facts import Decided, SegmentEnded
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, call, reply
from story import Seen, answered, run

YES = check_in_approved(by="dana")


class Keeping(MemoryLedger):
    """A ledger that counts its appends, refuses the one it is told to, and may make its caller wait.

    The one at which it is `held` waits to be let go.
    """

    def __init__(self, *, waits: bool = False, refuses: int = 0, holds: int = 0) -> None:
        super().__init__()
        self.appends = 0
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self._waits, self._refuses, self._holds = waits or holds > 0, refuses, holds

    def append_inline(self, batch: Batch, /) -> Receipt | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return None if self._waits else self._append(batch)

    async def append(self, batch: Batch, /) -> Receipt:
        await asyncio.sleep(0)
        if self.appends + 1 == self._holds:
            self.begun.set()
            await self.go_on.wait()
        return self._append(batch)

    def _append(self, batch: Batch) -> Receipt:
        self.appends += 1
        if self.appends == self._refuses:
            raise LedgerWriteError("The disk is full.")
        return super().append_inline(batch)

    def facts(self, agent: Agent, kind: type[Any]) -> list[Any]:
        return [entry.fact for entry in self.entries(agent.last_run_id or "") if isinstance(entry.fact, kind)]


class World:
    """A rule at every moment, and whoever acts on what it decided.

    Attributes:
        acts: What acted, and how many appends there were by then.
        rash: What acted on a decision that was not on record.
    """

    name = "world"

    def __init__(
        self, ledger: Keeping, verbs: dict[str, Any] | None = None, *, needs: str | None = "bank"
    ) -> None:
        self.needs = needs
        self.ledger, self.seen, self.verbs = ledger, Seen(), verbs or {}
        self.decided: list[str] = []
        self.acts: list[tuple[str, int]] = []
        self.rash: list[str] = []
        self.persons = 0
        self._said = [reply(calls=[call("c1", "pay", {})]), reply(text="done")]
        self.agent = self._built()

    def _decide(self, moment: str) -> Any:
        self.decided.append(moment)
        return self.verbs.get(moment, allow())

    def act(self, what: str) -> None:
        """Act; whoever acts on what is not on record is kept, for a hook's error would be swallowed."""
        rows = self.ledger.decisions(self.agent.last_run_id or "")
        by_rules = [row.moment for row in rows if row.answer != "person"]
        if by_rules != self.decided or len(rows) - len(by_rules) != self.persons:
            self.rash.append(what)
        self.acts.append((what, self.ledger.appends))

    def on_message(self, message: MessageContext) -> Any:
        return self._decide(message.phase)

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        return self._decide("before-tool")

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        return self._decide("after-tool")

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self.act(f"model {request.messages[-1].text}")
        return Scripted([self._said.pop(0)]).reply(request)

    def credential(self, request: CredentialRequest) -> Credential:
        self.act("credential")
        return Credential(kind="bearer", secret="s3cret-token")

    def _built(self) -> Agent:
        @tool(needs=self.needs, inline=True)
        def pay(context: ToolContext) -> str:
            self.act("tool")
            return "paid"

        builder = Agent.create(provider=self, model="m", name="a").ledger(self.ledger).watch(self.seen)
        builder.tool(pay).credentials(self).tool_middleware(self).message_middleware(self)
        return builder.build()

    async def play(self) -> None:
        """One turn, through its pause."""
        try:
            outcome = await self.agent.run("go")
            if isinstance(outcome, AskPause):
                self.act("pause")
                self.persons = 1
                outcome = await self.agent.resume(outcome.checkpoint, YES)
            assert isinstance(outcome, Answer)
            self.act("answer")
        except MessageDeniedError:
            self.act("refusal")


VERBS: dict[str, dict[str, Any]] = {
    "allowed": {},
    "changed": {
        "input": allow("please", why="x"),
        "before-tool": allow({}, why="x"),
        "after-tool": allow("much", why="x"),
        "output": allow("well", why="x"),
    },
    "input denied": {"input": deny("no")},
    "call denied": {"before-tool": deny("no")},
    "call asked about": {"before-tool": ask("may I?")},
    "result denied": {"after-tool": deny("no")},
    "output denied": {"output": deny("no")},
}

WAITING = pytest.mark.parametrize("waits", [False, True], ids=["at once", "waiting"])


@WAITING
@pytest.mark.parametrize("needs", ["bank", None])
@pytest.mark.parametrize("verbs", VERBS)
def test_whoever_acts_finds_every_decision_on_record(verbs: str, needs: str | None, waits: bool) -> None:
    world = World(Keeping(waits=waits), VERBS[verbs], needs=needs)
    run(world.play())
    assert world.rash == []
    assert world.acts[-1][0] in {"answer", "refusal"}
    assert world.decided
    assert [
        event.moment for event in world.seen.of(DecisionFiled) if event.answer != "person"
    ] == world.decided


@WAITING
@pytest.mark.parametrize("verbs", VERBS)
def test_when_an_append_fails_nothing_acts_on_it_and_the_segment_ends_failed(verbs: str, waits: bool) -> None:
    whole = World(Keeping(waits=waits), VERBS[verbs])
    run(whole.play())
    assert whole.ledger.appends > 1
    for refused in range(1, whole.ledger.appends + 1):
        world = World(Keeping(waits=waits, refuses=refused), VERBS[verbs])
        with pytest.raises(LedgerWriteError) as failed:
            run(world.play())
        assert world.acts == [act for act in whole.acts if act[1] < refused]
        # Nothing is tried again, and nobody is told what is not on record.
        assert world.ledger.appends == refused
        assert len(world.seen.of(DecisionFiled)) == len(world.ledger.facts(world.agent, Decided))
        assert failed.value.run_id == world.agent.last_run_id
        end = world.seen.of(TurnEnded)[-1]
        assert (end.outcome, end.recorded) == ("failed", False)
        assert [event.recorded for event in world.seen.of(FatalError)] == [False]
        assert world.seen.events[-1] is end


async def _cancelled_at(world: World, times: int) -> BaseException | None:
    """Cancel a turn while an append is held, then let it go on; what its caller got."""
    turn = asyncio.ensure_future(world.play())
    await world.ledger.begun.wait()
    published = len(world.seen.events)
    for _ in range(times):
        turn.cancel()
        for _ in range(3):
            await asyncio.sleep(0)
        assert not turn.done()
        assert len(world.seen.events) == published
    world.ledger.go_on.set()
    await asyncio.wait({turn})
    return asyncio.CancelledError() if turn.cancelled() else turn.exception()


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("verbs", ["allowed", "call asked about", "output denied"])
def test_a_commit_that_has_begun_is_finished_and_published_before_a_cancellation_is_delivered(
    verbs: str, times: int
) -> None:
    whole = World(Keeping(waits=True), VERBS[verbs])
    run(whole.play())
    ends_of_whole = len(whole.ledger.facts(whole.agent, SegmentEnded))
    for held in range(1, whole.ledger.appends + 1):
        world = World(Keeping(holds=held), VERBS[verbs])
        assert isinstance(run(_cancelled_at(world, times)), asyncio.CancelledError)
        # What was held is on record, published, and nothing acted on it.
        assert world.acts == [act for act in whole.acts if act[1] < held]
        rows = world.ledger.decisions(world.agent.last_run_id or "")
        assert [event.row for event in world.seen.of(DecisionFiled)] == [row.position for row in rows]
        ends = world.ledger.facts(world.agent, SegmentEnded)
        assert [end.outcome for end in ends] == [end.outcome for end in world.seen.of(TurnEnded)]
        assert len(ends) in {1, ends_of_whole}
        assert isinstance(world.ledger.entries(world.agent.last_run_id or "")[-1].fact, SegmentEnded)
        last_of_a_segment = world.ledger.appends == held
        assert (ends[-1].outcome == "cancelled") is not last_of_a_segment


def test_the_end_of_a_cancelled_run_is_committed_under_the_same_shield() -> None:
    entered = asyncio.Event()

    class Hangs(World):
        def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
            return self._hang()

        async def _hang(self) -> AsyncIterator[Chunk | Completed]:
            entered.set()
            await asyncio.Event().wait()
            yield reply(text="never")

    # The first append opens the segment, the second is of the model call, the third of the end.
    world = Hangs(Keeping(holds=3))

    async def story() -> None:
        turn = asyncio.ensure_future(world.play())
        await entered.wait()
        turn.cancel()
        await world.ledger.begun.wait()
        for _ in range(3):
            turn.cancel()
            await asyncio.sleep(0)
        assert not turn.done()
        world.ledger.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await turn

    run(story())
    assert [end.outcome for end in world.ledger.facts(world.agent, SegmentEnded)] == ["cancelled"]
    assert [end.outcome for end in world.seen.of(TurnEnded)] == ["cancelled"]


def test_an_answer_whose_commit_was_cancelled_is_folded_and_followed_up_on() -> None:
    whole = World(Keeping(waits=True))
    run(whole.play())
    world = World(Keeping(holds=whole.ledger.appends))

    async def story() -> Answer:
        assert isinstance(await _cancelled_at(world, 1), asyncio.CancelledError)
        world.decided.clear()
        world._said.append(reply(text="again"))
        return answered(await world.agent.follow_up("and?"))

    assert run(story()).text == "again"


def test_a_resume_that_was_cancelled_before_it_began_leaves_the_pause_answerable() -> None:
    world = World(Keeping(), VERBS["call asked about"])

    async def story() -> None:
        pause = await world.agent.run("go")
        assert isinstance(pause, AskPause)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        appends, told = world.ledger.appends, len(world.seen.events)
        with pytest.raises(asyncio.CancelledError):
            await world.agent.resume(pause.checkpoint, YES)
        assert (world.ledger.appends, len(world.seen.events)) == (appends, told)
        answered(await world.agent.resume(pause.checkpoint, YES))

    run(story())
