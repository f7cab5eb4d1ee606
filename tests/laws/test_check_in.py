"""A check-in: consent a tool declares, asked where everything else has decided and nothing has happened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asked import DONE, NO, YES, Checker, Reads, Rule, Till, adds, asks, pays, posted, until_asked
from file_ledger import on_file, select
from footprint_core import (
    CheckInPause,
    Credential,
    CredentialRequest,
    Permission,
    allow,
    check_in_approved,
    check_in_declined,
    deny,
    tool,
)
from footprint_core.facts import CheckInAnswered, CheckInAsked, CredentialRequested, Decided, ToolIntended
from footprint_core.mcp import mock_mcp_client
from footprint_core.providers import call, reply
from story import answered, describe, run


class Log(list[Any]):
    """What happened, in order."""

    def trips(self, args: Any) -> bool:
        self.append(("check-in", args))
        return True

    async def credential(self, request: CredentialRequest, /) -> Credential:
        self.append("credential")
        return Credential(kind="bearer", secret="s3cr3t")


def test_a_check_in_comes_behind_the_chain_and_the_validation_and_before_credential_and_body() -> None:
    log, till = Log(), Till()

    @tool(name="pay", needs="bank", check_in=log.trips)
    def pay(amount: int, currency: str = "EUR") -> int:
        log.append("body")
        return amount

    def doubles(call: Any) -> Any:
        log.append("rule")
        return allow({"amount": str(2 * call.args["amount"])}, why="twice")

    builder, _ = describe(pays(250), pay, ledger=till.ledger, act={"before_tool": [Rule("doubles", doubles)]})
    agent = builder.credentials(log).build()
    pause = run(until_asked(agent))
    assert log == ["rule", ("check-in", {"amount": 500, "currency": "EUR"})]
    kinds = [type(f) for f in till.facts(pause.run_id)]
    assert CredentialRequested not in kinds
    assert ToolIntended not in kinds
    del log[:]
    ended = answered(run(agent.resume(pause.checkpoint, YES)))
    assert log == ["credential", "body"]
    behind = [type(f) for f in till.facts(ended.run_id)]
    wanted = [CheckInAsked, CheckInAnswered, CredentialRequested, ToolIntended]
    assert [kind for kind in behind if kind in wanted] == wanted


@pytest.mark.parametrize("said", [1, "yes", [1], object(), None, False, 0, ""])
def test_a_predicate_that_is_not_exactly_true_does_not_trip(said: Any) -> None:
    till = Till()
    answered(run(till.agent(pays(500), [], till.pay(check_in=lambda args: said)).run("go")))
    assert till.paid == [500]


def raises(args: Any) -> bool:
    raise KeyError("no such key")


@pytest.mark.parametrize("declared", ["always", lambda args: args["amount"] == 499, raises])
def test_always_exactly_true_and_a_predicate_that_raises_trip_it(declared: Any) -> None:
    till = Till()
    pause = run(until_asked(till.agent(pays(500), [adds(-1)], till.pay(check_in=declared))))
    assert isinstance(pause, CheckInPause)
    assert till.paid == []


def test_a_predicate_is_shown_the_args_that_will_run_and_cannot_change_them() -> None:
    shown: list[Any] = []

    def spoils(args: Any) -> bool:
        shown.append(dict(args))
        args.clear()
        return False

    till = Till()
    answered(run(till.agent(pays("500"), [], till.pay(check_in=spoils)).run("go")))
    assert shown == [{"amount": 500}]
    assert till.paid == [500]


REFUSED: dict[str, tuple[Any, list[Any], Checker | None]] = {
    "permission": (500, [], Checker(Permission(result="deny", tell_model="no"))),
    "a rule": (500, [Rule("no", lambda c: deny("no"))], None),
    "validation": ("many", [], None),
}


@pytest.mark.parametrize("who", REFUSED)
def test_a_refused_call_is_never_asked_about(who: str) -> None:
    amount, rules, checker = REFUSED[who]
    log, till = Log(), Till()
    pay = till.pay(check_in=log.trips, evidence=log.trips)
    ended = answered(run(till.agent(pays(amount), rules, pay, permission=checker).run("go")))
    assert log == []
    assert not [f for f in till.facts(ended.run_id) if isinstance(f, CheckInAsked)]
    assert till.ended(ended.run_id)[0][1] is False


def test_the_pause_shows_the_tool_the_args_that_will_run_and_the_evidence() -> None:
    till = Till()
    shows = till.pay(check_in="always", evidence=lambda args: {"twice": args["amount"] * 2})
    (pay,) = mock_mcp_client("bank", [shows]).tools_now()
    pause = run(until_asked(till.agent(pays("500"), [Rule("rule")], pay)))
    assert isinstance(pause, CheckInPause)
    assert (pause.tool_name, pause.tool_source, pause.tool_call_id) == ("pay", "bank", "c0")
    assert (pause.args, pause.evidence) == ({"amount": 500}, {"twice": 1000})
    assert pause.decisions == till.ledger.decisions(pause.run_id)
    bare = Till()
    assert run(until_asked(bare.agent(pays(5), [], bare.pay(check_in="always")))).evidence is None


def test_an_approval_runs_the_tool_and_the_results_meet_their_rules() -> None:
    till, reads, rule = Till(), Reads(), Rule("rule")
    agent = till.agent(pays(500), [rule], till.pay(check_in="always"), results=[reads])
    ended = answered(run(agent.resume(run(until_asked(agent)).checkpoint, YES)))
    assert till.paid == [500]
    assert [(c.args, c.result, c.failed) for c in reads.shown] == [({"amount": 500}, {"paid": 500}, False)]
    assert len(rule.shown) == 1
    assert till.ended(ended.run_id) == [("ran", True)]


def test_a_decline_never_runs_the_tool_and_the_model_reads_it() -> None:
    till, reads = Till(), Reads()
    agent = till.agent(pays(500), [], till.pay(check_in="always"), results=[reads])
    ended = answered(run(agent.resume(run(until_asked(agent)).checkpoint, NO)))
    assert (till.paid, reads.shown) == ([], [])
    (text,) = till.read()
    assert "declined" in text
    assert "a duplicate" in text
    assert till.ended(ended.run_id) == [("denied", False)]


@pytest.mark.parametrize("answer", [YES, check_in_declined(by="lee@ops")])
def test_question_and_answer_are_entries_of_their_own_kinds_and_no_decision_rows(
    tmp_path: Path, answer: Any
) -> None:
    path = tmp_path / "l.db"
    till = Till(on_file(path))
    shows = till.pay(check_in="always", evidence=lambda args: ["e"])
    (pay,) = mock_mcp_client("bank", [shows]).tools_now()
    agent = till.agent(pays(500), [], pay)
    pause = run(until_asked(agent))
    ended = answered(run(agent.resume(pause.checkpoint, answer)))
    facts = till.facts(ended.run_id)
    (asked,) = [f for f in facts if isinstance(f, CheckInAsked)]
    assert asked == CheckInAsked(
        iteration=1, call_id="c0", tool_name="pay", tool_source="bank", evidence=["e"]
    )
    (told,) = [f for f in facts if isinstance(f, CheckInAnswered)]
    assert (told.iteration, told.call_id, told.tool_name, told.tool_source) == (1, "c0", "pay", "bank")
    assert (told.approved, told.decided_by) == (answer["decision"] == "approved", answer["by"])
    assert (told.note if answer["note"] else None) == answer["note"]
    assert not [f for f in facts if isinstance(f, Decided)]
    assert (pause.decisions, ended.decisions, till.ledger.decisions(ended.run_id)) == ((), (), ())
    kinds = select(path, "SELECT kind FROM facts WHERE kind LIKE 'check-in%' ORDER BY id")
    assert kinds == [("check-in.asked",), ("check-in.answered",)]
    run(till.ledger.close())


def test_an_approval_asks_permission_again_about_the_args_that_will_run() -> None:
    till, checker = Till(), Checker()

    @tool(name="pay", check_in="always")
    def pay(amount: int, currency: str = "EUR") -> int:
        till.paid.append(amount)
        return amount

    agent = till.agent(pays("500"), [], pay, permission=checker)
    pause = run(until_asked(agent))
    assert pause.args == {"amount": 500, "currency": "EUR"}
    answered(run(agent.resume(pause.checkpoint, YES)))
    assert [c.args for c in checker.asked] == [{"amount": "500"}, {"amount": 500, "currency": "EUR"}]
    assert till.paid == [500]


def test_a_permission_that_was_withdrawn_leaves_a_consented_call_unexecuted() -> None:
    till = Till()
    checker = Checker(Permission(result="allow"), Permission(result="deny", tell_model="no longer"))
    agent = till.agent(pays(500), [], till.pay(check_in="always"), permission=checker)
    answered(run(agent.resume(run(until_asked(agent)).checkpoint, YES)))
    assert (till.paid, till.read()) == ([], ["no longer"])


def test_an_approval_validates_the_args_again_and_refuses_what_is_not_what_the_person_saw() -> None:
    till = Till()
    pause = run(until_asked(till.agent(pays(500), [], till.pay(check_in="always"))))

    @tool(name="pay", check_in="always")
    def stricter(amount: list[int]) -> int:
        till.paid.append(-1)
        return 1

    def other(amount: int, currency: str = "USD") -> int:
        till.paid.append(-2)
        return 1

    for now, status, text in (
        (stricter, "invalid", "expected array"),
        (tool(name="pay", check_in="always")(other), "blocked", "not what a person approved"),
        (tool(name="pay", check_in=lambda args: False)(other), "blocked", "not what a person approved"),
        (tool(name="pay")(other), "blocked", "not what a person approved"),
    ):
        # Each on a ledger that has not heard of the run, so that each may answer.
        elsewhere = Till()
        ended = answered(run(elsewhere.agent(DONE, [], now).resume(posted(pause.checkpoint), YES)))
        assert elsewhere.ended(ended.run_id) == [(status, False)]
        assert text in elsewhere.read()[0]
    assert till.paid == []


def test_a_check_in_that_would_not_trip_any_more_runs_what_the_person_approved() -> None:
    till, asked = Till(), [True, False]
    agent = till.agent(pays(500), [], till.pay(check_in=lambda args: asked.pop(0)))
    answered(run(agent.resume(run(until_asked(agent)).checkpoint, YES)))
    assert (till.paid, asked) == ([500], [False])


def test_a_consent_is_about_its_own_call_and_no_later_one() -> None:
    till = Till()
    said = [*pays(500)[:1], reply(calls=[call("d0", "pay", {"amount": 500})]), DONE]
    agent = till.agent(said, [asks(above=1000)], till.pay(check_in="always"))
    second = run(agent.resume(run(until_asked(agent)).checkpoint, YES))
    assert isinstance(second, CheckInPause)
    assert (second.tool_call_id, till.paid) == ("d0", [500])


@pytest.mark.parametrize("note", [None, "seen: ø"])
def test_both_decisions_are_json_and_say_who_and_why(note: str | None) -> None:
    for made, word in ((check_in_approved, "approved"), (check_in_declined, "declined")):
        decision = made(by="dana@ops", note=note)
        assert decision == {"decision": word, "by": "dana@ops", "note": note}
        assert json.loads(json.dumps(decision)) == decision
