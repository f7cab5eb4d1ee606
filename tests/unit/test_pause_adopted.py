"""A session that answers the pause of another conversation goes on with that one, and mixes it with none."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    Agent,
    AskPause,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    NoConversationError,
    ToolCallContext,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
)
from footprint_core.providers import call, reply
from story import answered, describe, run


@before_tool("gate")
def gate(call: ToolCallContext) -> Any:
    return ask("?")


@on_message("no-answers")
def no_answers(message: MessageContext) -> Any:
    return deny("never") if message.content == "done" else allow()


def act() -> str:
    return "did"


def agent(ledger: MemoryLedger, *said: Any, **act_on: Any) -> Agent:
    rules: Any = {"before_tool": [gate], **act_on}
    builder, _ = describe(said, act, ledger=ledger, act=rules)
    built: Agent = builder.build()
    return built


def test_a_first_turn_of_another_conversation_that_is_denied_leaves_none_to_follow_up_on() -> None:
    async def go() -> None:
        ledger = MemoryLedger()
        theirs = agent(ledger, reply(calls=[call("c", "act", {})])).session(conversation_id="theirs")
        paused = await theirs.run("a question of theirs")
        assert isinstance(paused, AskPause)
        denying = agent(ledger, reply(text="hello"), reply(text="done"), output=[no_answers])
        ours = denying.session(conversation_id="ours")
        answered(await ours.run("a question of ours"))
        with pytest.raises(MessageDeniedError):
            await ours.resume(paused.checkpoint, check_in_approved(by="dana"), rewalk=True)
        assert ours.conversation_id == "theirs"
        with pytest.raises(NoConversationError):
            await ours.follow_up("and now?")

    run(go())
