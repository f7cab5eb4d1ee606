"""A model that streams: the caller gets what the output rules let through, and nothing before."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from footprint_core import MemoryLedger, MessageContext, MessageDeniedError, allow, deny, on_message
from footprint_core.events import TokenStreamed
from footprint_core.providers import Scripted, call, reply
from story import Seen, answered, describe, run

NUMBER = "4111-1111"
TOKENS = ["the number ", "is 4111", "-1111", ", keep it"]
TALKING = reply(tokens=["I look ", NUMBER, " up"], calls=[call("c1", "look", {})])


def look() -> str:
    return "found"


def _mask(message: MessageContext) -> Any:
    return allow(message.content.replace(NUMBER, "[number]"), why="masked")


def _refuse(message: MessageContext) -> Any:
    return deny("it names a number") if NUMBER in message.content else allow()


def _turn(hook: Any, seen: Seen, ledger: MemoryLedger) -> tuple[Any, Scripted]:
    builder, model = describe(
        [TALKING, reply(tokens=TOKENS)],
        look,
        watch=[seen],
        ledger=ledger,
        act={"output": [on_message("numbers")(hook)]},
    )
    model.streaming = True
    return builder.build(), model


def _told(seen: Seen) -> str:
    return msgspec.json.encode(seen.events).decode()


def test_c001_the_caller_gets_the_text_the_output_rules_let_through_and_no_other() -> None:
    seen, ledger = Seen(), MemoryLedger()
    agent, _ = _turn(_mask, seen, ledger)
    outcome = answered(run(agent.run("go")))
    assert outcome.text == "the number is [number], keep it"
    chunks = [(event.iteration, event.token_index, event.chars) for event in seen.of(TokenStreamed)]
    assert chunks == [(1, 0, 7), (1, 1, 9), (1, 2, 3), *[(2, i, len(t)) for i, t in enumerate(TOKENS)]]
    assert not any(part in _told(seen) for part in (NUMBER, "4111", "keep it", "the number"))


def test_c001_a_refused_answer_leaves_nothing_of_itself_with_the_caller() -> None:
    seen, ledger = Seen(), MemoryLedger()
    agent, model = _turn(_refuse, seen, ledger)
    with pytest.raises(MessageDeniedError, match="it names a number") as caught:
        run(agent.run("go"))
    assert "4111" not in repr(caught.value) + str(vars(caught.value)) + _told(seen)
    model._replies = (*model._replies, reply(text="fine"))
    answered(run(agent.run("again")))
    assert "4111" not in str(model.requests[-1].messages[:])


def test_c013_until_the_last_output_rule_has_decided_the_caller_has_nothing() -> None:
    async def story() -> None:
        asked, decide = asyncio.Event(), asyncio.Event()

        async def slow(message: MessageContext) -> Any:
            asked.set()
            await decide.wait()
            return _mask(message)

        seen, ledger = Seen(), MemoryLedger()
        agent, _ = _turn(slow, seen, ledger)
        turn = asyncio.ensure_future(agent.run("go"))
        await asyncio.wait_for(asked.wait(), 10)
        # Every chunk has arrived by now, and all that anybody was told of them are counts.
        assert len(seen.of(TokenStreamed)) == 3 + len(TOKENS)
        assert not turn.done()
        assert "4111" not in _told(seen)
        decide.set()
        assert answered(await turn).text == "the number is [number], keep it"

    run(story())
