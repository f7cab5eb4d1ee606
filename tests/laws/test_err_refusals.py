"""A turn that cannot start says so before anything is asked; a provider's error reaches the caller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from footprint_core import (
    Agent,
    AskPause,
    InvalidRunInputError,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    NoConversationError,
    ProviderError,
    ToolCallContext,
    ToolOutcome,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
)
from footprint_core.events import FatalError, TurnEnded
from footprint_core.providers import Completed, ModelRequest, call, reply
from story import Seen, answered, describe, run

SECRET = "canary-77aa"


class Loud:
    """A value whose texts give it away."""

    def __repr__(self) -> str:
        return SECRET

    __str__ = __repr__


SHAPES: list[tuple[Any, str]] = [
    ("", "empty"),
    ("   ", "empty"),
    ("\n\t\u2003", "empty"),
    (None, "NoneType"),
    (5, "int"),
    (SECRET.encode(), "bytes"),
    ([SECRET], "list"),
    ({"text": SECRET}, "dict"),
    (Loud(), "Loud"),
]


@pytest.mark.parametrize("door", ["run", "follow_up", "run_typed", "run_sync"])
@pytest.mark.parametrize(("message", "shape"), SHAPES)
def test_a_message_that_is_none_is_refused_before_anything_is_asked(
    door: str, message: Any, shape: str
) -> None:
    asked: list[str] = []

    @on_message("rule")
    def rule(message: MessageContext) -> MessageOutcome:
        asked.append(message.content)
        return allow()

    seen, ledger = Seen(), MemoryLedger()
    builder, model = describe([reply(text="hello")], act={"input": [rule]}, watch=[seen], ledger=ledger)
    agent = builder.build()

    async def go() -> None:
        await getattr(agent, door)(message)

    with pytest.raises(InvalidRunInputError) as refused:
        agent.run_sync(message) if door == "run_sync" else run(go())
    assert f"{door}()" in str(refused.value)
    assert shape in str(refused.value)
    assert SECRET not in str(refused.value)
    assert (asked, model.requests, seen.events, agent.last_run_id) == ([], [], [], None)
    assert (refused.value.run_id, refused.value.segment) == (None, None)


def test_a_follow_up_needs_a_conversation_that_was_finished() -> None:
    @on_message("censor")
    def censor(message: MessageContext) -> MessageOutcome:
        return deny("no") if "bad" in message.content else allow()

    builder, model = describe([reply(text="fine")], act={"input": [censor]})
    agent = builder.build()

    async def go() -> None:
        with pytest.raises(NoConversationError):
            await agent.follow_up("and then?")
        with pytest.raises(MessageDeniedError):
            await agent.run("bad")
        # A turn that was refused is no conversation.
        with pytest.raises(NoConversationError) as refused:
            await agent.follow_up("and then?")
        assert (refused.value.run_id, refused.value.segment) == (None, None)
        assert model.requests == []
        answered(await agent.run("good"))
        with pytest.raises(NoConversationError):
            await agent.session().follow_up("and then?")

    run(go())


class OverloadedError(Exception):
    """What a provider raises."""


class Failing:
    """A provider that gives its replies and then raises."""

    name = "shaky"

    def __init__(self, *replies: Completed) -> None:
        self._replies = list(replies)
        self.error = OverloadedError(SECRET)

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Completed]:
        if not self._replies:
            raise self.error
        yield self._replies.pop(0)


PAYS = reply(calls=[call("c1", "pay", {"amount": 500})])


def pay(amount: int) -> int:
    """Pay."""
    return amount


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?")


def check(error: ProviderError, provider: Failing, seen: Seen) -> None:
    assert error.__cause__ is provider.error
    assert (error.provider, error.error_class) == ("shaky", "OverloadedError")
    assert SECRET not in str(error)
    fatal, end = seen.events[-2:]
    assert isinstance(fatal, FatalError)
    assert isinstance(end, TurnEnded)
    assert (end.outcome, fatal.error_class, fatal.stage) == ("failed", "OverloadedError", "model")


@pytest.mark.parametrize("replies", [(), (PAYS,)])
def test_what_a_provider_raises_is_the_cause_and_comes_after_the_turn_has_ended(replies: Any) -> None:
    seen, provider = Seen(), Failing(*replies)
    agent = Agent.create(provider=provider, model="m", name="tested").tool(pay).watch(seen).build()

    async def go() -> ProviderError:
        with pytest.raises(ProviderError) as failed:
            await agent.run("go")
        # Whoever reads the error finds the end on record already.
        check(failed.value, provider, seen)
        return failed.value

    error = run(go())
    assert (error.run_id, error.segment) == (agent.last_run_id, 1)


def test_what_a_provider_raises_behind_a_pause_reaches_whoever_resumed() -> None:
    seen, provider = Seen(), Failing(PAYS)
    builder = Agent.create(provider=provider, model="m", name="tested").tool(pay).watch(seen)
    agent = builder.act(before_tool=[four_eyes]).build()

    async def go() -> ProviderError:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        with pytest.raises(ProviderError) as failed:
            await agent.resume(pause.checkpoint, check_in_approved(by="dana"))
        check(failed.value, provider, seen)
        return failed.value

    error = run(go())
    assert (error.run_id, error.segment) == (agent.last_run_id, 2)
