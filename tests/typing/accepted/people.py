"""Every way a run waits for a person, and how each is answered."""

from __future__ import annotations

import asyncio
import json
from typing import assert_never, assert_type

from footprint_core import (
    Agent,
    Answer,
    AskPause,
    CheckInPause,
    HumanPause,
    Outcome,
    Pause,
    PersonDecision,
    ToolArgs,
    ToolCallContext,
    ToolOutcome,
    allow,
    approve_once,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    check_in_declined,
    demands_decision,
    is_ask_pause,
    is_check_in_pause,
    is_human_pause,
    is_paused,
    pause_here,
    tool,
)
from footprint_core.providers import Scripted, call, reply


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    if call.tool_name == "pay":
        return ask("Pay?", detail={"amount": call.args["amount"]}, expires_in=3600.0)
    return allow()


once = approve_once(name="once", question="Any letter?", tools=["write"], by="tool")


def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


def much(args: ToolArgs) -> bool:
    return len(args["items"]) > 1


@tool(check_in=much, evidence=lambda args: {"items": len(args["items"])})
def order(items: list[str]) -> str:
    """Order items."""
    return f"ordered {len(items)}"


@tool(check_in="always")
async def close() -> str:
    """Close the account."""
    await asyncio.sleep(0)
    return "closed"


def choose(about: str) -> str:
    """Let a person choose."""
    ask_human(f"Which {about}?", colours=["red", "blue"])


def hand_over() -> str:
    """Hand over to a person."""
    pause_here({"queue": "second line"})


def write() -> str:
    """Write a letter."""
    return "written"


def decision_about(pause: AskPause | CheckInPause) -> PersonDecision:
    if pause.tool_name == "close":
        return check_in_declined(by="dana", note="Not today.")
    return check_in_approved(by="dana")


def answer_to(pause: Pause) -> object:
    match pause:
        case AskPause(middleware="once", detail=detail):
            once.remember(detail, by="dana")
            return decision_about(pause)
        case AskPause() | CheckInPause():
            return decision_about(pause)
        case HumanPause(data={"question": str(question)}):
            return f"Not {question}"
        case HumanPause():
            return {"taken": True}
        case _:
            assert_never(pause)


def seen(outcome: Outcome) -> str:
    match outcome:
        case Answer(text=text):
            return text
        case AskPause(question=question):
            return question
        case CheckInPause(evidence=evidence):
            return f"consent: {evidence}"
        case HumanPause(data=data):
            return json.dumps(data)
        case _:
            assert_never(outcome)


def guarded(outcome: Outcome) -> str:
    if is_ask_pause(outcome):
        assert_type(outcome, AskPause)
        return "ask"
    if is_check_in_pause(outcome):
        assert_type(outcome, CheckInPause)
        return "check-in"
    if is_human_pause(outcome):
        assert_type(outcome, HumanPause)
        return "human"
    assert_type(outcome, Answer)
    return "answer"


async def main() -> None:
    asked = [
        call("1", "pay", {"amount": 5}),
        call("2", "order", {"items": ["pen", "ink"]}),
        call("3", "close", {}),
        call("4", "choose", {"about": "colour"}),
        call("5", "hand_over", {}),
        call("6", "write", {}),
    ]
    builder = Agent.create(provider=Scripted([reply(calls=asked), reply(text="Done.")]), model="m", name="p")
    builder.tool(pay, order, close, choose, hand_over, write).act(before_tool=[four_eyes, once])
    agent = builder.build()
    said: list[str] = []
    kinds: list[str] = []
    decided = 0
    outcome = await agent.run("Do it all")
    while is_paused(outcome):
        assert_type(outcome, Pause)
        said.append(seen(outcome))
        kinds.append(guarded(outcome))
        if demands_decision(outcome):
            assert_type(outcome, AskPause | CheckInPause)
            decided += 1
        if len(kinds) % 2:
            outcome = await agent.resume(outcome.checkpoint, answer_to(outcome))
        else:
            outcome = await agent.resume(pause_id=outcome.pause_id, answer=answer_to(outcome))
    assert outcome.text == "Done."
    assert kinds == ["ask", "check-in", "check-in", "human", "human", "ask"]
    assert decided == 4
    assert said[1] == "consent: {'items': 2}"


if __name__ == "__main__":
    asyncio.run(main())
