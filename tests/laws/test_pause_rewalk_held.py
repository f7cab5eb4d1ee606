"""Questions that waited behind a pause are asked anew where everything is asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from footprint_core import (
    AskPause,
    HumanPause,
    MemoryLedger,
    Outcome,
    ToolCallContext,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    pause_here,
    tool,
)
from footprint_core.events import ToolCallStarted
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

CALLS = [call("h", "person", {}), call("r", "risky", {}), call("z", "risky", {})]


def rule(name: str, verdict: Any) -> Any:
    @before_tool(name)
    def decides(call: ToolCallContext) -> Any:
        return verdict(call) if call.tool_name == "risky" else allow()

    return decides


def paused_behind(ledger: MemoryLedger, ran: list[str], rules: list[Any], *said: Any) -> Any:
    @tool(inline=True)
    def person() -> str:
        ran.append("person")
        pause_here("who?")

    @tool(inline=True)
    def risky() -> str:
        ran.append("risky")
        return "did"

    seen = Seen()
    builder, model = describe(
        said, person, risky, ledger=ledger, watch=[seen], act={"before_tool": rules}, parallel_tools=True
    )
    return builder.build(), model, seen


@pytest.mark.parametrize(
    ("rules", "runs"),
    [
        ([rule("q", lambda call: deny("never"))], 0),
        ([], 2),
        ([rule("new", lambda call: allow(why="looked")), rule("q", lambda call: ask("now?"))], 2),
    ],
)
def test_a_question_that_waited_is_asked_by_the_rules_there_are_now(rules: list[Any], runs: int) -> None:
    ledger, ran = MemoryLedger(), list[str]()

    async def go() -> tuple[Seen, Seen]:
        old = [rule("q", lambda call: ask("then?"))]
        first, _, before = paused_behind(ledger, ran, old, reply(calls=CALLS))
        out: Outcome = await first.run("go")
        assert isinstance(out, HumanPause)
        agent, _, behind = paused_behind(ledger, ran, rules, reply(text="ok"))
        out = await agent.resume(json.loads(json.dumps(out.checkpoint)), "me", rewalk=True)
        while isinstance(out, AskPause):
            assert out.question == "now?"
            agent, _, _ = paused_behind(ledger, ran, rules, reply(text="ok"))
            out = await agent.resume(json.loads(json.dumps(out.checkpoint)), check_in_approved(by="dana"))
        assert answered(out).text == "ok"
        return before, behind

    before, behind = run(go())
    assert ran == ["person", *["risky"] * runs]
    started = [event.tool_call_id for seen in (before, behind) for event in seen.of(ToolCallStarted)]
    # The call that waited was taken up once, and the one behind it when its turn came.
    assert started.count("h") == started.count("r") == 1
    assert started.count("z") <= 1
