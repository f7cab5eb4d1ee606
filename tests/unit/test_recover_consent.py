"""Consent a tool declares and what a person answered a tool, behind the death of the process."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

from pydantic import Field

from footprint_core import (
    Agent,
    Ledger,
    MemoryLedger,
    Tool,
    ask_human,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.facts import CheckInAnswered, CheckInAsked, ToolFinished, ToolPaused
from footprint_core.providers import Scripted, call, reply
from prefixes import answered_by, cut_behind, facts_of_run, read
from story import describe, run

PAYS = (reply(calls=[call("1", "pay", {"amount": 5})]), reply(text="ok"))
YES: Any = check_in_approved(by="dana")
NO: Any = check_in_declined(by="dana: ops", note="too: much")

MADE_UP = itertools.count(1)
Stamp = Annotated[int, Field(default_factory=lambda: next(MADE_UP))]


def checked(*, fresh: bool = False) -> tuple[Tool, list[int]]:
    """A tool that asks for consent; fresh, it makes a value of its args up at each check."""
    paid: list[int] = []

    @tool(name="pay", check_in="always")
    async def stamped(amount: int, stamp: Stamp) -> str:
        paid.append(amount)
        return f"paid {amount} at {stamp}"

    @tool(check_in="always")
    async def pay(amount: int, stamp: int = 0) -> str:
        paid.append(amount)
        return f"paid {amount} at {stamp}"

    return (stamped if fresh else pay), paid


def no_question(*tools: Tool, replies: Any = PAYS) -> Any:
    def agent(ledger: Ledger, behind: int = 0) -> tuple[Agent, Scripted]:
        builder, model = describe(replies[behind:], *tools, ledger=ledger)
        return builder.build(), model

    return agent


def consented(answer: Any, *, fresh: bool = False) -> tuple[list[int], list[str], MemoryLedger, str]:
    whole = MemoryLedger()
    out = run(answered_by(no_question(checked(fresh=fresh)[0])(whole)[0], answer))
    ledger = cut_behind(whole, out.run_id, CheckInAnswered)
    pay, paid = checked(fresh=fresh)
    agent, model = no_question(pay)(ledger, 1)
    run(agent.recover(out.run_id))
    return paid, read(model), ledger, out.run_id


def test_an_approved_check_in_is_not_asked_again() -> None:
    paid, told, ledger, run_id = consented(YES)
    assert (paid, told) == ([5], ["paid 5 at 0"])
    assert sum(isinstance(fact, CheckInAsked) for fact in facts_of_run(ledger, run_id)) == 1


def test_a_declined_check_in_stays_one() -> None:
    paid, told, _, _ = consented(NO)
    assert paid == []
    assert told == ["A person declined this call to pay, so it was not run: too: much"]


def test_a_check_in_about_a_value_that_is_made_up_at_each_check_is_no_consent_behind_a_recovery() -> None:
    paid, told, _, _ = consented(YES, fresh=True)
    assert paid == []
    assert told == ["What would run of pay is not what a person approved, so it was not run."]


def asking_tool() -> tuple[Tool, list[str]]:
    ran: list[str] = []

    @tool
    def choose() -> str:
        ran.append("choose")
        ask_human("Which?")

    return choose, ran


CHOOSES = (reply(calls=[call("1", "choose", {})]), reply(text="ok"))


def test_what_a_person_answered_a_tool_is_its_result() -> None:
    whole = MemoryLedger()
    out = run(answered_by(no_question(asking_tool()[0], replies=CHOOSES)(whole)[0], {"colour": "blue"}))
    ledger = cut_behind(whole, out.run_id, ToolFinished)
    choose, ran = asking_tool()
    agent, model = no_question(choose, replies=CHOOSES)(ledger, 1)
    run(agent.recover(out.run_id))
    assert ran == []
    assert read(model) == ['{"colour":"blue"}']


def test_a_tool_that_asked_and_whose_question_was_never_opened_may_have_run() -> None:
    whole = MemoryLedger()
    out = run(answered_by(no_question(asking_tool()[0], replies=CHOOSES)(whole)[0], "blue"))
    ledger = cut_behind(whole, out.run_id, ToolPaused)
    choose, ran = asking_tool()
    agent, model = no_question(choose, replies=CHOOSES)(ledger, 1)
    run(agent.recover(out.run_id))
    assert ran == []
    assert "may have run" in read(model)[0]
