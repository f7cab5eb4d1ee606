"""More conversations with the word planted, with people, windows and clients in them; and all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import cache
from typing import Any

from footprint_core import (
    Agent,
    FootprintError,
    MemoryLedger,
    Outcome,
    Permission,
    RunTakenOverError,
    ToolContext,
    after_tool,
    allow,
    approve_once,
    before_tool,
    check_in_approved,
    check_in_declined,
    on_message,
    sliding_window,
    summarize_oldest,
    token_budget,
    tool,
)
from footprint_core.events import Event
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, reply
from footprint_observe import Redaction
from permits import Checker
from planted import (
    ANSWER,
    BY,
    SECRETS,
    WHO,
    WORD,
    Story,
    World,
    act,
    asks,
    breaks,
    budget,
    calls,
    failed,
    governed,
    pays,
    reading,
    reads,
    refused_calls,
    refused_messages,
    said,
    schema,
    unusual_calls,
    wires,
    wonders,
)
from story import run

YES = check_in_approved(by=BY, note=said("note"))
NO = check_in_declined(by=BY, note=said("note"))


async def permission(world: World) -> None:
    """A checker that permits, denies, raises, answers nothing there is, and halts."""
    told: dict[str, Any] = {"rationale": said("rationale"), "reason": said("reason")}
    answers = [
        Permission(result="gate_open", policy_rule_id="P-1", **told),
        Permission(result="deny", **told),
        Permission(result="deny", tell_model=said("text for the model"), policy_rule_id="P-7", **told),
        RuntimeError(said("error of the checker")),
        {WORD: said("answer of the checker")},
        Permission(result="halt", **told),
    ]
    for answer in answers:
        builder = world.builder([pays(1, 2), ANSWER]).credentials(SECRETS)
        with suppress(FootprintError):
            await builder.permission(Checker(answer)).build().run(said("message"))


async def answer(agent: Agent, first: Outcome, *given: Any) -> None:
    """Answer one question after another; a refused answer is left out."""
    paused: Any = first
    for one in given:
        with suppress(FootprintError):
            paused = await agent.resume(paused.checkpoint, one)


async def consent(world: World) -> None:
    """Rules that ask: approved, declined, answered with something else, and asked once for all."""
    for given in ((said("no decision"), YES), (NO,)):
        agent = world.builder([pays(1), ANSWER]).credentials(SECRETS)
        built = agent.act(**act(before_tool=[before_tool("asks")(asks)])).build()
        await answer(built, await built.run(said("message"), identity=WHO), *given)
    once = approve_once(question=said("question"))
    remembered = world.builder([pays(1), pays(1), ANSWER]).credentials(SECRETS).tool_middleware(once).build()
    paused: Any = await remembered.run(said("message"))
    once.remember(paused.detail, by=BY)
    await answer(remembered, paused, YES)


async def elsewhere(world: World) -> None:
    """A question that is answered on an agent with another ledger."""
    rules = act(before_tool=[before_tool("asks")(asks)])
    here = world.builder([pays(1)], ledger=MemoryLedger()).act(**rules).build()
    paused: Any = await here.run(said("message"), identity=WHO)
    there = world.builder([ANSWER]).credentials(SECRETS).act(**rules).build()
    await there.resume(paused.checkpoint, YES)


async def check_ins(world: World) -> None:
    """A tool that needs consent: given, and refused."""
    for given in (YES, NO):
        agent = world.builder([reply(calls=[calls("wires")]), ANSWER], wires).build()
        await answer(agent, await agent.run(said("message")), given)


async def questions_of_tools(world: World) -> None:
    """Tools that ask a person themselves, one after another and together."""
    for together in (False, True):
        batch = reply(calls=[calls("wonders"), calls("breaks", id="c2"), calls("wonders", id="c3")])
        agent = world.builder([batch, ANSWER], wonders, breaks, parallel_tools=together).build()
        first = await agent.run(said("message"))
        await answer(agent, first, {said("key of the value"): said("value")}, [said("value")])


class Breaks:
    """A summarizer that raises."""

    name = "breaks"

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        if request.messages:
            raise TimeoutError(said("error of the summarizer"))
        yield Completed()


async def windows(world: World) -> None:
    """Every strategy: what leaves, what is told in its place, a summary, a summarizer that raises."""
    summarizer = Scripted([reply(text=said("summary"))] * 3)
    for strategy in (
        sliding_window(keep_recent_turns=1),
        token_budget(threshold_tokens=100, keep_recent_turns=1),
        summarize_oldest(threshold_tokens=100, keep_recent_turns=1, summarizer=summarizer, model="s"),
        summarize_oldest(threshold_tokens=100, keep_recent_turns=1, summarizer=Breaks(), model="s"),
    ):
        builder = world.builder(reading(4), reads, keep_last_tool_results=0).window(strategy)
        await builder.build().run(said("message"))


async def served(world: World) -> None:
    """Calls of a client: answered, refused, and of a tool that raises."""
    from mcp import Client

    from footprint_core.mcp import mcp_serve

    rules = [
        before_tool("b")(lambda _: allow(why=said("why"))),
        after_tool("a")(lambda result: allow({WORD: result.result}, why=said("why"))),
    ]
    options: dict[str, Any] = {"ledger": world.ledger, "watch": world.watchers, "tool_middleware": rules}
    serving = mcp_serve(name="served", tools=[reads, breaks], **options)
    refusing = mcp_serve(
        name="refuses", tools=[reads], **{**options, "tool_middleware": [before_tool("r")(asks)]}
    )
    for one, names in ((serving, ("reads", "breaks")), (refusing, ("reads",))):
        async with Client(one.server) as client:
            for name in names:
                await client.call_tool(name, {"note": said("argument")})
            await client.call_tool("reads", {WORD: said("argument")})


async def together(world: World) -> None:
    """Calls whose bodies run at the same time."""
    batch = [calls("reads"), calls("breaks", id="c2"), calls("pay", id="c3")]
    agent = world.builder([reply(calls=batch), ANSWER], reads, breaks, parallel_tools=True).build()
    await agent.run(said("message"))


async def redacted(world: World) -> None:
    """Rows whose values were masked when they were written."""
    ledger = MemoryLedger(redact=Redaction.of(fields=("before", "after")))
    rule = on_message("typed")(lambda _: allow(said("other message"), why=said("why")))
    agent = world.builder([ANSWER], ledger=ledger).act(**act(input=[rule])).build()
    await agent.run(said("message"))


async def watched(world: World) -> None:
    """A subscriber that raises."""
    agent = world.builder([ANSWER]).build()

    def complains(_: Event) -> None:
        raise RuntimeError(said("error of the subscriber"))

    agent.on("*", complains)
    await agent.run(said("message"))


class Dies:
    """Tells the watchers of a world what it is told, until its process is gone."""

    id = "dies"
    gone = False

    def __init__(self, world: World) -> None:
        self._world = world

    def on_event(self, event: Event, /) -> None:
        for watcher in () if self.gone else self._world.watchers:
            watcher.on_event(event)


async def died(world: World) -> None:
    """Runs whose process died in a tool: one is recovered, one is given up."""

    async def recovers(other: Agent, run_id: str) -> None:
        await other.recover(run_id)

    async def gives_up(other: Agent, run_id: str) -> None:
        await other.abandon(run_id, by=BY, reason=said("reason"))

    for then in (recovers, gives_up):
        await _dies(world, then)


async def _dies(world: World, then: Callable[[Agent, str], Awaitable[None]]) -> None:
    replies = [reply(calls=[calls("breaks")]), ANSWER]
    dying, dies = World(ledger=world.ledger), Dies(world)
    dying.watchers = (dies,)

    @tool(name="breaks")
    async def leaves(note: str, context: ToolContext) -> None:
        dies.gone = True
        await then(world.builder(replies[1:], breaks).build(), context.run_id)

    with suppress(RunTakenOverError):
        await dying.builder(replies, leaves).build().run(said("message"), identity=WHO)


STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        governed,
        refused_calls,
        unusual_calls,
        refused_messages,
        failed,
        budget,
        schema,
        permission,
        consent,
        elsewhere,
        check_ins,
        questions_of_tools,
        windows,
        served,
        together,
        redacted,
        watched,
        died,
    )
}
"""Every conversation, by name."""


async def all_of_them(world: World) -> None:
    """Play every conversation in one world."""
    for story in STORIES.values():
        await story(world)


@cache
def played() -> World:
    """A world in which every conversation was played, watched by nobody but a list."""
    world = World()
    run(all_of_them(world))
    return world
