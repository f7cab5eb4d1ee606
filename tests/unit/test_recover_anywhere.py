"""A run cut off behind any of its entries goes on to the end it would have come to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from conversations import asked_for
from footprint_core import (
    Agent,
    AgentBuilder,
    Answer,
    Ledger,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    Permission,
    PolicyHaltError,
    RecoverError,
    ToolContext,
    after_tool,
    allow,
    deny,
    on_message,
    sliding_window,
    static_credentials,
    summarize_oldest,
    token_budget,
    tool,
)
from footprint_core.facts import Fact, MessageTaken, ModelReplied, SegmentEnded, Usage
from footprint_core.providers import Scripted, call, reply
from footprint_core.state import RunState
from prefixes import cut_behind, cuts, facts_of_run
from story import answered, describe, run

PAGE = "lorem ipsum dolor " * 80
OVER = Usage(input=1500, output=5)


@tool(idempotent=True)
def read(page: int) -> str:
    """Read."""
    return f"{page} {PAGE}"


@tool(idempotent=True, needs="bank")
async def pay(amount: int, context: ToolContext) -> dict[str, Any]:
    """Pay."""
    assert context.credential is not None
    return {"paid": amount, "who": context.identity}


class Ten:
    """A schema that takes the number ten."""

    instruction = "ten"

    def check(self, value: Any, /) -> object:
        if value != 10:
            raise ValueError("ten is expected")
        return value


def louder(message: MessageContext) -> Any:
    return allow(f"{message.content} ", why="louder")


def reading(*pages: int) -> list[Any]:
    return [reply(calls=[call(f"w{i}", "read", {"page": i})], usage=OVER) for i in pages]


def schema(builder: AgentBuilder) -> None:
    builder.output_schema(Ten(), retries=2).act(output=[on_message("louder", version="1")(louder)])


def summaries(builder: AgentBuilder) -> None:
    strategy = summarize_oldest(
        threshold_tokens=1000, keep_recent_turns=1, summarizer=Scripted([reply(text="short")] * 9), model="s"
    )
    builder.window(strategy)


def tokens(builder: AgentBuilder) -> None:
    builder.window(token_budget(threshold_tokens=1000, keep_recent_turns=1))


def sliding(builder: AgentBuilder) -> None:
    builder.window(sliding_window(keep_recent_turns=1))


def credentials(builder: AgentBuilder) -> None:
    rule = after_tool("wraps", version="1")(lambda ended: allow([ended.result], why="wrapped"))
    builder.act(after_tool=[rule]).credentials(static_credentials({"bank": "hunter22"}))


def nothing(_: AgentBuilder) -> None:
    """An agent as it is."""


STORIES: dict[str, tuple[list[Any], Callable[[AgentBuilder], None], dict[str, Any]]] = {
    "an answer that is asked for again": (
        [reply(text=text) for text in ("nine", "9", "10")],
        schema,
        {},
    ),
    "an answer that never matches": ([reply(text=text) for text in ("7", "8", "9")], schema, {}),
    "a window that is summarized": ([*reading(1, 2, 3, 4), reply(text="done")], summaries, {}),
    "a window that is trimmed by tokens": ([*reading(1, 2, 3, 4), reply(text="done")], tokens, {}),
    "a window that slides": ([*reading(1, 2, 3, 4), reply(text="done")], sliding, {}),
    "a budget that is wrapped up": (
        [*reading(1, 2), *reading(3), reply(text="that was all")],
        sliding,
        {"max_iterations": 3},
    ),
    "a budget that cuts short": (
        [*reading(1), reply(text="half", calls=[call("x", "read", {"page": 9})])],
        nothing,
        {"max_iterations": 2, "wrap_up": False},
    ),
    "calls that run together": (
        [reply(calls=[call(f"{i}", "pay", {"amount": i}) for i in range(3)]), reply(text="done")],
        credentials,
        {"parallel_tools": True},
    ),
    "calls that are none": (
        [
            reply(
                calls=[
                    call("1", "read", {"page": 1}),
                    call("1", "read", {"page": 2}),
                    call("2", "read", {"page": "x"}),
                    call("3", "unknown", {}),
                ]
            ),
            *reading(1),
            reply(text="done"),
        ],
        nothing,
        {},
    ),
}


def agent_of(story: str, ledger: Ledger, behind: int = 0) -> tuple[Agent, Scripted]:
    replies, more, options = STORIES[story]
    builder, model = describe(replies[behind:], read, pay, ledger=ledger, **options)
    more(builder)
    return builder.build(), model


@pytest.mark.parametrize("story", STORIES)
def test_it_ends_the_same_wherever_its_process_died(story: str) -> None:
    async def play() -> None:
        whole = MemoryLedger()
        agent, model = agent_of(story, whole)
        wanted = answered(await agent.run("go", identity={"user": "ada"}))
        requests = asked_for(model)
        for before, ledger in cuts(whole, wanted.run_id):
            if not any(isinstance(fact, MessageTaken) for fact in before):
                continue
            replied = sum(isinstance(fact, ModelReplied) for fact in before)
            again, other = agent_of(story, ledger, replied)
            got = answered(await again.recover(wanted.run_id))
            assert asked_for(other) == requests[replied:], before[-1]
            assert _told(got) == _told(wanted), before[-1]
            assert _totals(ledger, wanted.run_id) == _totals(whole, wanted.run_id), before[-1]

    asyncio.run(play())


def _told(answer: Answer) -> Any:
    return (answer.text, answer.stopped_early, answer.schema_met, answer.schema_stage, answer.value)


def _totals(ledger: Ledger, run_id: str) -> Any:
    end = facts_of_run(ledger, run_id)[-1]
    assert isinstance(end, SegmentEnded)
    return (end.iterations, end.input_tokens, end.output_tokens, end.text)


def test_a_halt_that_is_not_the_end_of_its_segment_is_decided_again() -> None:
    class Halts:
        """Ends the run at the second call."""

        name = "halts"

        def check(self, given: Any, /) -> Permission:
            return Permission(result="halt" if given.args["page"] == 2 else "allow", reason="enough")

    replies = [reply(calls=[call(f"{i}", "read", {"page": i}) for i in (1, 2, 3)]), reply(text="done")]

    def agent(ledger: Ledger, said: Any) -> Agent:
        builder, _ = describe(said, read, ledger=ledger, parallel_tools=True)
        return builder.permission(Halts()).build()

    whole = MemoryLedger()
    first = agent(whole, replies)
    with pytest.raises(PolicyHaltError):
        run(first.run("go"))
    assert first.last_run_id
    halted = 0
    for before, ledger in cuts(whole, first.last_run_id):
        replied = sum(isinstance(fact, ModelReplied) for fact in before)
        if any(isinstance(fact, MessageTaken) for fact in before) and not _cut_short(before):
            with pytest.raises(PolicyHaltError):
                run(agent(ledger, replies[replied:]).recover(first.last_run_id))
            halted += 1
    assert halted > 8


def _cut_short(before: tuple[Fact, ...]) -> bool:
    """Whether the halt was answered already, and the end of the segment alone is missing."""
    return any(getattr(fact, "call_id", None) == "2" and hasattr(fact, "executed") for fact in before)


def test_a_follow_up_is_recovered_behind_the_conversation_it_goes_on_with() -> None:
    async def play() -> None:
        whole = MemoryLedger()
        said = [reply(text="one"), *reading(1), reply(text="two"), reply(text="three")]

        def agent(ledger: Ledger, behind: int) -> tuple[Agent, Scripted]:
            builder, model = describe(said[behind:], read, ledger=ledger)
            return builder.build(), model

        first, model = agent(whole, 0)
        await first.run("first")
        wanted = answered(await first.follow_up("second"))
        await first.follow_up("third")
        requests = asked_for(model)
        for before, ledger in cuts(whole, wanted.run_id):
            if not any(isinstance(fact, MessageTaken) for fact in before):
                continue
            replied = 1 + sum(isinstance(fact, ModelReplied) for fact in before)
            again, other = agent(ledger, replied)
            assert answered(await again.recover(wanted.run_id)).text == "two"
            # The conversation is the session's from then on, and any other session's that asks for it.
            await again.follow_up("third")
            assert asked_for(other) == requests[replied:]
            elsewhere, last = agent(ledger, 3)
            out = answered(await elsewhere.session(after=wanted.run_id).follow_up("third"))
            assert (out.text, asked_for(last)) == ("three", requests[3:])

    asyncio.run(play())


def test_a_recovery_that_comes_to_no_answer_leaves_the_conversation_before_the_turn() -> None:
    async def play() -> None:
        def agent(ledger: Ledger, said: list[Any], refused: str) -> tuple[Agent, Scripted]:
            def hook(message: MessageContext) -> Any:
                return deny("no") if message.content == refused else allow()

            act: Any = {"output": [on_message("strict", version="1")(hook)]}
            builder, model = describe(said, read, ledger=ledger, act=act)
            return builder.build(), model

        whole = MemoryLedger()
        first, _ = agent(whole, [reply(text="one"), reply(text="two")], "")
        await first.run("first")
        second = answered(await first.follow_up("second")).run_id
        ledger = cut_behind(whole, second, MessageTaken)
        again, model = agent(ledger, [reply(text="two"), reply(text="three")], "two")
        with pytest.raises(MessageDeniedError):
            await again.recover(second)
        with pytest.raises(RecoverError, match="is over, it is denied"):
            await again.recover(second)
        out = answered(await again.follow_up("instead"))
        said = [message.text for message in model.requests[-1].messages]
        assert (out.text, said) == ("three", ["first", "one", "instead"])

    asyncio.run(play())


def test_what_is_on_record_of_a_recovered_run_folds_to_what_it_was() -> None:
    async def play() -> None:
        whole = MemoryLedger()
        story = "a window that is trimmed by tokens"
        wanted = answered(await agent_of(story, whole)[0].run("go"))
        reference = RunState()
        for fact in facts_of_run(whole, wanted.run_id):
            reference.apply(fact)
        for before, ledger in cuts(whole, wanted.run_id):
            if not any(isinstance(fact, MessageTaken) for fact in before):
                continue
            replied = sum(isinstance(fact, ModelReplied) for fact in before)
            await agent_of(story, ledger, replied)[0].recover(wanted.run_id)
            state = RunState()
            for fact in facts_of_run(ledger, wanted.run_id):
                state.apply(fact)
            assert json.dumps(state.to_plain()) == json.dumps(reference.to_plain())

    asyncio.run(play())
