"""One conversation runs one turn at a time; several conversations of one agent run at the same time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    MemoryLedger,
    MessageContext,
    NoConversationError,
    PendingQuestionError,
    RunInFlightError,
    Session,
    ToolCallContext,
    ToolContext,
    allow,
    ask,
    check_in_approved,
    deny,
)
from footprint_core.events import TurnEnded
from footprint_core.ledger import Batch, Receipt
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from story import Seen, answered, describe, run

YES = check_in_approved(by="dana")
DOORS: dict[str, Callable[[Any, Any], Any]] = {
    "run": lambda session, _: session.run("too soon"),
    "follow_up": lambda session, _: session.follow_up("too soon"),
    "run_typed": lambda session, _: session.run_typed("too soon"),
    "resume": lambda session, pause: session.resume(pause.checkpoint, YES),
}


class Waits:
    """A tool that waits to be let go, under a rule that asks about its first call."""

    name = "waits"

    def __init__(self) -> None:
        self.entered, self.let_go = asyncio.Event(), asyncio.Event()
        self.asked = 0

    async def wait(self) -> str:
        self.entered.set()
        await self.let_go.wait()
        return "waited"

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        self.asked += 1
        return ask("may I?") if self.asked == 1 else allow()


async def _busy(work: Awaitable[Any], waits: Waits) -> asyncio.Future[Any]:
    going: asyncio.Future[Any] = asyncio.ensure_future(work)
    await waits.entered.wait()
    return going


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("going", ["run", "follow_up", "resume"])
def test_a_second_turn_of_a_conversation_is_refused_and_disturbs_nothing(going: str, door: str) -> None:
    waits, seen, ledger = Waits(), Seen(), MemoryLedger()
    calls = reply(calls=[call("c1", "wait", {})])
    replies = [calls, reply(text="first"), calls, reply(text="second"), reply(text="third")]
    builder, model = describe(replies, waits.wait, watch=[seen], ledger=ledger)
    agent = builder.tool_middleware(waits).build()

    def snapshot() -> Any:
        run_id = agent.last_run_id or ""
        return [*seen.events], run_id, len(model.requests), ledger.entries(run_id)

    async def story() -> None:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        if going == "resume":
            first = await _busy(agent.resume(pause.checkpoint, YES), waits)
        else:
            waits.let_go.set()
            await agent.resume(pause.checkpoint, YES)
            waits.entered.clear()
            waits.let_go.clear()
            first = await _busy(getattr(agent, going)("again"), waits)
        before = snapshot()
        for _ in range(2):
            with pytest.raises(RunInFlightError):
                await DOORS[door](agent, pause)
        assert snapshot() == before
        waits.let_go.set()
        answered(await first)
        answered(await agent.follow_up("and then?"))

    run(story())
    outcomes = [event.outcome for event in seen.of(TurnEnded)]
    assert outcomes == ["paused", *["answered"] * (2 if going == "resume" else 3)]
    asked = [message.text for message in model.requests[-1].messages if message.role == "user"]
    assert "too soon" not in asked
    assert asked[-1] == "and then?"


@pytest.mark.parametrize("end", ["answered", "denied", "cancelled", "failed"])
def test_a_conversation_takes_its_next_turn_however_the_one_before_it_ended(end: str) -> None:
    class Ends:
        name = "ends"

        async def on_message(self, message: MessageContext) -> Any:
            if message.phase == "output" or message.content == "next":
                return allow()
            if end == "cancelled":
                raise asyncio.CancelledError
            if end == "failed":
                raise KeyboardInterrupt
            return deny("no") if end == "denied" else allow()

    builder, _ = describe([reply(text="first")] * 2)
    agent = builder.message_middleware(Ends()).build()

    async def story() -> Answer:
        try:
            await agent.run("go")
        except BaseException:  # noqa: BLE001 - however it ended
            assert end != "answered"
        return answered(await agent.run("next"))

    assert run(story()).text == "first"


class Interleaved:
    """A model, a rule and a tool that let every other session go on before they answer."""

    name = "interleaved"

    def __init__(self) -> None:
        self.requests: defaultdict[str, list[list[str]]] = defaultdict(list)

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        texts = [message.text for message in request.messages]
        await asyncio.sleep(0)
        self.requests[texts[0]].append(texts)
        if texts[-1].startswith("ran"):
            yield reply(text=f"answer to {texts[-2] or texts[0]} by {texts[-1]}")
        else:
            # The ids of all sessions are the same ones, on purpose.
            yield reply(calls=[call("c1", "act", {"who": texts[0], "turn": texts[-1]})])

    async def on_message(self, message: MessageContext) -> Any:
        await asyncio.sleep(0)
        return allow()

    async def on_tool_call(self, asked: ToolCallContext) -> Any:
        await asyncio.sleep(0)
        assert asked.identity == asked.args["who"]
        assert asked.history[0].text == asked.args["who"]
        return ask("may I?") if asked.args["turn"] == "ask me" else allow()

    async def act(self, who: str, turn: str, context: ToolContext) -> str:
        """Act."""
        await asyncio.sleep(0)
        assert context.identity == who
        return f"ran for {who}: {turn}"


class Runs(MemoryLedger):
    """A ledger that makes its caller wait, and knows its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def append_inline(self, batch: Batch, /) -> Receipt | None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return None

    async def append(self, batch: Batch, /) -> Receipt:
        await asyncio.sleep(0)
        self.runs = list(dict.fromkeys((*self.runs, batch.run_id)))
        return super().append_inline(batch)


async def _converse(session: Agent | Session, who: str) -> list[Answer]:
    first = answered(await session.run(who, identity=who))
    paused = await session.follow_up("ask me", identity=who)
    assert isinstance(paused, AskPause)
    second = answered(await session.resume(paused.checkpoint, YES))
    return [first, second, answered(await session.follow_up("and?", identity=who))]


def test_conversations_run_at_the_same_time_without_touching_each_other() -> None:
    world, seen, ledger = Interleaved(), Seen(), Runs()
    builder = Agent.create(provider=world, model="m", name="a").tool(world.act).ledger(ledger).watch(seen)
    agent = builder.tool_middleware(world).message_middleware(world).build()
    names = [f"p{n}" for n in range(5)]

    async def story() -> list[list[Answer]]:
        sessions: list[Agent | Session] = [
            agent,
            *[agent.session(conversation_id=name) for name in names[1:]],
        ]
        pairs = zip(sessions, names, strict=True)
        return await asyncio.gather(*[_converse(session, name) for session, name in pairs])

    every = run(story())
    alone = run(_converse(builder_alone().build(), "p0"))
    for name, answers in zip(names, every, strict=True):
        assert [answer.text for answer in answers] == [answer.text.replace("p0", name) for answer in alone]
        longest = max(world.requests[name], key=len)
        assert len(longest) == 11
        assert {text for text in longest if text.startswith("p")} == {name}
    # Fifteen runs in one ledger, each whole, and told to the one watcher in its own order.
    assert len(ledger.runs) == 3 * len(names)
    for run_id in ledger.runs:
        positions = [entry.position for entry in ledger.entries(run_id)]
        assert positions == list(range(1, len(positions) + 1))
        told = [event.sequence for event in seen.events if event.run_id == run_id]
        assert told == sorted(told)
        assert told[-1] == positions[-1]
    interleaving = [event.run_id for event in seen.events]
    changes = sum(one != other for one, other in pairwise(interleaving))
    assert changes > 10 * len(names), "they did not run at the same time"


def builder_alone() -> Any:
    world = Interleaved()
    builder = Agent.create(provider=world, model="m", name="a").tool(world.act)
    return builder.tool_middleware(world).message_middleware(world)


def test_a_session_has_a_conversation_a_pause_and_a_last_run_of_its_own() -> None:
    waits = Waits()
    waits.let_go.set()
    calls = reply(calls=[call("c1", "wait", {})])
    builder, model = describe([calls, *[reply(text=f"answer {n}") for n in range(4)]], waits.wait)
    agent = builder.tool_middleware(waits).build()

    async def story() -> None:
        pause = await agent.run("one")
        assert isinstance(pause, AskPause)
        other = agent.session(conversation_id="other")
        assert (other.conversation_id, other.last_run_id) == ("other", None)
        with pytest.raises(PendingQuestionError):
            await agent.follow_up("and?")
        with pytest.raises(NoConversationError):
            await other.follow_up("and?")
        # The question that is open in one conversation holds back no other.
        assert answered(await other.run("two")).text == "answer 0"
        assert answered(await other.follow_up("three")).text == "answer 1"
        assert agent.last_run_id == pause.run_id != other.last_run_id
        assert answered(await agent.resume(pause.checkpoint, YES)).text == "answer 2"
        assert answered(await agent.follow_up("four")).text == "answer 3"

    run(story())
    texts = [[message.text for message in request.messages] for request in model.requests]
    assert texts[2] == ["two", "answer 0", "three"]
    assert texts[4] == ["one", "", "waited", "answer 2", "four"]


def test_sessions_share_the_description_as_it_was_built_its_ledger_and_its_watchers() -> None:
    seen, late, ledger = Seen(), Seen("late"), MemoryLedger()
    builder, model = describe([reply(text="one"), reply(text="two")], watch=[seen], ledger=ledger)
    agent = builder.system("Be exact.").build()
    builder.system("Be late.")

    async def story() -> None:
        session = agent.session()
        answered(await session.run("go"))
        agent.attach(late)
        answered(await agent.session().run("go"))
        assert ledger.entries(session.last_run_id or "")

    run(story())
    assert [request.system for request in model.requests] == ["Be exact."] * 2
    assert len({event.run_id for event in seen.events}) == 2
    assert len({event.run_id for event in late.events}) == 1
