"""What a person answered before the process died stays answered, and counts for what it was said about."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from footprint_core import (
    Agent,
    Answer,
    Ledger,
    MemoryLedger,
    Pause,
    Permission,
    Tool,
    ToolCallContext,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.facts import (
    CallAnswered,
    Decided,
    PauseAnswered,
    PauseOpened,
    PermissionChecked,
    ToolFinished,
    ToolIntended,
)
from footprint_core.providers import Scripted, call, reply
from prefixes import answered_by, cut_behind, facts_of_run, read
from story import answered, describe, run

PAYS = (reply(calls=[call("1", "pay", {"amount": 5})]), reply(text="ok"))
YES: Any = check_in_approved(by="dana")
NO: Any = check_in_declined(by="dana: ops", note="too: much")


class Desk:
    """An agent with a rule before the one that asks and one behind it, and what it did."""

    def __init__(self, *tools: Tool, parallel: bool = False, replies: Any = PAYS) -> None:
        self.paid: list[int] = []
        self.asked: list[tuple[str, int]] = []
        self.tools = tools or (self._pay(),)
        self.parallel = parallel
        self.replies = replies
        self.checker: Any = None

    def _pay(self) -> Tool:
        @tool
        async def pay(amount: int) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        return pay

    def _rule(self, name: str, decide: Any) -> Any:
        def hook(given: ToolCallContext) -> Any:
            self.asked.append((name, given.args["amount"]))
            return decide(given.args)

        return before_tool(name, version="1")(hook)

    def agent(
        self, ledger: Ledger, behind: int = 0, *, asks: bool = True, later: Any = None
    ) -> tuple[Agent, Scripted]:
        wrapped = after_tool("seen", version="1")(lambda ended: allow([ended.result], why="seen"))
        rules = [
            self._rule("doubles", lambda args: allow({"amount": args["amount"] * 2}, why="doubled")),
            self._rule("asks", lambda _: ask("Pay?") if asks else allow()),
            self._rule("adds", later or (lambda args: allow({"amount": args["amount"] + 1}, why="added"))),
        ]
        builder, model = describe(
            self.replies[behind:],
            *self.tools,
            ledger=ledger,
            act={"before_tool": rules, "after_tool": [wrapped]},
            parallel_tools=self.parallel,
        )
        if self.checker is not None:
            builder.permission(self.checker)
        return builder.build(), model


def died(desk: Desk, answer: Any, kind: type[Any], nth: int = 1) -> tuple[MemoryLedger, Answer]:
    ledger = MemoryLedger()
    out = run(answered_by(desk.agent(ledger)[0], answer))
    return cut_behind(ledger, out.run_id, kind, nth), out


# Behind the rows of a resumed call: the two before the question, the question, the approval, and one more.
@pytest.mark.parametrize(("kind", "nth"), [(Decided, 3), (Decided, 4)])
def test_an_approved_question_is_not_asked_again_and_the_chain_goes_on_behind_it(
    kind: type[Any], nth: int
) -> None:
    ledger, out = died(Desk(), YES, kind, nth)
    desk = Desk()
    agent, model = desk.agent(ledger, 1)
    assert answered(run(agent.recover(out.run_id))).text == "ok"
    assert desk.asked == [("adds", 10)]
    assert desk.paid == [11]
    assert read(model) == ['["paid 11"]']


def test_a_rule_behind_an_approval_that_changes_the_args_again_starts_from_those_approved() -> None:
    # The link behind the approval had changed the args already; that change is not made twice.
    ledger, out = died(Desk(), YES, Decided, 4)
    run(Desk().agent(ledger, 1)[0].recover(out.run_id))
    changed = [
        f.after for f in facts_of_run(ledger, out.run_id) if isinstance(f, Decided) and f.after_approval
    ]
    assert changed == [{"amount": 11}, {"amount": 11}]


def test_a_call_whose_args_were_changed_before_its_approval_is_told_as_changed() -> None:
    def later(_: Any) -> Any:
        return allow()

    whole = MemoryLedger()
    out = run(answered_by(Desk().agent(whole, later=later)[0], YES))
    ledger = cut_behind(whole, out.run_id, ToolFinished)
    run(Desk().agent(ledger, 1, later=later)[0].recover(out.run_id))
    (fact,) = (f for f in facts_of_run(ledger, out.run_id) if isinstance(f, CallAnswered))
    assert fact.args_changed


def test_what_a_rule_had_changed_before_it_was_asked_again_counts_no_more() -> None:
    # The first process died behind the question, the second behind the answer to its own.
    ledger, out = died(Desk(), YES, Decided, 2)

    def agent(behind: int, ledger: Ledger, paid: list[int]) -> Agent:
        @tool
        async def pay(amount: int) -> str:
            paid.append(amount)
            return f"paid {amount}"

        rules = [
            before_tool("doubles", version="1")(lambda _: allow()),
            before_tool("asks", version="1")(lambda _: ask("Pay?")),
            before_tool("adds", version="1")(lambda _: allow()),
        ]
        wrapped = after_tool("seen", version="1")(lambda ended: allow([ended.result], why="seen"))
        act: Any = {"before_tool": rules, "after_tool": [wrapped]}
        return describe(PAYS[behind:], pay, ledger=ledger, act=act)[0].build()

    paid: list[int] = []
    second = agent(1, ledger, paid)
    paused = run(second.recover(out.run_id))
    assert isinstance(paused, Pause)
    assert (getattr(paused, "args", None), paid) == ({"amount": 5}, [])
    run(second.resume(paused.checkpoint, YES))
    paid.clear()
    third = cut_behind(ledger, out.run_id, PauseAnswered)
    run(agent(1, third, paid).recover(out.run_id))
    assert paid == [5]


def test_a_second_question_about_an_approved_call_is_a_refusal_also_behind_a_recovery() -> None:
    ledger, out = died(Desk(), YES, Decided, 3)
    desk = Desk()
    agent, model = desk.agent(ledger, 1, later=lambda _: ask("Sure?"))
    run(agent.recover(out.run_id))
    assert desk.paid == []
    assert "asked a second question" in read(model)[0]


class Checker:
    """Permits what it was told to, and keeps what it was asked about."""

    name = "checker"

    def __init__(self, *answers: str) -> None:
        self.answers = itertools.chain(answers, itertools.repeat("allow"))
        self.asked: list[Any] = []

    def check(self, given: ToolCallContext, /) -> Permission:
        self.asked.append((given.args, given.identity))
        result: Any = next(self.answers)
        return Permission(result=result)


def test_permission_is_asked_again_about_the_args_a_person_approved() -> None:
    desk = Desk()
    desk.checker = Checker()
    ledger, out = died(desk, YES, Decided, 3)
    desk = Desk()
    desk.checker = Checker("deny")
    agent, model = desk.agent(ledger, 1)
    run(agent.recover(out.run_id))
    assert desk.checker.asked == [({"amount": 10}, {"user": "ada"})]
    assert (desk.paid, desk.asked) == ([], [])
    assert "not permitted" in read(model)[0]


def test_a_decline_stays_a_decline_with_its_note() -> None:
    undisturbed = MemoryLedger()
    agent, model = Desk().agent(undisturbed)
    run(answered_by(agent, NO))
    ledger, out = died(Desk(), NO, Decided, 3)
    desk = Desk()
    again, other = desk.agent(ledger, 1)
    run(again.recover(out.run_id))
    assert (desk.paid, desk.asked) == ([], [])
    assert read(other) == read(model)
    assert "too: much" in read(other)[0]


def test_a_call_that_was_approved_and_died_in_its_body_may_have_run() -> None:
    ledger, out = died(Desk(), YES, ToolIntended)
    desk = Desk()
    agent, model = desk.agent(ledger, 1)
    run(agent.recover(out.run_id))
    assert (desk.paid, desk.asked) == ([], [])
    assert "may have run" in read(model)[0]


def test_a_question_asked_and_not_opened_is_asked_again_and_opens_a_pause() -> None:
    ledger, out = died(Desk(), YES, Decided, 2)
    desk = Desk()
    agent, _ = desk.agent(ledger, 1)
    paused = run(agent.recover(out.run_id))
    assert isinstance(paused, Pause)
    assert desk.asked == [("doubles", 5), ("asks", 10)]
    again = answered(run(agent.resume(paused.checkpoint, YES)))
    assert desk.paid == [11]
    assert (again.text, again.run_id) == ("ok", out.run_id)


def test_a_pause_behind_a_recovery_shows_the_rows_of_the_whole_run() -> None:
    ledger, out = died(Desk(), YES, Decided, 2)
    agent, _ = Desk().agent(ledger, 1)
    paused = run(agent.recover(out.run_id))
    assert isinstance(paused, Pause)
    assert paused.decisions == ledger.decisions(out.run_id)


async def rewalked(ledger: Ledger, later: Any) -> str:
    """A run paused under one set of rules, and approved under another."""
    agent, _ = Desk().agent(ledger)
    paused = await agent.run("go")
    assert isinstance(paused, Pause)
    other = Desk()
    renamed, _ = describe(PAYS[1:], *other.tools, ledger=ledger, act={"before_tool": later(other)})
    await renamed.build().resume(paused.checkpoint, YES, rewalk=True)
    return paused.run_id


def test_everything_that_was_asked_again_behind_an_answer_is_asked_again_behind_a_recovery() -> None:
    def later(desk: Desk) -> list[Any]:
        doubles = desk._rule("doubles", lambda args: allow({"amount": args["amount"] * 2}, why="doubled"))
        return [doubles, desk._rule("new", lambda _: allow()), desk._rule("asks", lambda _: ask("Pay?"))]

    whole = MemoryLedger()
    run_id = run(rewalked(whole, later))
    ledger = cut_behind(whole, run_id, PauseAnswered)
    desk = Desk()
    builder, model = describe(PAYS[1:], *desk.tools, ledger=ledger, act={"before_tool": later(desk)})
    assert answered(run(builder.build().recover(run_id))).text == "ok"
    # The rule of the same name asked about the same args, so the approval counts.
    assert desk.asked == [("doubles", 5), ("new", 10), ("asks", 10)]
    assert desk.paid == [10]
    assert read(model) == ["paid 10"]


def test_an_approval_does_not_count_for_what_is_asked_about_other_args_behind_a_recovery() -> None:
    def later(desk: Desk) -> list[Any]:
        triples = desk._rule("doubles", lambda args: allow({"amount": args["amount"] * 3}, why="tripled"))
        return [triples, desk._rule("asks", lambda _: ask("Pay?"))]

    whole = MemoryLedger()
    run_id = run(rewalked(whole, later))
    # The rule asked about other args, and its question is on record without a pause.
    facts = facts_of_run(whole, run_id)
    assert sum(isinstance(fact, PauseOpened) for fact in facts) == 2
    ledger = cut_behind(whole, run_id, Decided, 5)
    desk = Desk()
    builder, _ = describe(PAYS[1:], *desk.tools, ledger=ledger, act={"before_tool": later(desk)})
    assert isinstance(run(builder.build().recover(run_id)), Pause)
    assert desk.paid == []


def test_a_halt_that_is_on_record_and_ended_nothing_is_asked_about_again() -> None:
    whole = MemoryLedger()
    desk = Desk()
    desk.checker = Checker()
    out = run(answered_by(desk.agent(whole, asks=False)[0], None))
    ledger = cut_behind(whole, out.run_id, PermissionChecked)
    desk = Desk()
    desk.checker = Checker("deny")
    agent, _ = desk.agent(ledger, 1, asks=False)
    run(agent.recover(out.run_id))
    assert len(desk.checker.asked) == 1
    (fact,) = (f for f in facts_of_run(ledger, out.run_id) if isinstance(f, CallAnswered))
    assert fact.status == "denied"
