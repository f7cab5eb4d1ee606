"""Runs of real agents over scripted models, and what became of them: with a recorder, the same must.

One word stands in every value there is: in messages, arguments, results, questions, reasons, errors, chunks.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from footprint_core import (
    Agent,
    AskPause,
    CheckInPause,
    FootprintError,
    MemoryLedger,
    MessageContext,
    MessageOutcome,
    Outcome,
    Recorder,
    Session,
    Tool,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    deny,
    on_message,
    tool,
)
from footprint_core.messages import ToolCall
from footprint_core.providers import Chunk, Completed, ModelRequest, Provider, Scripted, call, reply

WORD = "quetzalcoatl"
"""What no event holds, because no program declares it."""

_THREADS = 4
_TURNS = 5


def said(what: str) -> str:
    """A value that holds the word."""
    return f"the {WORD} of the {what}"


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a story.

    Attributes:
        turns: How each turn ended, and its rows without ids and times.
        requests: What the model was sent.
        failures: How often a watcher raised, or closing it did.
    """

    turns: tuple[str, ...]
    requests: tuple[str, ...]
    failures: int


class Stage:
    """Where a story is played: agents that share a ledger and, maybe, a recorder."""

    def __init__(self, recorder: Recorder | None) -> None:
        self._watchers = () if recorder is None else (recorder,)
        self._ledger = MemoryLedger()
        self._agents: list[Agent] = []
        self._turns: list[str] = []
        self._asked: list[ModelRequest] = []

    def agent(self, provider: Provider, *tools: Tool, parallel: bool = False) -> Agent:
        """An agent with rules at every moment."""
        builder = Agent.create(provider=provider, model="m", name="tested", parallel_tools=parallel)
        builder.system(said("system prompt")).tool(*tools).watch(*self._watchers).ledger(self._ledger)
        builder.act(input=[changes], before_tool=[judges], after_tool=[trims], output=[reads])
        agent = builder.build()
        self._agents.append(agent)
        if isinstance(provider, Scripted):
            # Kept by the provider itself, so that the story need not hand it over again.
            self._asked = provider.requests
        return agent

    async def turn(self, session: Agent | Session, work: Awaitable[Outcome]) -> Outcome | None:
        """Await a turn, and note how it ended."""
        try:
            outcome = await work
        except (FootprintError, asyncio.CancelledError) as error:
            self._note(session, type(error).__name__)
            return None
        self._note(session, _ending(outcome))
        return outcome

    def turn_sync(self, session: Agent | Session) -> None:
        """Make a turn without an event loop, and note how it ended."""
        try:
            self._note(session, _ending(session.run_sync(said("message"))))
        except FootprintError as error:
            self._note(session, type(error).__name__)

    def _note(self, session: Agent | Session, ending: str) -> None:
        rows = [row.to_dict() for row in self._ledger.decisions(session.last_run_id or "")]
        kept = [{key: row[key] for key in row if key not in _VOLATILE} for row in rows]
        self._turns.append(f"{ending}: {kept}")

    def end(self, timeout: float) -> Played:
        """Close every agent, and with the last one the recorder."""
        for agent in self._agents:
            asyncio.run(agent.close(timeout=timeout))
        return Played(
            # Of sessions in threads, one may be done before another.
            turns=tuple(sorted(self._turns)),
            requests=tuple(str([*request.messages]) for request in self._asked),
            failures=sum(watcher.failures for agent in self._agents for watcher in agent.health().watchers),
        )


_VOLATILE = frozenset({"run_id", "recorded_at", "duration"})


def _ending(outcome: Outcome) -> str:
    return getattr(outcome, "text", type(outcome).__name__)


@on_message("changes")
def changes(message: MessageContext) -> MessageOutcome:
    """A rule that adds to every message."""
    return allow(f"{message.content} {said('addition')}", why=said("why"))


@before_tool("judges")
def judges(asked: ToolCallContext) -> ToolOutcome:
    """A rule that refuses one tool, asks about another, and changes the arguments of the rest."""
    match asked.tool_name:
        case "refused":
            return deny(said("reason"))
        case "pays":
            return ask(said("question"), detail={said("key of the detail"): said("detail")})
        case _:
            return allow({**asked.args, "note": said("other argument")}, why=said("why"))


@after_tool("trims")
def trims(result: ToolResultContext) -> ToolResultOutcome:
    """A rule that replaces every result."""
    return allow([said("other result"), result.failed], why=said("why"))


@on_message("reads")
def reads(message: MessageContext) -> MessageOutcome:
    """A rule that lets every answer pass."""
    return allow() if message.content else deny(said("reason"))


@tool
def looks(note: str) -> dict[str, list[str]]:
    """A tool that gives something."""
    return {said("key of the result"): [note, said("result")]}


@tool
def pays(note: str) -> str:
    """A tool that a rule asks about."""
    return f"{note}: {said('payment')}"


@tool(check_in="always", evidence=lambda args: [said("evidence"), args])
def wires(note: str) -> str:
    """A tool that needs consent."""
    return f"{note}: {said('wire')}"


@tool
def refused(note: str) -> str:
    """A tool that a rule refuses."""
    return note


@tool
def breaks(note: str) -> str:
    """A tool that raises."""
    raise LookupError(f"{note}: {said('error of the tool')}")


def _calls(*names: str) -> Completed:
    asked: list[ToolCall] = [
        call(f"call-{place}", name, {"note": said("argument")}) for place, name in enumerate(names, 1)
    ]
    return reply(tokens=[said("thought"), f" {WORD}"], calls=asked)


_ANSWER = reply(tokens=[said("answer"), f" {WORD}"])


class Fails:
    """A model that fails in the middle of its answer."""

    name = "fails"

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """Half an answer."""
        yield Chunk(text=f"{request.model}: {said('chunk')}")
        raise OSError(said("error of the provider"))


class Repeats:
    """A model that looks once and answers, in any number of conversations at a time."""

    name = "repeats"

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """A call, or an answer behind its result."""
        yield _ANSWER if isinstance(request.messages[-1], ToolMessage) else _calls("looks")


async def run(stage: Stage) -> None:
    """A streamed turn with a call that runs, one that fails and one that is refused; and a follow-up."""
    agent = stage.agent(
        Scripted([_calls("looks"), _calls("breaks", "refused"), _ANSWER, _ANSWER], streaming=True),
        looks,
        breaks,
        refused,
    )
    await stage.turn(agent, agent.run(said("message"), identity={"name": said("caller")}))
    await stage.turn(agent, agent.follow_up(said("second message")))


def run_sync(stage: Stage) -> None:
    """The same without an event loop."""
    agent = stage.agent(Scripted([_calls("looks", "breaks"), _ANSWER]), looks, breaks)
    stage.turn_sync(agent)


async def pause_and_resume(stage: Stage) -> None:
    """A question that is approved, and a consent that is declined."""
    agent = stage.agent(Scripted([_calls("pays"), _calls("wires"), _ANSWER]), pays, wires)
    yes = check_in_approved(by=said("approver"), note=said("note"))
    no = check_in_declined(by=said("decliner"), note=said("note"))
    outcome = await stage.turn(agent, agent.run(said("message")))
    for answer in (yes, no):
        if isinstance(outcome, AskPause | CheckInPause):
            outcome = await stage.turn(agent, agent.resume(outcome.checkpoint, answer))


async def failure(stage: Stage) -> None:
    """A turn whose model fails."""
    agent = stage.agent(Fails())
    await stage.turn(agent, agent.run(said("message")))


async def cancellation(stage: Stage) -> None:
    """A turn that is cancelled while a tool runs."""
    started = asyncio.Event()

    @tool
    async def waits(note: str) -> str:
        """A tool that never ends."""
        started.set()
        await asyncio.Event().wait()
        return note

    agent = stage.agent(Scripted([_calls("waits")]), waits)
    task = asyncio.ensure_future(agent.run(said("message")))
    await asyncio.wait({task, asyncio.ensure_future(started.wait())}, return_when=asyncio.FIRST_COMPLETED)
    task.cancel(said("message of the cancellation"))
    await stage.turn(agent, task)


async def parallel_tools(stage: Stage) -> None:
    """A reply whose calls run at the same time."""
    script = Scripted([_calls("looks", "breaks", "looks", "refused"), _ANSWER])
    agent = stage.agent(script, looks, breaks, refused, parallel=True)
    await stage.turn(agent, agent.run(said("message")))


def sessions_in_threads(stage: Stage) -> None:
    """Conversations of one agent, each in a thread of its own."""
    agent = stage.agent(Repeats(), looks)

    def converse() -> None:
        for _ in range(_TURNS):
            stage.turn_sync(agent.session())

    threads = [threading.Thread(target=converse, daemon=True) for _ in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


Story: TypeAlias = Callable[[Stage], Awaitable[None] | None]
"""What is played on a stage."""

STORIES: Sequence[Story] = (
    run,
    run_sync,
    pause_and_resume,
    failure,
    cancellation,
    parallel_tools,
    sessions_in_threads,
)
"""Every story."""


def play(story: Story, recorder: Recorder | None = None, *, timeout: float = 3.0) -> Played:
    """Play a story, watched by a recorder, which is closed with the last agent.

    Args:
        story: The story.
        recorder: Who watches; nobody without one.
        timeout: Seconds the recorder has to close.
    """
    stage = Stage(recorder)
    if (work := story(stage)) is not None:
        asyncio.run(_awaited(work))
    return stage.end(timeout)


async def _awaited(work: Awaitable[None]) -> None:
    await work
