"""Permission is asked first, about every call, with what the model sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from footprint_core import (
    AskPause,
    CheckInPause,
    HumanPause,
    MemoryLedger,
    Permission,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    check_in_declined,
    gated_tools,
    tool,
)
from footprint_core.events import DecisionFiled, Event, PermissionAnswered, ToolCallEnded
from footprint_core.facts import PermissionChecked, ToolIntended
from footprint_core.providers import Scripted, call, reply
from permits import ALLOW, Checker
from story import Seen, answered, describe, run

NO = Permission(result="deny", tell_model="not today")
ASKED = reply(calls=[call("c1", "pay", {"amount": 5})])
DONE = reply(text="done")


def paying(*, check_in: Any = None) -> tuple[Any, list[int]]:
    ran: list[int] = []

    @tool(name="pay", check_in=check_in)
    async def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    return pay, ran


def read(model: Scripted) -> list[str]:
    return [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]


def half(story: list[str]) -> Any:
    @before_tool("half")
    def rule(asked: ToolCallContext) -> ToolOutcome:
        story.append(f"rule {asked.args}")
        return allow({"amount": 2}, why="half")

    return rule


def test_the_checker_is_asked_ahead_of_the_rules_with_the_args_the_model_sent() -> None:
    story: list[str] = []
    pay, ran = paying()

    def says(asked: ToolCallContext) -> Permission:
        story.append(f"checker {asked.args}")
        return ALLOW

    checker = Checker(says)
    builder, _ = describe([ASKED, DONE], pay)
    agent = builder.act(before_tool=[half(story)]).permission(checker).build()
    answered(run(agent.run("go", identity={"who": "ada"})))
    assert story == ["checker {'amount': 5}", "rule {'amount': 5}"]
    assert ran == [2]
    (asked,) = checker.asked
    assert (asked.tool_name, asked.tool_source, asked.tool_call_id, asked.iteration) == ("pay", None, "c1", 1)
    assert asked.identity == {"who": "ada"}
    assert [message.role for message in asked.history] == ["user", "assistant"]


def test_it_is_asked_about_every_call_whatever_would_become_of_it() -> None:
    pay, ran = paying()
    broken = tool(name="break")(lambda: 1 / 0)
    calls = [
        call("known", "pay", {"amount": 5}),
        call("unknown", "wipe", {"all": True}),
        call("invalid", "pay", {"amount": "hunter2", "more": [1]}),
        call("raising", "break", {}),
    ]
    checker = Checker()
    builder, model = describe([reply(calls=calls), ASKED, DONE], pay, broken)
    answered(run(builder.permission(checker).build().run("go")))
    assert [(one.tool_call_id, one.tool_name, one.args) for one in checker.asked] == [
        ("known", "pay", {"amount": 5}),
        ("unknown", "wipe", {"all": True}),
        ("invalid", "pay", {"amount": "hunter2", "more": [1]}),
        ("raising", "break", {}),
        ("c1", "pay", {"amount": 5}),
    ]
    assert ran == [5, 5]
    assert "There is no tool called wipe" in read(model)[1]


def test_a_denied_unknown_tool_reads_like_any_denied_call() -> None:
    builder, model = describe([reply(calls=[call("c1", "wipe", {})]), DONE])
    answered(run(builder.permission(Checker(NO)).build().run("go")))
    assert read(model) == ["not today"]


def test_what_a_checker_does_to_the_args_changes_nothing() -> None:
    def spoils(asked: ToolCallContext) -> Permission:
        asked.args["amount"] = 10**6
        return ALLOW

    pay, ran = paying()
    ledger = MemoryLedger()
    builder, _ = describe([ASKED, DONE], pay, ledger=ledger)
    answer = answered(run(builder.permission(Checker(spoils)).build().run("go")))
    assert ran == [5]
    intents = [e.fact for e in ledger.entries(answer.run_id) if isinstance(e.fact, ToolIntended)]
    assert [fact.args for fact in intents] == [{"amount": 5}]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_checker_may_take_its_time(allowed: bool) -> None:
    class Slow:
        name = "slow"

        async def check(self, asked: ToolCallContext, /) -> Permission:
            await asyncio.sleep(0)
            return ALLOW if allowed else NO

    pay, ran = paying()
    builder, model = describe([ASKED, DONE], pay)
    answered(run(builder.permission(Slow()).build().run("go")))
    assert ran == ([5] if allowed else [])
    assert read(model) == ["paid" if allowed else "not today"]


def test_the_three_layers_do_not_overlap() -> None:
    pay, ran = paying()
    refund = tool(name="refund")(lambda: "refunded")
    story: list[str] = []

    @before_tool("rule")
    def rule(asked: ToolCallContext) -> ToolOutcome:
        story.append(asked.tool_name)
        return allow()

    # Offered and not permitted, permitted and not offered, neither, and both.
    checker = Checker(lambda asked: NO if asked.tool_name in {"refund", "wipe"} else ALLOW)
    offered = gated_tools([pay, refund, tool(name="peek")(lambda: 1)], {"pay", "refund"}.__contains__)
    calls = [call(str(n), name, {"amount": 5}) for n, name in enumerate(["refund", "peek", "wipe", "pay"])]
    builder, model = describe([reply(calls=calls), DONE], *offered)
    answer = answered(run(builder.act(before_tool=[rule]).permission(checker).build().run("go")))
    assert [offer.name for offer in model.requests[0].tools] == ["pay", "refund"]
    # What a checker denies stays offered: the request does not say who may do what.
    assert model.requests[1].tools == model.requests[0].tools
    assert [one.tool_name for one in checker.asked] == ["refund", "peek", "wipe", "pay"]
    assert story == ["peek", "pay"]
    assert [row.tool_name for row in answer.decisions] == ["peek", "pay"]
    assert read(model)[0] == read(model)[2] == "not today"
    assert "There is no tool called peek" in read(model)[1]
    assert ran == [5]


@pytest.mark.parametrize("result", ["allow", "gate_open"])
def test_a_permitted_call_goes_on_to_the_rules_and_not_around_them(result: Any) -> None:
    pay, ran = paying()
    story: list[str] = []
    builder, model = describe([ASKED, DONE], pay)
    checker = Checker(Permission(result=result, tell_model="never told", rationale="never told"))
    answer = answered(run(builder.act(before_tool=[half(story)]).permission(checker).build().run("go")))
    assert (story, ran) == (["rule {'amount': 5}"], [2])
    assert [row.outcome for row in answer.decisions] == ["allow"]
    assert read(model) == ["paid"]


def test_each_decision_is_one_event_and_one_entry() -> None:
    seen, ledger = Seen(), MemoryLedger()
    pay, _ = paying()
    answers = {
        "a": Permission(result="allow", policy_rule_id="P-1"),
        "b": Permission(result="gate_open", rationale="why b", reason="reason b"),
        "c": Permission(result="deny", rationale="why c", policy_rule_id="P-3"),
    }
    calls = [call(id, "pay", {"amount": 1}) for id in answers]
    builder, _ = describe([reply(calls=calls), DONE], pay, watch=[seen], ledger=ledger)
    checker = Checker(lambda asked: answers[asked.tool_call_id], name="desk")
    answer = answered(run(builder.permission(checker).build().run("go")))
    told = [
        (e.tool_call_id, e.capability, e.target, e.result, e.policy_rule_id, e.checker, e.iteration)
        for e in seen.of(PermissionAnswered)
    ]
    assert told == [
        ("a", "tool_call", "pay", "allow", "P-1", "desk", 1),
        ("b", "tool_call", "pay", "gate_open", None, "desk", 1),
        ("c", "tool_call", "pay", "deny", "P-3", "desk", 1),
    ]
    filed = [e for e in ledger.entries(answer.run_id) if isinstance(e.fact, PermissionChecked)]
    assert [e.position for e in filed] == [e.sequence for e in seen.of(PermissionAnswered)]
    assert [getattr(e.fact, "rationale", None) for e in filed][1:] == ["why b", "why c"]
    # No decision row: permission is no rule.
    assert answer.decisions == ()
    # Behind the start of its call, ahead of its end.
    order = [e.type for e in seen.events if getattr(e, "tool_call_id", None) == "c"]
    assert order == ["stream.tool_start", "permission.check", "stream.tool_end"]
    assert "why" not in "".join(map(repr, seen.events))


@before_tool("first")
def first(asked: ToolCallContext) -> ToolOutcome:
    return allow({"amount": asked.args["amount"] - 1}, why="one less")


@before_tool("four-eyes")
def four_eyes(asked: ToolCallContext) -> ToolOutcome:
    return ask("Really?")


@before_tool("behind")
def behind(asked: ToolCallContext) -> ToolOutcome:
    return allow({"amount": asked.args["amount"] * 10}, why="in cents")


def resumed(checker: Any, answer: Any, *, rewalk: bool = False) -> tuple[list[int], list[str], list[Event]]:
    """One call that is asked about and answered: what ran, what the model read, and the events behind it."""
    pay, ran = paying()
    seen = Seen()
    builder, model = describe([ASKED, DONE], pay, watch=[seen])
    agent = builder.act(before_tool=[first, four_eyes, behind]).permission(checker).build()

    async def story() -> None:
        pause = await agent.run("go", identity="ada")
        assert isinstance(pause, AskPause)
        seen.events.clear()
        answered(await agent.resume(pause.checkpoint, answer, rewalk=rewalk))

    run(story())
    return ran, read(model), seen.events


def test_on_approval_it_is_asked_again_about_the_args_the_person_approved() -> None:
    checker = Checker()
    ran, _, events = resumed(checker, check_in_approved(by="dana"))
    assert [one.args for one in checker.asked] == [{"amount": 5}, {"amount": 4}]
    assert {one.identity for one in checker.asked} == {"ada"}
    assert ran == [40]
    kinds = [e.type for e in events if e.type in {"permission.check", "middleware.decision"}]
    # The approval, permission, then the link behind the one that asked.
    assert kinds == ["middleware.decision", "permission.check", "middleware.decision"]


@pytest.mark.parametrize("denial", [NO, Permission(result="deny"), None, RuntimeError("hunter2")])
def test_a_denial_at_that_point_leaves_the_approved_call_unexecuted(denial: Any) -> None:
    checker = Checker(lambda asked: ALLOW if asked.args == {"amount": 5} else denial)
    ran, told, events = resumed(checker, check_in_approved(by="dana"))
    assert ran == []
    assert len(told) == 1
    assert "paid" not in told[0]
    assert "hunter2" not in told[0]
    (ended,) = (e for e in events if isinstance(e, ToolCallEnded))
    assert (ended.status, ended.executed) == ("denied", False)
    # The chain does not go on behind it.
    assert [e.middleware for e in events if isinstance(e, DecisionFiled)] == ["four-eyes"]


def test_a_declined_call_and_one_that_has_run_are_not_asked_about_again() -> None:
    checker = Checker()
    ran, _, _ = resumed(checker, check_in_declined(by="dana"))
    assert (len(checker.asked), ran) == (1, [])
    checker, ran = Checker(), []

    @tool(name="pay")
    async def asks(amount: int) -> None:
        """Asks while it runs."""
        ran.append(amount)
        ask_human("Really?")

    builder, model = describe([ASKED, DONE], asks)
    agent = builder.permission(checker).build()

    async def story() -> None:
        pause = await agent.run("go")
        assert isinstance(pause, HumanPause)
        answered(await agent.resume(pause.checkpoint, "yes"))

    run(story())
    assert (len(checker.asked), ran, read(model)) == (1, [5], ["yes"])


def test_it_is_asked_again_behind_an_approved_check_in_too() -> None:
    pay, ran = paying(check_in="always")
    builder, model = describe([ASKED, DONE], pay)
    checker = Checker(lambda asked: ALLOW if not ran_before else NO)
    ran_before: list[bool] = []
    agent = builder.permission(checker).build()

    async def story() -> None:
        pause = await agent.run("go")
        assert isinstance(pause, CheckInPause)
        ran_before.append(True)
        answered(await agent.resume(pause.checkpoint, check_in_approved(by="dana")))

    run(story())
    assert [one.args for one in checker.asked] == [{"amount": 5}] * 2
    assert (ran, read(model)) == ([], ["not today"])


def test_a_turn_without_a_checker_is_told_nothing_of_permission() -> None:
    seen = Seen()
    pay, ran = paying()
    builder, _ = describe([ASKED, DONE], pay, watch=[seen])
    answered(run(builder.build().run("go")))
    assert ran == [5]
    assert not [type for type in seen.types if type.startswith("permission.")]
