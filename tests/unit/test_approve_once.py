"""A person is asked about a call once; what they approved runs from then on, on a word its rows name."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from footprint_core import (
    Agent,
    ApproveOnce,
    AskPause,
    BuilderError,
    Tool,
    approve_once,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.approval import MAX_OPEN
from footprint_core.middleware import ToolCallContext
from footprint_core.outcomes import Allow, Ask
from footprint_core.providers import call, reply
from story import answered, describe, run

DONE = reply(text="done")


def pays(amount: float = 5) -> list[Any]:
    return [reply(calls=[call("c1", "pay", {"amount": amount})]), DONE]


def _agent(
    rule: ApproveOnce, replies: list[Any], *tools: Tool, source: str | None = None
) -> tuple[Agent, list[float]]:
    paid: list[float] = []

    @tool
    def pay(amount: float) -> str:
        paid.append(amount)
        return "paid"

    pay = msgspec.structs.replace(pay, source=source)
    builder, _ = describe(replies, pay, *tools, act={"before_tool": [rule]})
    return builder.build(), paid


def paused(outcome: Any) -> AskPause:
    assert isinstance(outcome, AskPause), outcome
    return outcome


def context(**changed: Any) -> ToolCallContext:
    known: dict[str, Any] = {
        "tool_name": "pay",
        "tool_source": None,
        "tool_call_id": "c1",
        "iteration": 1,
        "args": {"amount": 5},
        "history": (),
        "identity": None,
    }
    return ToolCallContext(**{**known, **changed})


def asks(rule: ApproveOnce, **changed: Any) -> Any:
    """The detail of the question about a call, or None when it is allowed."""
    outcome = rule.on_tool_call(context(**changed))
    assert isinstance(outcome, Ask | Allow)
    return outcome.detail if isinstance(outcome, Ask) else None


def test_an_approved_call_is_not_asked_about_again_and_its_row_says_whose_word_it_runs_on() -> None:
    rule = approve_once()
    agent, paid = _agent(rule, [*pays(), *pays(), *pays(6)])

    async def story() -> Any:
        first = paused(await agent.run("go"))
        assert paid == []
        rule.remember(json.loads(json.dumps(first.detail)), by="dana@ops")
        await agent.resume(first.checkpoint, check_in_approved(by="dana@ops"))
        again = answered(await agent.run("go"))
        return again, paused(await agent.run("go"))

    again, other = run(story())
    (row,) = again.decisions
    assert (row.middleware, row.outcome, row.changed) == ("approve-once", "allow", False)
    assert row.why == "approved earlier by dana@ops"
    assert other.args == {"amount": 6}
    assert paid == [5, 5]


def test_the_detail_of_the_pause_is_a_key_that_says_nothing_of_the_call() -> None:
    agent, _ = _agent(approve_once(), pays())
    detail = paused(run(agent.run("go"))).detail
    assert list(detail) == ["key"]
    assert len(bytes.fromhex(detail["key"])) == 32
    # Under a secret of the object: the same call has another key under another one.
    assert asks(approve_once()) != asks(approve_once())


def test_a_declined_question_leaves_nothing_remembered() -> None:
    agent, paid = _agent(approve_once(), [*pays(), *pays()])

    async def story() -> None:
        first = paused(await agent.run("go"))
        await agent.resume(first.checkpoint, check_in_declined(by="dana@ops"))
        paused(await agent.run("go"))

    run(story())
    assert paid == []


@pytest.mark.parametrize(
    "other",
    [
        {"args": {"amount": 6}},
        {"args": {"amount": 5, "note": None}},
        {"args": {"amount": True}},
        {"tool_name": "refund"},
        {"tool_source": "billing"},
        {"identity": {"user": "mallory"}},
    ],
)
def test_an_approval_covers_no_other_arguments_tool_source_or_identity(other: dict[str, Any]) -> None:
    rule = approve_once()
    rule.remember(asks(rule), by="dana")
    assert asks(rule) is None
    assert asks(rule, **other) is not None


def test_an_approval_covers_arguments_that_are_equal_as_json() -> None:
    rule = approve_once()
    rule.remember(asks(rule, args={"amount": 5, "to": {"a": 1, "b": [2]}}), by="dana")
    assert asks(rule, args={"to": {"b": [2.0], "a": 1}, "amount": 5.0}) is None


def test_by_tool_an_approval_covers_any_arguments_of_that_tool_and_its_row_says_so() -> None:
    rule = approve_once(by="tool")
    agent, paid = _agent(rule, [*pays(), *pays(6)], source="billing")

    async def story() -> Any:
        first = paused(await agent.run("go", identity="ada"))
        assert "any arguments" in first.question
        rule.remember(first.detail, by="dana")
        await agent.resume(first.checkpoint, check_in_approved(by="dana"))
        return answered(await agent.run("go", identity="ada"))

    (row,) = run(story()).decisions
    assert row.why == "approved earlier by dana, for any arguments of pay"
    assert paid == [5, 6]
    others: list[dict[str, Any]] = [{}, {"identity": "ada"}, {"tool_source": "billing"}]
    assert all(asks(rule, **other) is not None for other in others)
    assert asks(rule, tool_source="billing", identity="ada", args={}) is None


def test_it_asks_about_the_tools_it_names_and_passes_the_others_through() -> None:
    @tool
    def refund() -> None:
        raise AssertionError("nobody asks for it")

    rule = approve_once(name="four-eyes", question="Two people, please?", tools=["refund"])
    agent, paid = _agent(rule, pays(), refund)
    (row,) = answered(run(agent.run("go"))).decisions
    assert (row.middleware, row.outcome, row.why) == ("four-eyes", "allow", None)
    assert paid == [5]
    outcome = rule.on_tool_call(context(tool_name="refund"))
    assert isinstance(outcome, Ask)
    assert outcome.question == "Two people, please?"


def test_an_agent_without_a_tool_it_names_is_refused_for_a_mistyped_name_would_turn_the_gate_off() -> None:
    with pytest.raises(BuilderError, match="refnud"):
        _agent(approve_once(tools=["pay", "refnud"]), pays())


def test_sessions_that_run_at_the_same_time_share_what_was_approved() -> None:
    rule = approve_once()
    agent, paid = _agent(rule, [reply(calls=[call("c1", "pay", {"amount": 5})])] * 2 + [DONE] * 2)

    async def story() -> None:
        one, two = agent.session(), agent.session()
        first, second = await asyncio.gather(one.run("go"), two.run("go"))
        assert paused(first).detail == paused(second).detail
        rule.remember(paused(first).detail, by="dana")
        rule.remember(paused(second).detail, by="lee")
        approved = check_in_approved(by="dana")
        await asyncio.gather(
            one.resume(paused(first).checkpoint, approved), two.resume(paused(second).checkpoint, approved)
        )

    run(story())
    assert paid == [5, 5]
    outcome = rule.on_tool_call(context())
    assert isinstance(outcome, Allow)
    assert outcome.why == "approved earlier by lee"


@pytest.mark.parametrize(
    "detail", [None, {}, [], "", {"key": None}, {"key": "00" * 32}, {"key": ["00"]}, {"other": "00"}]
)
def test_what_is_no_detail_of_this_rule_is_refused_and_approves_nothing(detail: Any) -> None:
    rule = approve_once()
    handed_out = asks(rule)
    with pytest.raises(BuilderError, match="detail of a pause this rule opened"):
        rule.remember(detail, by="dana")
    with pytest.raises(BuilderError, match="detail of a pause this rule opened"):
        rule.remember(asks(approve_once()), by="dana")
    assert asks(rule) == handed_out


@pytest.mark.parametrize("by", ["", "  ", None, 3])
def test_an_approval_names_a_person(by: Any) -> None:
    rule = approve_once()
    with pytest.raises(BuilderError, match="name of the person"):
        rule.remember(asks(rule), by=by)
    assert asks(rule) is not None


def test_what_is_forgotten_is_asked_about_again_under_another_key() -> None:
    rule = approve_once()
    before = asks(rule)
    rule.remember(before, by="dana")
    rule.forget()
    assert asks(rule) not in (None, before)
    with pytest.raises(BuilderError):
        rule.remember(before, by="dana")


def test_open_keys_are_bounded_and_the_latest_are_kept() -> None:
    rule = approve_once()
    oldest, asked_again = asks(rule, args={"n": 0}), asks(rule, args={"n": 1})
    for n in range(2, MAX_OPEN):
        asks(rule, args={"n": n})
    asks(rule, args={"n": 1})
    asks(rule, args={"n": MAX_OPEN})
    latest = asks(rule, args={"n": MAX_OPEN + 1})
    with pytest.raises(BuilderError):
        rule.remember(oldest, by="dana")
    rule.remember(asked_again, by="dana")
    rule.remember(latest, by="dana")


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"question": " "}, "question"),
        ({"question": 3}, "question"),
        ({"by": "session"}, "by"),
        ({"tools": "refund"}, "tools"),
        ({"tools": []}, "tools"),
        ({"tools": [3]}, "tools"),
        ({"tools": 3}, "tools"),
    ],
)
def test_what_it_cannot_work_with_is_refused_when_it_is_made(wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(BuilderError, match=word):
        approve_once(**wrong)


def test_it_is_a_rule_like_any_other_and_needs_a_name() -> None:
    with pytest.raises(BuilderError, match="name"):
        _agent(approve_once(name=" "), pays())
    with pytest.raises(BuilderError, match="by two rules"):
        describe([], act={"before_tool": [approve_once(), approve_once()]})
