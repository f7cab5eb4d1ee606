"""What a turn comes to: an answer or one of three questions, and what each of them shows."""

from __future__ import annotations

from typing import Any

import pytest

from asked import DONE, NO, YES, Rule, Till, adds, asks, paused, pays, until_asked
from footprint_core import (
    Answer,
    AskPause,
    CheckInPause,
    Credential,
    CredentialRequest,
    HumanPause,
    allow,
    ask,
    demands_decision,
    is_ask_pause,
    is_check_in_pause,
    is_human_pause,
    is_paused,
    pause_here,
    tool,
)
from footprint_core.facts import (
    CheckInAsked,
    CredentialRequested,
    PauseOpened,
    SegmentEnded,
    ToolIntended,
)
from footprint_core.mcp import mock_mcp_client
from footprint_core.providers import call, reply
from story import answered, describe, run


@tool(name="person")
def person(amount: int) -> Any:
    pause_here({"amount": amount})


CALLS = {"ask": "pay", "check-in": "wipe", "human": "person"}
KINDS: dict[Any, str] = {Answer: "answer", AskPause: "ask", CheckInPause: "check-in", HumanPause: "human"}
ANSWERS: dict[str, Any] = {"ask": YES, "check-in": YES, "human": 7}


def agent_that(*said: Any) -> Any:
    """An agent with a tool for each kind of question, asked for in this order, each in a reply."""
    till = Till()
    wipe = tool(name="wipe", check_in="always")(person.body)
    only_pay = Rule("gate", lambda c: ask("Really?") if c.tool_name == "pay" else allow())
    replies = [
        DONE if kind == "answer" else reply(calls=[call(f"c{i}", CALLS[kind], {"amount": 1})])
        for i, kind in enumerate(said)
    ]
    return till.agent([*replies, DONE], [only_pay], till.pay(), wipe, person)


def told(outcome: Any) -> list[bool]:
    guards = (is_paused, is_ask_pause, is_check_in_pause, is_human_pause, demands_decision)
    return [guard(outcome) for guard in guards]


GUARDS = {
    "answer": [False, False, False, False, False],
    "ask": [True, True, False, False, True],
    "check-in": [True, False, True, False, True],
    "human": [True, False, False, True, False],
}


@pytest.mark.parametrize("kind", KINDS.values())
def test_every_door_gives_an_answer_or_one_of_three_pauses_and_the_guards_tell_them_apart(kind: str) -> None:
    async def go() -> list[Any]:
        first = await agent_that(kind).run("go")
        later = agent_that("answer", kind)
        await later.run("go")
        second = await later.follow_up("and")
        asking = agent_that("ask", kind)
        pause = await until_asked(asking)
        # The tool that was asked about is `pay`, so that the next question is the next reply's.
        return [first, second, await asking.resume(pause.checkpoint, YES)]

    for outcome in run(go()):
        assert KINDS[type(outcome)] == kind
        assert told(outcome) == GUARDS[kind]


def test_an_ask_suspends_before_anything_of_the_call_has_happened() -> None:
    touched: list[str] = []

    class Vault:
        async def credential(self, request: CredentialRequest, /) -> Credential:
            touched.append("credential")
            return Credential(kind="bearer", secret="s")

    def trips(args: Any) -> bool:
        touched.append("check-in")
        return True

    till = Till()
    pay = till.pay(needs="bank", check_in=trips, evidence=trips)
    behind = Rule("behind")
    builder, _ = describe(pays(500), pay, ledger=till.ledger, act={"before_tool": [asks(), behind]})
    pause = run(until_asked(builder.credentials(Vault()).build()))
    assert touched == []
    assert till.paid == []
    assert behind.shown == []
    facts = till.facts(pause.run_id)
    assert not [f for f in facts if isinstance(f, CheckInAsked | CredentialRequested | ToolIntended)]
    assert [type(f) for f in facts[-2:]] == [PauseOpened, SegmentEnded]


def test_an_ask_shows_the_rule_its_question_and_the_call_as_it_stands() -> None:
    till = Till()
    (pay,) = mock_mcp_client("bank", [till.pay()]).tools_now()
    rules = [adds(5, "surcharge"), asks(detail={"limit": 100}), adds(-1)]
    pause = run(until_asked(till.agent(pays(1, 500), rules, pay)))
    assert isinstance(pause, AskPause)
    assert (pause.middleware, pause.question, pause.detail) == ("four-eyes", "Really?", {"limit": 100})
    assert (pause.ask.middleware, pause.ask.question, pause.ask.detail) == (
        "four-eyes",
        "Really?",
        {"limit": 100},
    )
    assert (pause.tool_name, pause.tool_source, pause.tool_call_id) == ("pay", "bank", "c1")
    assert pause.args == {"amount": 505}
    assert pause.args_problem is None
    assert pause.decisions == till.ledger.decisions(pause.run_id)
    assert [(row.middleware, row.outcome, row.tool_call_id) for row in pause.decisions] == [
        ("surcharge", "allow", "c0"),
        ("four-eyes", "allow", "c0"),
        ("fee", "allow", "c0"),
        ("surcharge", "allow", "c1"),
        ("four-eyes", "ask", "c1"),
    ]


def test_a_later_question_shows_the_decisions_of_the_whole_run() -> None:
    till = Till()
    agent = till.agent(pays(500, 600), [asks()])

    async def go() -> Any:
        return paused(await agent.resume((await until_asked(agent)).checkpoint, NO))

    pause = run(go())
    assert [(row.segment, row.outcome, row.tool_call_id) for row in pause.decisions] == [
        (1, "ask", "c0"),
        (2, "deny", "c0"),
        (2, "ask", "c1"),
    ]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (pays("a lot"), "amount: expected integer, got string"),
        (pays([3]), "amount: expected integer, got array"),
        (pays(500, name="wire"), "no tool called wire"),
        (pays(500), None),
    ],
)
def test_an_ask_shows_what_is_wrong_with_the_args_as_advice(said: Any, problem: str | None) -> None:
    till = Till()
    agent = till.agent(said, [Rule("gate", lambda c: ask("Really?"))])
    pause = run(until_asked(agent))
    assert (problem is None) == (pause.args_problem is None)
    assert (problem or "") in (pause.args_problem or "")
    assert "a lot" not in (pause.args_problem or "")
    # It files nothing: the record is that of a call nothing is wrong with.
    sound = Till()
    other = run(until_asked(sound.agent(pays(500), [Rule("gate", lambda c: ask("Really?"))])))
    assert [type(f) for f in till.facts(pause.run_id)] == [type(f) for f in sound.facts(other.run_id)]


def test_what_is_wrong_with_the_args_decides_nothing() -> None:
    till = Till()
    mends = Rule("mends", lambda c: allow({"amount": 3}, why="a number"))
    agent = till.agent(pays("a lot"), [Rule("gate", lambda c: ask("Really?")), mends])

    async def go() -> None:
        pause = await until_asked(agent)
        assert pause.args_problem is not None
        answered(await agent.resume(pause.checkpoint, YES))

    run(go())
    assert till.paid == [3]


def test_args_a_rule_changed_before_the_question_are_what_the_person_and_the_rest_of_the_chain_see() -> None:
    till = Till()
    gate, behind = asks(), Rule("behind")
    agent = till.agent(pays(500), [adds(-1), gate, behind])

    async def go() -> None:
        pause = await until_asked(agent)
        assert pause.args == {"amount": 499}
        answered(await agent.resume(pause.checkpoint, YES))

    run(go())
    assert gate.args == [{"amount": 499}]
    assert behind.args == [{"amount": 499}]
    assert till.paid == [499]


def test_what_a_rule_puts_in_its_question_comes_back_unchanged() -> None:
    detail = {"key": "k-1", "n": [1, 2.5, None, True], "deep": {"ø": {}}}
    till = Till()
    pause = run(until_asked(till.agent(pays(500), [asks(detail=detail)])))
    assert pause.detail == detail
    nothing = run(until_asked(till.agent(pays(500), [asks()])))
    assert nothing.detail is None
