"""Conversations with one word planted in every value there is: texts, args, results, questions, secrets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import msgspec

from footprint_core import (
    Agent,
    AgentBuilder,
    Batch,
    Credential,
    CredentialProvider,
    CredentialRequest,
    FootprintError,
    Ledger,
    MemoryLedger,
    Receipt,
    ToolContext,
    Watcher,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    deny,
    on_message,
    static_credentials,
    tool,
)
from footprint_core.facts import Fact, ToolIntended, Usage
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, call, reply
from story import Seen

WORD = "zanzibar"
WHO: Any = {"name": f"the {WORD} of the caller"}
BY = f"the {WORD} who decides"


def said(what: str) -> str:
    """A text that holds the word."""
    return f"the {WORD} of the {what}"


class World:
    """Where conversations are played: who watches them, and what they leave.

    Args:
        watchers: Who watches, beside `seen`.
        ledger: Where it is kept; in memory by default.
    """

    def __init__(self, *watchers: Watcher, ledger: Ledger | None = None) -> None:
        self.seen = Seen()
        self.ledger: Ledger = MemoryLedger() if ledger is None else ledger
        self.watchers: tuple[Watcher, ...] = (self.seen, *watchers)

    def builder(
        self,
        replies: Sequence[Completed],
        *tools: Any,
        provider: Any = None,
        ledger: Ledger | None = None,
        streaming: bool = False,
        **options: Any,
    ) -> AgentBuilder:
        """An agent over what a model says, watched, with the word in its system prompt."""
        model = Scripted(replies, streaming=streaming) if provider is None else provider
        builder = Agent.create(provider=model, model="m", name="planted", **options)
        builder.system(said("system prompt")).tool(*(tools or (pay,))).watch(*self.watchers)
        return builder.ledger(self.ledger if ledger is None else ledger)

    @property
    def facts(self) -> list[Fact]:
        """The facts of every run that was heard of."""
        runs = dict.fromkeys(event.run_id for event in self.seen.events)
        return [entry.fact for run_id in runs for entry in self.ledger.entries(run_id)]


@tool(needs="bank")
async def pay(amount: int, note: str, context: ToolContext) -> dict[str, Any]:
    """A tool with a credential."""
    assert context.credential is not None
    return {"paid": amount, said("key of the result"): said("result"), "by": context.credential.secret}


@tool
def breaks(note: str) -> str:
    """A tool that raises."""
    raise LookupError(said("error of the tool"))


@tool
def wonders(note: str) -> str:
    """A tool that asks a person."""
    ask_human(said("question of the tool"), detail=said("payload"))


@tool(check_in="always", evidence=lambda args: {said("key of the evidence"): said("evidence")})
def wires(note: str) -> str:
    """A tool that needs consent."""
    return said("result of the wire")


def calls(name: str, *, id: str = "c1", amount: int | None = None, **more: Any) -> Any:
    """A call whose args hold the word."""
    given: dict[str, Any] = {"note": said("argument"), **more}
    return call(id, name, given if amount is None else {**given, "amount": amount})


def pays(*amounts: int) -> Completed:
    """A reply that pays, with a text beside the calls."""
    asked = [calls("pay", id=f"c{i}", amount=amount) for i, amount in enumerate(amounts, 1)]
    return reply(tokens=[said("thought"), WORD], calls=asked)


ANSWER = reply(tokens=[said("answer"), f" {WORD}"])
SECRETS: CredentialProvider = static_credentials({"bank": f"{WORD}-secret"})

RULES: dict[str, list[Any]] = {
    "input": [on_message("typed")(lambda msg: allow(said("other message"), why=said("why at input")))],
    "before_tool": [
        before_tool("args")(
            lambda ask_: allow({**ask_.args, "note": said("new args")}, why=said("why before"))
        )
    ],
    "after_tool": [after_tool("result")(lambda _: allow([said("new result")], why=said("why after")))],
    "output": [on_message("answer")(lambda msg: allow(said("other answer"), why=said("why at output")))],
}


def act(**rules: list[Any]) -> Any:
    """Rules, as `.act()` takes them."""
    return rules


def raises(_: object) -> Any:
    """A hook that raises."""
    raise ValueError(said("error of the rule"))


def malformed(_: object) -> Any:
    """A hook that answers with nothing a rule may answer."""
    return {said("key of the answer"): said("malformed answer")}


def refuses(_: object) -> Any:
    """A hook that denies."""
    return deny(said("reason of the denial"))


def asks(_: object) -> Any:
    """A hook that asks a person."""
    return ask(said("question"), detail={said("key of the detail"): said("detail")})


async def waits(_: object) -> Any:
    """A hook that never answers."""
    await asyncio.Event().wait()


class Failing:
    """A model that fails in the middle of a chunk."""

    name = "failing"

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        yield Chunk(text=said("chunk"))
        raise OSError(said("error of the provider"))


class Mumbles:
    """A model that stops for a reason of its own."""

    name = "mumbles"

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        yield Completed(text=said("answer"), stop_reason=cast("Any", said("stop reason")))


class Refuses:
    """A credential provider that raises."""

    def credential(self, request: CredentialRequest, /) -> Credential:
        raise PermissionError(said("error of the credential provider"))


class Full(MemoryLedger):
    """A ledger that takes only so many appends."""

    def __init__(self, takes: int) -> None:
        super().__init__()
        self.takes = takes

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.takes -= 1
        if self.takes < 0:
            raise OSError(said("error of the ledger"))
        return super().append_inline(batch)


class Stops(MemoryLedger):
    """A ledger whose caller cancels while the intent of a call is appended."""

    def append_inline(self, batch: Batch, /) -> Receipt:
        task = asyncio.current_task()
        if task is not None and any(isinstance(entry.fact, ToolIntended) for entry in batch.entries):
            task.cancel(said("message of the cancellation"))
        return super().append_inline(batch)


class Shaped:
    """A schema that quotes the answer it does not take."""

    instruction = said("instruction of the schema")

    def check(self, value: Any, /) -> object:
        if value != {"ok": True}:
            raise ValueError(said(f"error of the schema, which got {value}"))
        return value


Story = Callable[[World], Awaitable[None]]


async def governed(world: World) -> None:
    """A run and a follow-up; every rule replaces something."""
    said_twice = [pays(5), ANSWER, ANSWER]
    agent = world.builder(said_twice, streaming=True).credentials(SECRETS).act(**cast("Any", RULES)).build()
    await agent.run(said("message"), identity=WHO)
    await agent.follow_up(said("second message"), identity=WHO)


async def refused_calls(world: World) -> None:
    """Calls that rules refuse, before and after: on purpose, by raising, by a malformed answer."""
    hooks: list[Callable[[Any], Any]] = [refuses, raises, malformed]
    for hook in hooks:
        for rules in (act(before_tool=[before_tool("r")(hook)]), act(after_tool=[after_tool("r")(hook)])):
            agent = world.builder([pays(1), ANSWER]).credentials(SECRETS).act(**rules).build()
            await agent.run(said("message"))
    late = world.builder([pays(1), ANSWER]).tool_middleware(before_tool("late", timeout=0.001)(waits))
    await late.build().run(said("message"))


async def unusual_calls(world: World) -> None:
    """Tools, arguments and ids that only the model knows, and a tool that raises."""
    unknown: dict[str, Any] = {WORD: WORD}
    batch = [
        calls("breaks", id=f"{WORD}?"),
        calls(f"{WORD}!", id="c2"),
        calls("breaks", id="c3", **unknown),
        calls("breaks", id="c4"),
        calls("breaks", id="c4"),
        msgspec.structs.replace(calls("breaks", id="c5"), args_json=f'"{WORD}"'),
    ]
    await world.builder([reply(calls=batch), ANSWER], breaks).build().run(said("message"))


async def refused_messages(world: World) -> None:
    """Messages that rules refuse, and a provider with a word of its own."""
    hooks: list[Callable[[Any], Any]] = [refuses, raises, malformed, asks]
    for moment in ("input", "output"):
        for hook in hooks:
            agent = world.builder([ANSWER]).act(**act(**{moment: [on_message("r")(hook)]})).build()
            with suppress(FootprintError):
                await agent.run(said("message"))
    await world.builder([], provider=Mumbles()).build().run(said("message"))


async def failed(world: World) -> None:
    """Segments that fail: the provider, the credential provider, the ledger, a caller who cancels."""
    await world.builder([pays(1), ANSWER]).credentials(Refuses()).build().run(said("message"))
    for builder in (
        world.builder([], provider=Failing()),
        *(world.builder([pays(1), ANSWER], ledger=Full(takes)).credentials(SECRETS) for takes in range(1, 5)),
    ):
        with suppress(FootprintError):
            await builder.build().run(said("message"))

    rule = act(input=[on_message("stops")(_stops)])
    for agent in (
        world.builder([ANSWER]).act(**rule).build(),
        world.builder([reply(calls=[calls("stops")])], stops).build(),
        world.builder([reply(calls=[calls("breaks")])], breaks, ledger=Stops()).build(),
    ):
        with suppress(asyncio.CancelledError):
            await asyncio.ensure_future(agent.run(said("message")))


async def _stops(_: object) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel(said("message of the cancellation"))
    await asyncio.sleep(0)


@tool
async def stops(note: str) -> str:
    """A tool in which the caller cancels."""
    return str(await _stops(note))


async def budget(world: World) -> None:
    """A turn whose budget ends while the model still asks for tools."""
    for wrap_up in (True, False):
        builder = world.builder([pays(1), pays(2), ANSWER], max_iterations=2, wrap_up=wrap_up)
        await builder.credentials(SECRETS).build().run(said("message"))


async def schema(world: World) -> None:
    """Answers that do not match: asked for again, returned as they are, broken by a rule."""
    wrong, right = reply(text=f'{{"{WORD}": 1}}'), reply(text='{"ok": true}')
    breaking = on_message("breaks")(lambda msg: allow(said("broken"), why=said("why")))
    for replies, rules in (([wrong, ANSWER, right], []), ([wrong] * 3, []), ([right], [breaking])):
        builder = world.builder(replies).output_schema(Shaped(), retries=2)
        await builder.act(**act(output=rules)).build().run(said("message"))


OVER = Usage(input=1000, output=5)
LONG = f"{WORD} " * 200


@tool
def reads(note: str) -> str:
    """A tool whose result is long."""
    return LONG


def reading(count: int) -> list[Completed]:
    """So many calls, then an answer; the window is over its threshold from the first on."""
    asked = [reply(calls=[calls("reads", id=f"w{i}")], usage=OVER) for i in range(count)]
    return [*asked, msgspec.structs.replace(ANSWER, usage=OVER)]
