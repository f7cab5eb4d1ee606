"""An answer for an agent whose rules changed: everything is asked again, and an approval has to fit."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asked import DONE, NO, YES, Checker, Reads, Rule, Till, adds, asks, paused, pays, posted, until_asked
from footprint_core import (
    AskPause,
    CheckInPause,
    DecisionRequiredError,
    ForeignCheckpointError,
    Permission,
    ToolMessage,
    allow,
    ask,
    deny,
    pause_here,
    tool,
)
from footprint_core.facts import PauseAnswered
from footprint_core.mcp import mock_mcp_client
from footprint_core.pause.checkpoint import digest
from story import answered, run


def waiting(till: Till, *rules: Any, said: Any = None, **options: Any) -> Any:
    """A question about 500 under these rules."""
    return run(until_asked(till.agent(said or pays(500), rules, **options)))


def again(till: Till, pause: Any, *rules: Any, answer: Any = YES, **options: Any) -> Any:
    """What a resume that walks again comes to on an agent with these rules."""
    tools = options.pop("tools", ())
    return run(
        till.agent(DONE, rules, *tools, **options).resume(posted(pause.checkpoint), answer, rewalk=True)
    )


def test_changed_rules_refuse_the_checkpoint_and_walking_again_answers_it() -> None:
    till = Till()
    pause = waiting(till, asks())
    with pytest.raises(ForeignCheckpointError):
        run(till.agent(DONE, [asks(), Rule("new")]).resume(pause.checkpoint, YES))
    new, gate = Rule("new"), asks()
    ended = answered(again(till, pause, new, gate))
    assert till.paid == [500]
    assert (new.args, gate.args) == ([{"amount": 500}], [{"amount": 500}])
    assert [(row.middleware, row.outcome, row.answer) for row in ended.decisions] == [
        ("four-eyes", "ask", "given"),
        ("four-eyes", "allow", "person"),
        ("new", "allow", "given"),
        ("four-eyes", "ask", "given"),
    ]


def test_permission_and_the_whole_chain_are_walked_on_the_args_as_the_model_sent_them() -> None:
    till, checker = Till(), Checker()
    pause = waiting(till, adds(-1), asks(), said=pays(500))
    assert pause.args == {"amount": 499}
    first, less, gate, last = Rule("first"), adds(-1), asks(), adds(-2, "last")
    answered(again(till, pause, first, less, gate, last, permission=checker))
    assert [c.args for c in checker.asked] == [{"amount": 500}]
    assert (first.args, less.args) == ([{"amount": 500}], [{"amount": 500}])
    assert (gate.args, last.args) == ([{"amount": 499}], [{"amount": 499}])
    assert till.paid == [497]


def test_a_refusal_on_the_way_is_the_ordinary_refusal() -> None:
    till = Till()
    pause = waiting(till, asks())
    checker = Checker(Permission(result="deny", tell_model="no longer"))
    behind = asks()
    ended = answered(again(till, pause, behind, permission=checker))
    assert (till.paid, behind.shown, till.read()) == ([], [], ["no longer"])
    assert till.ended(ended.run_id) == [("denied", False)]
    other = Till()
    pause = waiting(other, asks())
    answered(again(other, pause, Rule("never", lambda c: deny("never")), asks()))
    assert (other.paid, other.read()) == ([], ["never"])


def test_a_rule_that_asks_no_more_lets_the_call_run() -> None:
    till = Till()
    pause = waiting(till, asks())
    answered(again(till, pause, asks(above=1000)))
    assert till.paid == [500]


CHANGED: dict[str, list[Any]] = {
    "another rule asks": [asks("legal", question="Is it legal?")],
    "another rule asks first": [asks("legal"), asks()],
    "the rule has another name": [asks("six-eyes")],
    "the args are others": [adds(-1), asks()],
    "the args have one more": [
        Rule("more", lambda c: allow({**c.args, "to": "bob"}, why="whom")),
        asks(),
    ],
}


@pytest.mark.parametrize("how", CHANGED)
def test_an_approval_that_no_longer_fits_is_a_new_pause_and_answers_nothing(how: str) -> None:
    till = Till()
    old = waiting(till, asks())
    new = paused(again(till, old, *CHANGED[how]))
    assert isinstance(new, AskPause)
    assert till.paid == []
    assert (new.run_id, new.tool_call_id) == (old.run_id, old.tool_call_id)
    assert new.pause_id != old.pause_id
    assert new.checkpoint["rules"]["before-tool"] == [rule.name for rule in CHANGED[how]]
    # The old one is used up all the same, and the new one takes its own answer.
    assert [f.pause_id for f in till.facts(old.run_id) if isinstance(f, PauseAnswered)] == [old.pause_id]
    answered(run(till.agent(DONE, CHANGED[how]).resume(new.checkpoint, NO)))
    assert "declined" in till.read()[0]


def test_an_approval_does_not_cover_the_tool_of_another_server() -> None:
    till = Till()
    (theirs,) = mock_mcp_client("bank", [till.pay()]).tools_now()
    pause = run(until_asked(till.agent(pays(500), [asks()], theirs)))
    (another,) = mock_mcp_client("thief", [till.pay()]).tools_now()
    new = paused(again(till, pause, asks(), tools=[another]))
    assert (new.tool_source, till.paid) == ("thief", [])
    (theirs_again,) = mock_mcp_client("bank", [till.pay()]).tools_now()
    fits = Till()
    pause = run(until_asked(fits.agent(pays(500), [asks()], theirs)))
    answered(again(fits, pause, Rule("new"), asks(), tools=[theirs_again]))
    assert till.paid == [500]


def test_one_call_gets_one_question_also_when_everything_is_asked_again() -> None:
    till = Till()
    pause = waiting(till, asks())
    legal = asks("legal", question="Is it legal?")
    ended = answered(again(till, pause, asks(), legal))
    assert till.paid == []
    assert "Is it legal?" in till.read()[0]
    assert till.ended(ended.run_id) == [("denied", False)]
    trips = Till()
    pause = waiting(trips, asks())
    ended = answered(again(trips, pause, Rule("new"), asks(), tools=[trips.pay(check_in="always")]))
    assert (trips.paid, trips.ended(ended.run_id)) == ([], [("blocked", False)])


def test_a_declined_call_is_asked_about_nowhere_again() -> None:
    till, checker, new = Till(), Checker(), Rule("new")
    pause = waiting(till, asks())
    answered(again(till, pause, new, asks(), answer=NO, permission=checker))
    assert (till.paid, new.shown, checker.asked) == ([], [], [])
    assert "declined" in till.read()[0]


def test_the_rest_of_the_batch_and_the_results_meet_the_new_rules() -> None:
    till, new, reads = Till(), Rule("new"), Reads()
    pause = waiting(till, asks(), said=pays(1, 500, 2))
    answered(again(till, pause, new, asks(), results=[reads]))
    assert till.paid == [1, 500, 2]
    assert [c.args["amount"] for c in new.shown] == [500, 2]
    assert [c.args["amount"] for c in reads.shown] == [500, 2]
    results = [m for m in till.model.requests[-1].messages if isinstance(m, ToolMessage)]
    assert [m.call_id for m in results] == ["c0", "c1", "c2"]


def test_a_check_in_is_answered_by_walking_again_when_what_would_run_is_what_was_shown() -> None:
    till, checker, new = Till(), Checker(), Rule("new")
    pay = till.pay(check_in="always")
    pause = run(until_asked(till.agent(pays("500"), [], pay)))
    assert isinstance(pause, CheckInPause)
    answered(again(till, pause, new, tools=[pay], permission=checker))
    assert (new.args, [c.args for c in checker.asked]) == ([{"amount": "500"}], [{"amount": "500"}])
    assert till.paid == [500]


def test_a_check_in_about_other_args_or_another_server_is_a_new_pause() -> None:
    till = Till()
    pay = till.pay(check_in="always")
    pause = run(until_asked(till.agent(pays(500), [], pay)))
    new = paused(again(till, pause, adds(-1), tools=[pay]))
    assert isinstance(new, CheckInPause)
    assert (new.args, till.paid) == ({"amount": 499}, [])
    answered(run(till.agent(DONE, [adds(-1)], pay).resume(new.checkpoint, YES)))
    assert till.paid == [499]

    other = Till()
    pay = other.pay(check_in="always")
    pause = run(until_asked(other.agent(pays(500), [], pay)))
    moved = msgspec.structs.replace(pay, source="thief")
    assert isinstance(again(other, pause, tools=[moved]), CheckInPause)
    assert other.paid == []


def test_a_rule_that_asks_about_a_consented_call_is_a_new_pause_of_its_own_kind() -> None:
    till = Till()
    pay = till.pay(check_in="always")
    pause = run(until_asked(till.agent(pays(500), [], pay)))
    new = paused(again(till, pause, asks(), tools=[pay]))
    assert isinstance(new, AskPause)
    assert till.paid == []


def test_a_tool_that_paused_itself_has_run_and_only_its_result_meets_the_new_rules() -> None:
    entered: list[int] = []

    @tool(name="pay")
    def pay(amount: int) -> Any:
        entered.append(amount)
        pause_here("how?")

    till, checker, new, reads = Till(), Checker(), asks("new"), Reads()
    pause = run(until_asked(till.agent(pays(500), [], pay)))
    answered(again(till, pause, new, answer="by card", tools=[pay], permission=checker, results=[reads]))
    assert (entered, new.shown, checker.asked) == ([500], [], [])
    assert [c.result for c in reads.shown] == ["by card"]


def test_walking_again_takes_the_same_answers_and_the_same_checkpoints_as_any_resume() -> None:
    till = Till()
    pause = waiting(till, asks())
    entries = till.facts(pause.run_id)
    agent = till.agent(DONE, [Rule("new"), asks()])
    with pytest.raises(DecisionRequiredError):
        run(agent.resume(pause.checkpoint, "yes", rewalk=True))
    forged = posted(pause.checkpoint)
    forged["call"]["args"] = {"amount": 1}
    forged["digest"] = digest(forged["salt"], forged)
    with pytest.raises(ForeignCheckpointError, match="ledger"):
        run(agent.resume(forged, YES, rewalk=True))
    stranger = till.agent(DONE, [Rule("new"), asks()], id="stranger")
    with pytest.raises(ForeignCheckpointError, match="stranger"):
        run(stranger.resume(pause.checkpoint, YES, rewalk=True))
    assert (till.facts(pause.run_id), till.paid) == (entries, [])
    answered(run(agent.resume(pause.checkpoint, YES, rewalk=True)))


def test_without_walking_again_the_same_rules_are_not_asked_again() -> None:
    till, gate = Till(), Rule("gate", lambda c: ask("Really?"))
    pause = waiting(till, gate)
    answered(run(till.agent(DONE, [gate]).resume(pause.checkpoint, YES)))
    assert len(gate.shown) == 1
    assert till.paid == [500]
