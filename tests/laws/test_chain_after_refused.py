"""A conversation that cannot go on behind a run is refused by name, and what it does not need may be gone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import msgspec
import pytest

from footprint_core import (
    Agent,
    Batch,
    BuilderError,
    FootprintError,
    MemoryLedger,
    MessageContext,
    MessageLostError,
    MessageOutcome,
    NoConversationError,
    Permission,
    RunError,
    ToolCallContext,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
    tool,
)
from footprint_core.facts import RunConfigured
from footprint_core.mcp import mcp_serve
from footprint_core.providers import call, reply
from laws.test_chain_after import read, reads
from served import Kept, served
from story import answered, describe, run

CANARY = "canary-9f31"


def refusal(agent: Agent, after: Any) -> str:
    """Why a session is refused, in one sentence."""
    with pytest.raises(RunError) as refused:
        agent.session(after=after)
    said = str(refused.value)
    assert isinstance(refused.value, NoConversationError | MessageLostError)
    assert said.endswith(".")
    assert "\n" not in said
    assert CANARY not in said
    assert refused.value.run_id in {after, None}
    return said


class Policy:
    """Halts every call."""

    name = "policy"

    def check(self, call: ToolCallContext, /) -> Permission:
        return Permission(result="halt", reason=CANARY)


ENDINGS = ("paused", "denied", "halted", "failed", "cancelled", "still open")


async def ended(agent: Agent) -> str:
    with suppress(FootprintError, asyncio.CancelledError):
        await agent.run(CANARY)
    return agent.last_run_id or ""


@pytest.mark.parametrize("end", ENDINGS)
def test_a_run_that_came_to_no_answer_is_refused_with_how_it_ended(end: str) -> None:
    @before_tool("gate")
    def gate(asked: ToolCallContext) -> Any:
        if end == "cancelled":
            raise asyncio.CancelledError
        return ask(CANARY) if end == "paused" else allow()

    @on_message("answer")
    def answer(message: MessageContext) -> MessageOutcome:
        return deny(CANARY) if end == "denied" else allow()

    ledger = MemoryLedger()
    said = [reads(1)] if end == "failed" else [reads(1), reply(text=CANARY)]
    builder, model = describe(said, read, ledger=ledger, act={"before_tool": [gate], "output": [answer]})
    if end == "halted":
        builder.permission(Policy())
    agent = builder.build()
    run_id = run(ended(agent))
    if end == "still open":
        # As a process leaves it that died before the end.
        entries = ledger.entries(run_id)[:-1]
        run_id = "died"
        ledger.append_inline(Batch(run_id=run_id, segment=1, entries=entries))
    requests = len(model.requests)
    assert refusal(agent, run_id) == (
        f"The run {run_id} has no answer, it is {end}; go on behind a run that has one."
    )
    assert len(model.requests) == requests


def test_a_run_that_paused_can_be_gone_on_behind_once_its_question_is_answered() -> None:
    agents: list[Agent] = []
    meanwhile: list[str] = []

    def look(page: int) -> str:
        meanwhile.append(refusal(agents[0], agents[0].last_run_id))
        return "looked"

    rule = before_tool("gate")(lambda _: ask("may I?"))
    said = [reply(calls=[call("c1", "look", {"page": 1})]), reply(text="one"), reply(text="two")]
    builder, model = describe(said, look, act={"before_tool": [rule]})
    agent = builder.build()
    agents.append(agent)

    async def go() -> None:
        pause = cast("Any", await agent.run("go"))
        assert "it is paused" in refusal(agent, pause.run_id)
        await agent.resume(pause.checkpoint, check_in_approved(by="dana"))
        answered(await agent.session(after=pause.run_id).follow_up("and?"))

    run(go())
    # The segment that answers it has no end yet.
    assert ["it is still open" in one for one in meanwhile] == [True]
    assert [message.text for message in model.requests[-1].messages] == ["go", "", "looked", "one", "and?"]


def test_a_run_the_ledger_does_not_have_is_refused_and_what_is_no_id_is_not_repeated() -> None:
    builder, _ = describe([reply(text="one")])
    agent = builder.build()
    run_id = answered(run(agent.run("go"))).run_id
    other = describe([])[0].build()
    assert refusal(other, run_id) == (
        f"The run {run_id} is not in this ledger; go on with the ledger that has it."
    )
    for text in ("", f"what about {CANARY}?", "\ud800"):
        assert "The run that was given is not in this ledger" in refusal(agent, text)
    for thing in (7, b"run", ["run"]):
        with pytest.raises(BuilderError, match="takes the id of a run as a text"):
            agent.session(after=thing)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_an_earlier_run_of_the_conversation_that_is_not_there_is_refused_too() -> None:
    first, second = MemoryLedger(), MemoryLedger()
    builder, _ = describe([reply(text="one"), reply(text="two")], ledger=first)
    agent = builder.build()

    async def go() -> tuple[str, str]:
        return answered(await agent.run("go")).run_id, answered(await agent.follow_up("and?")).run_id

    one, two = run(go())
    second.append_inline(Batch(run_id=two, segment=1, entries=first.entries(two)))
    builder, _ = describe([], ledger=second)
    with pytest.raises(NoConversationError, match=f"The run {one} is not in this ledger") as refused:
        builder.build().session(after=two)
    assert refused.value.run_id == one


def test_a_run_of_another_agent_is_refused() -> None:
    ledger = MemoryLedger()
    builder, _ = describe([reply(text="one")], ledger=ledger, id="theirs")
    run_id = answered(run(builder.build().run("go"))).run_id
    builder, _ = describe([], ledger=ledger, id="ours")
    assert refusal(builder.build(), run_id) == (
        f"The run {run_id} belongs to the agent 'theirs', not to 'ours'; go on with that one."
    )


def test_a_run_of_which_another_ledger_has_the_messages_is_refused() -> None:
    rule = before_tool("gate")(lambda _: ask("may I?"))
    builder, _ = describe([reads(1)], read, act={"before_tool": [rule]})

    async def go() -> tuple[Agent, str]:
        pause = cast("Any", await builder.build().run("go"))
        there, _ = describe([reply(text="one")], read, act={"before_tool": [rule]})
        agent = there.build()
        answered(await agent.resume(pause.checkpoint, check_in_approved(by="dana")))
        return agent, pause.run_id

    agent, run_id = run(go())
    assert refusal(agent, run_id) == (
        f"The run {run_id} came here behind a pause, without its messages; go on with the ledger it began in."
    )


def test_a_call_a_client_made_is_no_conversation() -> None:
    ledger = Kept()
    serving = mcp_serve(name="tested", tools=[tool(name="get")(lambda: "got")], ledger=ledger)
    run(served(serving, "get"))
    builder, _ = describe([], ledger=ledger)
    run_id = ledger.runs[0]
    assert refusal(builder.build(), run_id) == (
        f"The run {run_id} took no message, it is a client's call; go on behind a run of run()."
    )


def test_a_ledger_whose_runs_follow_each_other_in_a_circle_ends_nowhere_else() -> None:
    ledger = MemoryLedger()
    builder, _ = describe([reply(text="one"), reply(text="two")], ledger=ledger)
    agent = builder.build()
    run_id = answered(run(agent.run("go"))).run_id
    opening, *rest = ledger.entries(run_id)
    assert isinstance(opening.fact, RunConfigured)
    itself = msgspec.structs.replace(opening.fact, follows="itself")
    entries = (msgspec.structs.replace(opening, fact=itself), *rest)
    ledger.append_inline(Batch(run_id="itself", segment=1, entries=entries))
    answered(run(agent.session(after="itself").follow_up("and?")))
