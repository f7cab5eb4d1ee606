"""What an approval and a decline do: the chain goes on behind the question, through every gate again."""

from __future__ import annotations

from typing import Any

import pytest

from asked import DONE, NO, YES, Checker, Reads, Rule, Till, adds, asks, pays, until_asked
from footprint_core import (
    Permission,
    PolicyHaltError,
    allow,
    ask,
    check_in_approved,
    check_in_declined,
    deny,
    pause_here,
    tool,
)
from footprint_core.facts import Decided, PauseAnswered, PermissionChecked, ToolIntended
from footprint_core.providers import call, reply
from story import answered, run


def resumed(agent: Any, decision: Any = YES, **options: Any) -> Any:
    """The answer of a turn whose question got a decision."""

    async def go() -> Any:
        pause = await until_asked(agent, **options)
        return answered(await agent.resume(pause.checkpoint, decision))

    return run(go())


def test_an_approval_runs_the_real_tool_and_the_model_reads_what_the_tool_says() -> None:
    till = Till()
    resumed(till.agent(pays(500), [asks()]), check_in_approved(by="dana", note='{"paid": 1000000}'))
    assert till.paid == [500]
    assert till.read() == ['{"paid":500}']


def test_an_approval_goes_on_at_the_link_behind_the_one_that_asked_and_asks_that_one_nothing_more() -> None:
    till = Till()
    before, gate, behind = Rule("before"), asks(), Rule("behind")
    ended = resumed(till.agent(pays(500), [before, gate, behind]))
    assert [len(rule.shown) for rule in (before, gate, behind)] == [1, 1, 1]
    assert [(row.middleware, row.outcome, row.answer) for row in ended.decisions] == [
        ("before", "allow", "given"),
        ("four-eyes", "ask", "given"),
        ("four-eyes", "allow", "person"),
        ("behind", "allow", "given"),
    ]
    assert till.paid == [500]


@pytest.mark.parametrize("note", [None, "it is a duplicate"])
def test_a_decline_is_a_denial_the_model_reads_and_the_loop_goes_on(note: str | None) -> None:
    till = Till()
    behind, reads = Rule("behind"), Reads()
    ended = resumed(
        till.agent(pays(500), [asks(), behind], results=[reads]), check_in_declined(by="dana", note=note)
    )
    assert ended.text == "done"
    (text,) = till.read()
    assert "declined" in text
    assert "pay" in text
    assert (note is not None) == ("duplicate" in text)
    assert till.paid == []
    assert behind.shown == []
    assert reads.shown == []
    assert till.ended(ended.run_id) == [("denied", False)]


def test_a_second_question_about_an_approved_call_is_a_refusal_that_names_its_link() -> None:
    till = Till()
    legal = asks("legal", question="Is it legal?", detail={"secret": 1})
    ended = resumed(till.agent(pays(500), [asks(), legal, Rule("behind")]))
    assert till.paid == []
    row = ended.decisions[-1]
    assert (row.middleware, row.outcome, row.answer, row.changed) == ("legal", "deny", "given", False)
    assert "legal" in (row.why or "")
    assert "Is it legal?" in (row.why or "")
    assert till.ended(ended.run_id) == [("denied", False)]
    assert "legal" in till.read()[0]


def test_a_check_in_behind_an_approved_question_is_a_refusal_and_one_that_does_not_trip_is_none() -> None:
    till = Till()
    pay = till.pay(check_in=lambda args: bool(args["amount"] > 200))
    ended = resumed(till.agent(pays(500), [asks()], pay))
    assert till.paid == []
    assert till.ended(ended.run_id) == [("blocked", False)]
    assert "consent" in till.read()[0]
    assert "pay" in till.read()[0]
    quiet = Till()
    resumed(quiet.agent(pays(150), [asks()], quiet.pay(check_in=lambda args: bool(args["amount"] > 200))))
    assert quiet.paid == [150]


@pytest.mark.parametrize("declares", [False, True])
def test_a_tool_that_asks_after_an_approval_is_answered_with_a_refusal_and_counts_as_run(
    declares: bool,
) -> None:
    entered: list[int] = []

    @tool(name="pay", check_in="always" if declares else None)
    def pay(amount: int) -> Any:
        entered.append(amount)
        pause_here({"amount": amount})

    till, reads = Till(), Reads()
    rules = [] if declares else [asks()]
    ended = resumed(till.agent(pays(500), rules, pay, results=[reads]))
    assert entered == [500]
    (shown,) = reads.shown
    assert shown.failed
    assert till.ended(ended.run_id) == [("failed", True)]
    assert till.read() == [shown.result]
    assert "pay" in shown.result
    assert "asked a person" in shown.result


def test_a_consent_counts_also_where_the_tool_no_longer_declares_one() -> None:
    till = Till()

    def pay(amount: int) -> Any:
        till.paid.append(amount)
        pause_here({"amount": amount})

    pause = run(until_asked(till.agent(pays(500), [], tool(name="pay", check_in="always")(pay))))
    answered(run(till.agent(DONE, [], tool(name="pay")(pay)).resume(pause.checkpoint, YES)))
    assert till.paid == [500]
    assert "asked a person" in till.read()[0]


def test_permission_is_asked_again_first_about_the_args_the_person_approved() -> None:
    till, checker = Till(), Checker()
    ended = resumed(till.agent(pays(500), [adds(-1), asks(), adds(-2, "fee-2")], permission=checker))
    assert [c.args for c in checker.asked] == [{"amount": 500}, {"amount": 499}]
    assert till.paid == [497]
    facts = till.facts(ended.run_id)
    begun = next(i for i, fact in enumerate(facts) if isinstance(fact, PauseAnswered))
    assert [type(fact) for fact in facts[begun : begun + 5]] == [
        PauseAnswered,
        Decided,
        PermissionChecked,
        Decided,
        ToolIntended,
    ]
    assert [f.middleware for f in facts[begun:] if isinstance(f, Decided)] == ["four-eyes", "fee-2"]


def test_a_permission_that_was_withdrawn_leaves_the_approved_call_unexecuted() -> None:
    till, behind = Till(), Rule("behind")
    gone = Permission(result="deny", tell_model="no longer")
    checker = Checker(Permission(result="allow"), gone)
    ended = resumed(till.agent(pays(500), [asks(), behind], permission=checker))
    assert till.paid == []
    assert behind.shown == []
    assert till.read() == ["no longer"]
    assert till.ended(ended.run_id) == [("denied", False)]


def test_a_permission_that_halts_on_resume_ends_the_run_and_runs_nothing() -> None:
    till = Till()
    checker = Checker(Permission(result="allow"), Permission(result="halt", reason="audit"))
    with pytest.raises(PolicyHaltError, match="audit"):
        resumed(till.agent(pays(500), [asks()], permission=checker))
    assert till.paid == []


def test_a_later_link_and_the_validation_refuse_an_approved_call_as_they_refuse_any() -> None:
    till = Till()
    resumed(till.agent(pays(500), [asks(), Rule("no", lambda c: deny("not today"))]))
    assert till.read() == ["not today"]
    words = Rule("words", lambda c: allow({"amount": "many"}, why="in words"))
    ended = resumed(till.agent(pays(500), [asks(), words]))
    assert till.ended(ended.run_id) == [("invalid", False)]
    assert "amount: expected integer, got string" in till.read()[0]
    assert till.paid == []


def test_a_declined_call_meets_no_gate_again() -> None:
    till, checker, behind = Till(), Checker(), Rule("behind")
    resumed(till.agent(pays(500), [asks(), behind], permission=checker), NO)
    assert len(checker.asked) == 1
    assert behind.shown == []


def test_a_tool_that_paused_itself_meets_no_gate_again_for_it_has_run() -> None:
    entered: list[int] = []

    @tool(name="pay")
    def pay(amount: int) -> Any:
        entered.append(amount)
        pause_here("how?")

    checker = Checker(Permission(result="allow"), Permission(result="deny"))
    till, rule, reads = Till(), Rule("rule"), Reads()
    resumed(till.agent(pays(500), [rule], pay, permission=checker, results=[reads]), "by card")
    assert entered == [500]
    assert len(checker.asked) == 1
    assert len(rule.shown) == 1
    assert [(c.args, c.result, c.failed) for c in reads.shown] == [({"amount": 500}, "by card", False)]


def test_a_resume_passes_the_identity_of_the_run_to_rules_checker_and_tool() -> None:
    till, checker, behind, reads = Till(), Checker(), Rule("behind"), Reads()
    first = till.agent(pays(500), [asks(), behind], permission=checker, results=[reads])
    who = {"user": "ada", "roles": ["clerk"]}
    pause = run(until_asked(first, identity=who))
    # Another agent, whose only source of it is the checkpoint.
    other = till.agent(DONE, [asks(), behind], permission=checker, results=[reads])
    answered(run(other.resume(pause.checkpoint, YES)))
    assert [c.identity for c in checker.asked] == [who, who]
    assert [c.identity for c in behind.shown] == [who]
    assert [c.identity for c in reads.shown] == [who]
    assert [c.identity for c in till.contexts] == [who]


def test_an_approval_is_about_its_own_call_and_no_later_one() -> None:
    till = Till()
    again = [*pays(500)[:1], reply(calls=[call("d0", "pay", {"amount": 500})]), reply(text="done")]
    agent = till.agent(again, [asks()])

    async def go() -> Any:
        first = await until_asked(agent)
        return await agent.resume(first.checkpoint, YES)

    second = run(go())
    assert (second.tool_call_id, second.question) == ("d0", "Really?")
    assert till.paid == [500]


def test_args_that_json_writes_with_half_a_character_survive_a_question() -> None:
    from footprint_core.messages import ToolCall

    till = Till()
    half = ToolCall(id="c0", name="note", args_json='{"text": "\\ud83d"}')

    @tool(name="note")
    def note(text: str) -> int:
        till.paid.append(len(text))
        return 1

    agent = till.agent(
        [reply(calls=[half]), reply(text="done")], [Rule("gate", lambda c: ask("Really?"))], note
    )
    resumed(agent)
    assert len(till.paid) == 1
