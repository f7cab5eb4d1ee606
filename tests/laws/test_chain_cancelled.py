"""A cancelled run stops at the next boundary, also where nothing suspends, and its caller hears of it once.

Everything of these agents is plain, so that no await delivers a cancellation by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import msgspec
import pytest

from footprint_core import (
    Agent,
    AskPause,
    Credential,
    CredentialRequest,
    Fold,
    MemoryLedger,
    MessageContext,
    Outcome,
    Permission,
    ToolCallContext,
    ToolContext,
    ToolResultContext,
    WindowPlan,
    WindowView,
    allow,
    ask,
    ask_human,
    check_in_approved,
    deny,
    tool,
)
from footprint_core.events import Event, TurnEnded
from footprint_core.facts import PauseOpened, SegmentEnded
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, call, reply
from story import Seen, answered, describe, run

YES = check_in_approved(by="dana")


def cancel() -> None:
    """Cancel the task that runs, and go on as if nothing had been."""
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


class World:
    """Everything a turn calls, in the order it is called; the call number `stop` cancels, and returns."""

    id = "world"
    name = "world"
    instruction = "Answer."

    def __init__(self, stop: int = -1, *, asks: bool = False, swallows: bool = False) -> None:
        self.called: list[str] = []
        self.stop, self.asks, self.swallows = stop, asks, swallows
        self.ledger, self.seen = MemoryLedger(), Seen()
        self._said = [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text='"done"')]

    def at(self, place: str) -> Any:
        """Be called; an async hook gets something to await that swallows its cancellation."""
        self.called.append(place)
        if len(self.called) - 1 != self.stop:
            return None
        cancel()
        return _swallowed() if self.swallows else None

    def rule(self, name: str) -> Any:
        return Rule(name, self)

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self.at("model")
        return Scripted([self._said.pop(0)]).reply(request)

    def plan(self, view: WindowView, /) -> WindowPlan | None:
        self.at("window")
        return None

    def check(self, asked: Any, /) -> Any:
        if not isinstance(asked, ToolCallContext):
            self.at("schema")
            return asked
        return _then(self.at("permission"), Permission(result="allow"))

    def credential(self, request: CredentialRequest, /) -> Any:
        return _then(self.at("credential"), Credential(kind="bearer", secret="s3cret-token"))

    def agent(self) -> Agent:
        def consent(args: dict[str, Any]) -> bool:
            self.at("check-in")
            return False

        @tool(needs="bank", check_in=consent, inline=True)
        def pay(amount: int) -> Any:
            return _then(self.at("tool"), "paid")

        def checked(args: dict[str, Any]) -> Any:
            self.at("validation")
            return pay.check(args)

        builder = Agent.create(provider=self, model="m", name="a").ledger(self.ledger).watch(self.seen)
        builder.tool(msgspec.structs.replace(pay, check=checked)).permission(self).credentials(self)
        rules = (self.rule("a"), self.rule("b"))
        builder.tool_middleware(*rules).message_middleware(*rules).window(self).output_schema(self)
        return builder.build()


class Rule:
    """Is called at every moment; the first rule may ask about a call."""

    def __init__(self, name: str, world: World) -> None:
        self.name, self._world = name, world

    def on_message(self, message: MessageContext) -> Any:
        return _then(self._world.at(f"{self.name} {message.phase}"), allow())

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        asks = self._world.asks and self.name == "a"
        return _then(self._world.at(f"{self.name} before"), ask("may I?") if asks else allow())

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        return _then(self._world.at(f"{self.name} after"), allow())


async def _swallowed() -> None:
    try:
        await asyncio.sleep(0)
    except asyncio.CancelledError:
        return
    raise AssertionError("nothing was delivered")


def _then(waits: Awaitable[None] | None, value: Any) -> Any:
    async def later() -> Any:
        assert waits is not None
        await waits
        return value

    return value if waits is None else later()


GATES = ["permission", "a before", "b before", "validation", "check-in", "credential", "tool"]
PLACES = [
    *("a input", "b input", "window", "model"),
    *GATES,
    *("b after", "a after", "window", "model", "a output", "b output", "schema"),
]


async def _cancelled(work: Awaitable[Outcome]) -> None:
    """Refuse work that does not end cancelled, and a task that then is cancelled once more."""
    with pytest.raises(asyncio.CancelledError):
        await work
    await asyncio.sleep(0)


def _ended(world: World, agent: Agent, segments: int = 1) -> None:
    entries = world.ledger.entries(agent.last_run_id or "")
    ends = [entry.fact.outcome for entry in entries if isinstance(entry.fact, SegmentEnded)]
    assert ends[segments - 1 :] == ["cancelled"]
    assert [event.outcome for event in world.seen.of(TurnEnded)][segments - 1 :] == ["cancelled"]
    assert world.seen.types[-1] == "agent.turn_end"
    assert isinstance(entries[-1].fact, SegmentEnded)


def test_an_undisturbed_turn_calls_everything_in_its_order() -> None:
    world = World()
    assert answered(run(world.agent().run("go"))).text == '"done"'
    assert world.called == PLACES


@pytest.mark.parametrize("swallows", [False, True])
@pytest.mark.parametrize("stop", range(len(PLACES)), ids=PLACES)
def test_behind_a_cancellation_nothing_further_is_called(stop: int, swallows: bool) -> None:
    if swallows and PLACES[stop] in {"window", "model", "validation", "check-in", "schema"}:
        swallows = False
    world = World(stop, swallows=swallows)
    agent = world.agent()
    run(_cancelled(agent.run("go")))
    assert world.called == PLACES[: stop + 1]
    _ended(world, agent)


RESUMED = [*GATES, "b after", "a after", "window", "model", "a output", "b output", "schema"]
RESUMED.remove("a before")


@pytest.mark.parametrize("stop", range(len(RESUMED)), ids=RESUMED)
def test_behind_a_cancellation_of_a_resumed_run_nothing_further_is_called(stop: int) -> None:
    world = World(asks=True)
    agent = world.agent()

    async def story() -> None:
        paused = await agent.run("go")
        assert isinstance(paused, AskPause)
        world.called.clear()
        world.stop = stop
        await _cancelled(agent.resume(json.loads(json.dumps(paused.checkpoint)), YES))

    run(story())
    assert world.called == RESUMED[: stop + 1]
    _ended(world, agent, segments=2)


class CancelsAt:
    """A watcher that cancels the turn it watches when it is told its event number `at`."""

    id = "cancels"

    def __init__(self, world: World, at: int) -> None:
        self._world, self._at = world, at
        self.told: list[Event] = []
        self.called_then: list[str] | None = None

    def on_event(self, event: Event, /) -> None:
        self.told.append(event)
        if len(self.told) - 1 == self._at:
            self.called_then = [*self._world.called]
            cancel()


def _events_of_a_turn() -> list[Event]:
    world = World()
    run(world.agent().run("go"))
    return world.seen.events


def test_whichever_event_a_watcher_cancels_at_nothing_further_is_called() -> None:
    events = _events_of_a_turn()
    committed_last = [event.sequence for event in events if event.type == "agent.iteration_start"][-1]
    for at, event in enumerate(events):
        world = World()
        agent = world.agent()
        watcher = CancelsAt(world, at)
        agent.attach(watcher)
        outcome = run(_by_a_watcher(agent))
        assert watcher.called_then == world.called, event.type
        # What the answer is published with is published behind it: it is on record, and stays given.
        assert (outcome == "answered") is (event.sequence > committed_last), event.type
        assert world.seen.of(TurnEnded)[-1].outcome == outcome


async def _by_a_watcher(agent: Agent) -> str:
    try:
        await agent.run("go")
    except asyncio.CancelledError:
        await asyncio.sleep(0)
        return "cancelled"
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(0)
    return "answered"


@pytest.mark.parametrize("verb", [deny("no"), ask("may I?")])
def test_a_rule_that_cancels_and_refuses_ends_the_turn_cancelled_and_opens_no_pause(verb: Any) -> None:
    class Cancels:
        name = "cancels"

        def on_tool_call(self, asked: ToolCallContext) -> Any:
            cancel()
            return verb

        def on_message(self, message: MessageContext) -> Any:
            return self.on_tool_call(None) if message.content == "done" else allow()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    for replies in ([reply(calls=[call("c1", "pay", {})])], [reply(text="done")]):
        ledger = MemoryLedger()
        builder, model = describe(replies, tool(name="pay", inline=True)(lambda: None), ledger=ledger)
        agent = builder.tool_middleware(Cancels()).message_middleware(Cancels()).build()
        run(_cancelled(agent.run("go")))
        facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
        assert not [fact for fact in facts if isinstance(fact, PauseOpened)]
        assert getattr(facts[-1], "outcome", None) == "cancelled"
        assert agent.abandon_pause() is None
        assert len(model.requests) == 1


def test_a_tool_that_cancels_and_asks_a_person_opens_no_pause() -> None:
    @tool(inline=True)
    def pay() -> None:
        cancel()
        ask_human("how much?")

    builder, _ = describe([reply(calls=[call("c1", "pay", {})])], pay)
    agent = builder.build()
    run(_cancelled(agent.run("go")))
    assert agent.abandon_pause() is None


def test_behind_a_cancelled_window_visit_no_summarizer_is_called() -> None:
    summarizer = Scripted([reply(text="short")])

    class Folds:
        name = "folds"

        def plan(self, view: WindowView, /) -> WindowPlan | None:
            if view.turn_count < 3:
                return None
            cancel()
            return WindowPlan(remove=(0, 1), fold=Fold(provider=summarizer, model="m", instruction="fold"))

    builder, model = describe([reply(text="one " * 200), reply(text="two")])
    agent = builder.window(Folds()).build()

    async def story() -> None:
        await agent.run("go " * 200)
        await _cancelled(agent.follow_up("and?"))

    run(story())
    assert (len(summarizer.requests), len(model.requests)) == (0, 1)


def test_a_task_that_swallowed_an_earlier_cancellation_runs_its_turns_as_ever() -> None:
    world = World()

    async def story() -> Outcome:
        cancel()
        await _swallowed()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 1
        return await world.agent().run("go")

    assert answered(run(story())).text == '"done"'
    assert world.called == PLACES


@pytest.mark.parametrize("stop", [0, PLACES.index("tool"), len(PLACES) - 1])
def test_a_task_that_swallowed_an_earlier_cancellation_is_cancelled_by_a_later_one(stop: int) -> None:
    world = World(stop)
    agent = world.agent()

    async def story() -> None:
        cancel()
        await _swallowed()
        await _cancelled(agent.run("go"))

    run(story())
    assert world.called == PLACES[: stop + 1]
    _ended(world, agent)


def test_a_cancellation_that_was_asked_for_before_a_turn_begins_is_not_lost() -> None:
    world = World()
    agent = world.agent()

    async def story() -> Outcome:
        cancel()
        await _cancelled(agent.run("go"))
        assert world.called == []
        assert world.seen.events == []
        return await agent.run("go")

    assert answered(run(story())).text == '"done"'


def test_a_timeout_around_a_turn_is_told_as_a_timeout() -> None:
    class Hangs:
        name = "hangs"

        async def on_tool_call(self, asked: ToolCallContext) -> Any:
            await asyncio.Event().wait()

    builder, _ = describe([reply(calls=[call("c1", "pay", {})])], tool(name="pay")(lambda: None))
    agent = builder.tool_middleware(Hangs()).build()

    async def story() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await agent.run("go")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(story())


def test_a_tool_that_bounds_itself_by_cancelling_its_task_cancels_no_turn() -> None:
    async def pay(context: ToolContext) -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "gave up"
        return "paid"

    builder, model = describe([reply(calls=[call("c1", "pay", {})]), reply(text="done")], pay)
    assert answered(run(builder.build().run("go"))).text == "done"
    assert model.requests[1].messages[-1].text == "gave up"
