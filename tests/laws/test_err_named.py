"""Every error says which run it is about, one sentence, and nothing of what was said in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from file_ledger import on_file
from footprint_core import (
    Agent,
    AskPause,
    Batch,
    CompactionUnmeasurableError,
    DecisionRequiredError,
    FootprintError,
    ForeignCheckpointError,
    HumanPause,
    LedgerBusyError,
    LedgerError,
    LedgerWriteError,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    OutputSchemaError,
    PauseAnswerRequiredError,
    PendingQuestionError,
    Permission,
    PolicyHaltError,
    ProviderError,
    Receipt,
    ReentrantCallError,
    ResumeError,
    RunError,
    RunInFlightError,
    RunTakenOverError,
    StaleDecisionError,
    ToolCallContext,
    ToolOutcome,
    WindowPlan,
    WindowView,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    deny,
    on_message,
    plain,
    token_budget,
)
from footprint_core.events import Event
from footprint_core.providers import Completed, ModelRequest, call, reply
from story import answered, describe, run

SECRET = "canary-90bd"
YES = check_in_approved(by="dana")
MESSAGE = f"about {SECRET}"
PAYS = reply(calls=[call("c1", "pay", {"amount": 500, "to": SECRET})], text=SECRET, usage=None)
DONE = reply(text=f"done {SECRET}")


def pay(amount: int, to: str) -> str:
    """Pay."""
    return f"{SECRET} was paid"


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?", detail=[SECRET])


@on_message("censor")
def censor(message: MessageContext) -> MessageOutcome:
    return deny("no names")


class FailingAt(MemoryLedger):
    """A ledger that does not take the append of that number."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__()
        self._left = number
        self._error = error

    def append_inline(self, batch: Batch, /) -> Receipt:
        self._left -= 1
        if self._left == 0:
            raise self._error
        return super().append_inline(batch)


class Halts:
    name = "policy"

    def check(self, call: ToolCallContext, /) -> Permission:
        return Permission(
            result="halt", rationale=None, tell_model=None, policy_rule_id=None, reason="closed"
        )


class Plans:
    """A window strategy that raises."""

    name = "odd"

    def plan(self, view: WindowView, /) -> WindowPlan | None:
        raise ValueError(SECRET)


class Broken:
    """A provider that raises."""

    name = "shaky"

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Completed]:
        raise OSError(SECRET)


Begun: TypeAlias = tuple[Agent, Awaitable[object]]
"""An agent, and what runs into an error."""

Story: TypeAlias = Callable[[Path], Awaitable[Begun]]


def running(*replies: Completed, door: str = "run", build: Any = None, **options: Any) -> Story:
    """A turn that runs into an error."""

    async def story(folder: Path) -> Begun:
        builder, _ = describe(replies, pay, **options)
        agent: Agent = (builder if build is None else build(builder)).build()
        return agent, getattr(agent, door)(MESSAGE)

    return story


async def paused(*replies: Completed, act: Any = None, **options: Any) -> tuple[Agent, AskPause]:
    """An agent whose first turn asked a person."""
    rules: Any = {"before_tool": [four_eyes], **(act or {})}
    builder, _ = describe([PAYS, *replies], pay, act=rules, **options)
    agent = builder.build()
    pause = await agent.run("go")
    assert isinstance(pause, AskPause)
    return agent, pause


def resuming(*replies: Completed, answer: object = YES, **options: Any) -> Story:
    """A pause, and a resume that runs into an error."""

    async def story(folder: Path) -> Begun:
        agent, pause = await paused(*replies, **options)
        return agent, agent.resume(pause.checkpoint, answer)

    return story


async def broken_provider(folder: Path) -> Begun:
    agent = Agent.create(provider=Broken(), model="m", name="tested").build()
    return agent, agent.run(MESSAGE)


async def closed_file(folder: Path) -> Begun:
    ledger = on_file(folder / "l.db")
    builder, _ = describe([DONE], pay, ledger=ledger)
    agent = builder.build()
    await ledger.close()
    return agent, agent.run(MESSAGE)


def foreign(number: int) -> Any:
    return FailingAt(number, RuntimeError(SECRET))


def busy() -> Any:
    return FailingAt(2, LedgerBusyError("Try again."))


def taken(number: int) -> Any:
    return FailingAt(number, RunTakenOverError("Another process continued this run."))


def halting(builder: Any) -> Any:
    return builder.permission(Halts())


def shaped(builder: Any) -> Any:
    return builder.output_schema(int)


Kind: TypeAlias = type[RunError] | type[LedgerError] | type[ResumeError]

BEHIND_THE_START: dict[str, tuple[Kind, int, Callable[[], Story]]] = {
    "denied at input": (MessageDeniedError, 1, lambda: running(act={"input": [censor]})),
    "denied at output": (MessageDeniedError, 1, lambda: running(DONE, act={"output": [censor]})),
    "denied after a pause": (MessageDeniedError, 2, lambda: resuming(DONE, act={"output": [censor]})),
    "halted": (PolicyHaltError, 1, lambda: running(PAYS, build=halting)),
    "no such shape": (OutputSchemaError, 1, lambda: running(DONE, door="run_typed", build=shaped)),
    "provider": (ProviderError, 1, lambda: broken_provider),
    "provider after a pause": (ProviderError, 2, resuming),
    "no tokens": (
        CompactionUnmeasurableError,
        1,
        lambda: running(PAYS, DONE, act={"window": token_budget(threshold_tokens=1)}),
    ),
    "window raised": (RunError, 1, lambda: running(DONE, act={"window": Plans()})),
    "ledger at the start": (LedgerWriteError, 1, lambda: running(DONE, ledger=foreign(1))),
    "ledger before the model": (LedgerWriteError, 1, lambda: running(DONE, ledger=foreign(2))),
    "ledger at the end": (LedgerWriteError, 1, lambda: running(DONE, ledger=foreign(3))),
    "ledger after a pause": (LedgerWriteError, 2, lambda: resuming(DONE, ledger=foreign(5))),
    "ledger closed": (LedgerWriteError, 1, lambda: closed_file),
    "ledger busy": (LedgerBusyError, 1, lambda: running(DONE, ledger=busy())),
    "taken over": (RunTakenOverError, 1, lambda: running(DONE, ledger=taken(3))),
    "taken over after a pause": (RunTakenOverError, 2, lambda: resuming(DONE, ledger=taken(6))),
    "answered by another meanwhile": (StaleDecisionError, 2, lambda: resuming(DONE, ledger=taken(4))),
}


@pytest.mark.parametrize("name", BEHIND_THE_START)
def test_an_error_of_a_segment_that_began_says_which_and_the_agent_remembers_it(
    name: str, tmp_path: Path
) -> None:
    kind, segment, story = BEHIND_THE_START[name]

    async def go() -> tuple[Agent, Any]:
        agent, work = await story()(tmp_path)
        with pytest.raises(kind) as raised:
            await work
        return agent, raised.value

    agent, error = run(go())
    check(error)
    assert type(error) is kind
    assert agent.last_run_id is not None
    assert (error.run_id, error.segment) == (agent.last_run_id, segment)


def check(error: FootprintError) -> None:
    """One sentence for people, the facts as plain attributes, and no value in either of them."""
    text = str(error)
    assert SECRET not in text
    assert "\n" not in text
    assert text[0].isupper() or text.startswith(".")
    assert text.endswith(".") or getattr(error, "reason", None)
    for name, fact in vars(error).items():
        assert plain.examine(fact)[1], name
        # What was proposed is a fact of a halt; the sentence above is without it.
        assert name == "proposed" or SECRET not in str(fact)


async def pending(folder: Path) -> Begun:
    agent, _ = await paused(DONE)
    return agent, agent.run(MESSAGE)


async def in_flight(folder: Path) -> Begun:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def waits() -> None:
        """Wait."""
        entered.set()
        await leave.wait()

    builder, _ = describe([reply(calls=[call("c1", "waits", {})]), DONE], waits)
    agent = builder.build()
    first = asyncio.ensure_future(agent.run("go"))
    await entered.wait()

    async def second() -> object:
        try:
            return await agent.run(MESSAGE)
        finally:
            leave.set()
            answered(await first)

    return agent, second()


async def edited(folder: Path) -> Begun:
    agent, pause = await paused(DONE)
    call = {**pause.checkpoint["call"], "args": {"amount": 1, "to": SECRET}}
    return agent, agent.resume({**pause.checkpoint, "call": call}, YES)


async def answered_twice(folder: Path) -> Begun:
    agent, pause = await paused(DONE)
    answered(await agent.resume(pause.checkpoint, YES))
    return agent, agent.resume(pause.checkpoint, YES)


async def no_answer(folder: Path) -> Begun:
    def asks() -> object:
        """Ask."""
        return ask_human(f"PIN of {SECRET}?")

    builder, _ = describe([reply(calls=[call("c1", "asks", {})]), DONE], asks)
    agent = builder.build()
    pause = await agent.run("go")
    assert isinstance(pause, HumanPause)
    return agent, agent.resume(pause.checkpoint)


BEFORE_THE_START: dict[str, tuple[type[FootprintError], Story]] = {
    "pending question": (PendingQuestionError, pending),
    "in flight": (RunInFlightError, in_flight),
    "no decision": (DecisionRequiredError, resuming(DONE, answer={SECRET: SECRET})),
    "no name": (DecisionRequiredError, resuming(DONE, answer={**YES, "by": " ", "note": SECRET})),
    "no answer": (PauseAnswerRequiredError, no_answer),
    "edited": (ForeignCheckpointError, edited),
    "answered twice": (StaleDecisionError, answered_twice),
}


@pytest.mark.parametrize("name", BEFORE_THE_START)
def test_an_error_before_a_segment_began_is_one_sentence_without_a_value(name: str, tmp_path: Path) -> None:
    kind, story = BEFORE_THE_START[name]

    async def go() -> Any:
        _, work = await story(tmp_path)
        with pytest.raises(kind) as raised:
            await work
        return raised.value

    error = run(go())
    assert type(error) is kind
    check(error)


def test_a_watcher_that_calls_its_agent_is_told_so_in_one_sentence() -> None:
    refused: list[FootprintError] = []

    class Calls:
        id = "calls"
        agent: Agent

        def on_event(self, event: Event, /) -> None:
            try:
                self.agent.run(MESSAGE)
            except ReentrantCallError as error:
                refused.append(error)

    watcher = Calls()
    builder, _ = describe([DONE], watch=[watcher])
    watcher.agent = builder.build()
    answered(run(watcher.agent.run("go")))
    assert refused
    check(refused[0])
