"""A resume that fails: before its answer is on record the pause stays open, behind it nothing runs again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from complaints.people import DONE, NO, PAUSING, Till, answer_to, four_eyes, paused, pays, through_json
from file_ledger import on_file, select
from footprint_core import (
    Agent,
    AskPause,
    AssistantMessage,
    Batch,
    FootprintError,
    ForeignCheckpointError,
    LedgerBusyError,
    MemoryLedger,
    Pause,
    PendingQuestionError,
    ProviderError,
    Receipt,
    StaleDecisionError,
    ToolMessage,
    allow,
    ask,
    before_tool,
)
from footprint_core.clock import AnchoredClock
from footprint_core.events import TurnEnded
from footprint_core.facts import PauseAnswered, PauseClosed, ToolFinished, ToolIntended
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, reply
from story import Seen, answered, run


class Refusing(MemoryLedger):
    """Refuses one append, counted from when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 0

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.left -= 1
        if self.left == 0:
            raise LedgerBusyError("The ledger is busy; try again.")
        return super().append_inline(batch)


class Down:
    """A model that answers the first request, then raises until it is told to go on."""

    name = "down"

    def __init__(self, *said: Completed, streaming: bool) -> None:
        self.script = Scripted(said, streaming=streaming)
        self.streaming = streaming
        self.down = False

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        if self.down:
            if self.streaming:
                yield Chunk(text="I ")
            raise ConnectionError("unreachable")
        async for piece in self.script.reply(request):
            yield piece


def _well_formed(messages: Any) -> bool:
    """Whether every call among the messages has its result, and every result its call."""
    called = [one.id for m in messages if isinstance(m, AssistantMessage) for one in m.calls]
    return called == [m.call_id for m in messages if isinstance(m, ToolMessage)]


@pytest.mark.parametrize("append", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", PAUSING)
def test_c062_an_answer_is_used_up_exactly_when_it_is_on_record(name: str, append: int) -> None:
    till, ledger = Till(), Refusing()
    agent, model = till.agent(pays(500, name=name), DONE, reply(text="later"), ledger=ledger)

    async def story() -> None:
        pause = paused(await agent.run("go"))
        ledger.left = append
        # A tool that asked has run, so there is no intent of it to be made durable.
        if append > (4 if name == "person" else 5):
            answered(await agent.resume(pause.checkpoint, answer_to(pause)))
        else:
            with pytest.raises(LedgerBusyError) as caught:
                await agent.resume(pause.checkpoint, answer_to(pause))
            assert caught.value.run_id == pause.run_id
        ledger.left = 0
        facts = [entry.fact for entry in ledger.entries(pause.run_id)]
        on_record = any(isinstance(fact, PauseAnswered) for fact in facts)
        assert on_record == (append > 2)
        if on_record:
            with pytest.raises(StaleDecisionError):
                await agent.resume(pause.checkpoint, answer_to(pause))
        else:
            # It stays open, here and for everybody else, and the same answer is taken.
            with pytest.raises(PendingQuestionError):
                await agent.run("another")
            answered(await agent.resume(pause.checkpoint, answer_to(pause)))
        did = [one for one in till.did if one == (name, 500)]
        assert len(did) == (0 if append == 3 and name != "person" else 1)
        answered(await agent.run("another"))
        assert _well_formed(model.requests[-1].messages)

    run(story())


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", PAUSING)
def test_c062_a_model_that_fails_right_behind_an_answer_loses_nothing_of_it(
    name: str, streaming: bool
) -> None:
    till, ledger, seen = Till(), MemoryLedger(), Seen()
    model = Down(pays(500, name=name), reply(text="hello again"), streaming=streaming)
    builder = Agent.create(provider=model, model="m", name="till").tool(*till.tools())
    agent = builder.tool_middleware(four_eyes).ledger(ledger).watch(seen).build()

    async def story() -> None:
        pause = paused(await agent.run("go"))
        model.down = True
        with pytest.raises(ProviderError):
            await agent.resume(pause.checkpoint, answer_to(pause))
        # The call ran, once, on the answer, and all three are on record.
        facts = [entry.fact for entry in ledger.entries(pause.run_id)]
        for kind in (PauseAnswered, ToolIntended, ToolFinished):
            assert sum(isinstance(fact, kind) for fact in facts) == 1
        assert seen.of(TurnEnded)[-1].outcome == "failed"
        with pytest.raises(StaleDecisionError):
            await agent.resume(pause.checkpoint, answer_to(pause))
        assert till.did == [(name, 500)]
        model.down = False
        answered(await agent.run("are you there?"))

    run(story())
    assert [m.text for m in model.script.requests[-1].messages] == ["are you there?"]


@pytest.mark.parametrize("name", PAUSING)
def test_c062_of_two_who_answer_at_once_one_is_taken_and_the_other_is_told(name: str, tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    till = Till()
    first, _ = till.agent(pays(500, name=name), ledger=on_file(path))
    pause = paused(run(first.run("go")))
    agents = [till.agent(DONE, ledger=on_file(path))[0] for _ in range(4)]

    async def story() -> list[Any]:
        answers = [agent.resume(through_json(pause.checkpoint), answer_to(pause)) for agent in agents]
        return await asyncio.gather(*answers, return_exceptions=True)

    ends = run(story())
    assert sum(hasattr(end, "text") for end in ends) == 1
    assert sum(isinstance(end, StaleDecisionError) for end in ends) == 3
    assert till.did == [(name, 500)]


def _expiring(seconds: float) -> Any:
    return before_tool("four-eyes")(lambda c: ask("Pay so much?", expires_in=seconds))


def test_c063_a_question_that_expired_is_closed_on_record_once_and_holds_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    till, ledger = Till(), on_file(path)
    agent, _ = till.agent(pays(500), DONE, ledger=ledger, rules=[_expiring(0.001)])

    async def story() -> Pause:
        pause = paused(await agent.run("go"))
        assert select(path, "select open, answer from pauses") == [(1, None)]
        clock = AnchoredClock()
        while clock.now() <= pause.checkpoint["expires_us"]:
            pass
        for _ in range(3):
            with pytest.raises(StaleDecisionError):
                await agent.session().resume(pause.checkpoint, answer_to(pause))
        with pytest.raises(StaleDecisionError):
            await agent.resume(pause.checkpoint, answer_to(pause))
        # Nothing waits for it any more.
        answered(await agent.run("another"))
        return pause

    pause = run(story())
    assert till.did == []
    closed = [e.fact for e in ledger.entries(pause.run_id) if isinstance(e.fact, PauseClosed)]
    assert [(fact.pause_id, fact.reason) for fact in closed] == [(pause.pause_id, "expired")]
    assert select(path, "select open, answer from pauses") == [(0, None)]


def test_c063_an_answer_in_time_is_taken_and_a_question_nobody_asked_is_refused_by_name() -> None:
    till = Till()
    agent, _ = till.agent(pays(500), DONE, rules=[_expiring(3600)])

    async def story() -> None:
        pause = paused(await agent.run("go"))
        for unknown in ("pause_id", "run_id"):
            with pytest.raises(ForeignCheckpointError):
                await agent.resume({**pause.checkpoint, unknown: "f" * 32}, answer_to(pause))
        answered(await agent.resume(pause.checkpoint, answer_to(pause)))

    run(story())
    assert till.did == [("pay", 500)]


TRIPS = {
    "as it is": lambda checkpoint: checkpoint,
    "sorted": through_json,
    "reversed": lambda c: json.loads(json.dumps(dict(reversed(list(c.items()))))),
    "ascii": lambda c: json.loads(json.dumps(c, ensure_ascii=True)),
    "utf-8": lambda c: json.loads(json.dumps(c, ensure_ascii=False).encode()),
    "whole numbers": lambda c: json.loads(json.dumps(c), parse_float=lambda n: int(float(n))),
    "twice": lambda c: through_json(through_json(c)),
}


@pytest.mark.parametrize("trip", TRIPS.values(), ids=TRIPS)
@pytest.mark.parametrize("name", PAUSING)
def test_c067_every_pause_survives_a_trip_through_json(name: str, trip: Any) -> None:
    till, ledger = Till(), MemoryLedger()
    first, _ = till.agent(pays(500, 600, name=name), ledger=ledger)
    odd = {"user": "\u00e5da \u2028 \U0001f600", "limits": [1.0, 1e21, -0.0, None, True]}
    pause = paused(run(first.run("go \u2028", identity=odd)))
    second, _ = till.agent(DONE, ledger=ledger)

    async def story() -> None:
        again = paused(await second.resume(trip(pause.checkpoint), answer_to(pause)))
        answered(await second.resume(trip(again.checkpoint), answer_to(again)))

    run(story())
    assert till.did == [(name, 500), (name, 600)]


BAD: dict[str, Any] = {
    "no checkpoint": lambda pause: ({}, answer_to(pause)),
    "an edited one": lambda pause: ({**pause.checkpoint, "segment": 9}, answer_to(pause)),
    "a newer one": lambda pause: ({**pause.checkpoint, "version": 99}, answer_to(pause)),
    "no answer": lambda pause: (pause.checkpoint,),
    "an answer JSON cannot hold": lambda pause: (pause.checkpoint, object()),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("name", PAUSING)
def test_c067_a_resume_that_is_refused_leaves_the_pause_answerable_and_the_session_whole(
    name: str, bad: Any
) -> None:
    till, ledger = Till(), MemoryLedger()
    agent, model = till.agent(
        reply(text="hello"), pays(500, name=name), DONE, reply(text="later"), ledger=ledger
    )

    async def story() -> None:
        answered(await agent.run("hi"))
        pause = paused(await agent.follow_up("go"))
        entries = ledger.entries(pause.run_id)
        for _ in range(2):
            with pytest.raises(FootprintError):
                await agent.resume(*bad(pause))
        assert ledger.entries(pause.run_id) == entries
        answered(await agent.resume(pause.checkpoint, answer_to(pause)))
        answered(await agent.follow_up("thanks"))

    run(story())
    assert till.did == [(name, 500)]
    sent = model.requests[-1].messages
    assert [m.text for m in sent if m.role == "user"] == ["hi", "go", "thanks"]
    assert _well_formed(sent)


@pytest.mark.parametrize("answer", ["yes", "no"])
@pytest.mark.parametrize("behind", ["model", "ledger", "rule"])
def test_c067_a_resume_that_fails_later_leaves_the_conversation_before_its_turn(
    behind: str, answer: str
) -> None:
    till, ledger = Till(), Refusing()

    async def breaks(_: Any) -> Any:
        if behind == "rule":
            raise asyncio.CancelledError
        return allow()

    model = Down(reply(text="hello"), pays(500), reply(text="later"), streaming=False)
    builder = Agent.create(provider=model, model="m", name="till").tool(*till.tools())
    builder.tool_middleware(four_eyes, before_tool("breaks")(breaks))
    agent = builder.ledger(ledger).build()

    async def story() -> None:
        answered(await agent.run("hi"))
        pause = await agent.follow_up("go")
        assert isinstance(pause, AskPause)
        model.down = behind == "model"
        ledger.left = 3 if behind == "ledger" else 0
        if answer == "no" and behind == "rule":
            model.down = True
        with pytest.raises((FootprintError, asyncio.CancelledError)):
            await agent.resume(pause.checkpoint, answer_to(pause) if answer == "yes" else NO)
        model.down = False
        answered(await agent.follow_up("never mind"))

    run(story())
    assert [m.text for m in model.script.requests[-1].messages] == ["hi", "hello", "never mind"]
