"""The rules about a message have decided before anything else begins."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from footprint_core import MemoryLedger, MessageContext, MessageDeniedError, allow, deny, on_message
from footprint_core.facts import MessageTaken, RunConfigured
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("door", ["run", "follow_up"])
def test_c011_nothing_begins_before_every_input_rule_has_decided(
    door: str, refuses: bool, parallel: bool
) -> None:
    async def story() -> None:
        asked, decide = asyncio.Event(), asyncio.Event()
        began: list[str] = []

        async def slow(message: MessageContext) -> Any:
            if message.phase == "input" and message.content == "go":
                asked.set()
                await decide.wait()
                return deny("not this") if refuses else allow(why="looked")
            return allow()

        def act() -> str:
            began.append("tool")
            return "acted"

        def last(message: MessageContext) -> Any:
            began.append(f"{message.phase}: {message.content}")
            return allow()

        ledger, seen = MemoryLedger(), Seen()
        hello = [reply(text="hello")] if door == "follow_up" else []
        builder, model = describe(
            [*hello, reply(calls=[call("c1", "act", {})]), reply(text="done")],
            act,
            ledger=ledger,
            watch=[seen],
            act={"input": [on_message("slow")(slow), on_message("last")(last)]},
            parallel_tools=parallel,
        )
        agent = builder.build()
        if hello:
            answered(await agent.run("hi"))
        requests = len(model.requests)
        began.clear()
        seen.events.clear()
        turn = asyncio.ensure_future(getattr(agent, door)("go"))
        await asyncio.wait_for(asked.wait(), 10)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (began, len(model.requests) - requests, seen.types) == ([], 0, ["agent.run_configured"])
        facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
        assert [type(fact) for fact in facts] == [RunConfigured]
        decide.set()
        if refuses:
            with pytest.raises(MessageDeniedError):
                await turn
            assert (began, len(model.requests) - requests) == ([], 0)
            taken = [e.fact for e in ledger.entries(agent.last_run_id or "")]
            assert not any(
                isinstance(fact, MessageTaken) and fact.text is not msgspec.UNSET for fact in taken
            )
        else:
            answered(await turn)
            assert began[:2] == ["input: go", "tool"]

    run(story())
