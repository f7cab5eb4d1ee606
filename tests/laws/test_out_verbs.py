"""The three verbs: what they make, what they refuse to make, and that nothing else is an outcome."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, get_args, get_origin

import pytest

import footprint_core
from footprint_core import (
    UNCHANGED,
    Allow,
    Ask,
    AskPause,
    Deny,
    MessageOutcome,
    MiddlewareAsk,
    OutcomeError,
    ToolArgs,
    ToolOutcome,
    ToolResultOutcome,
    allow,
    ask,
    deny,
)
from ruled import act_at, answers, play, rule_at

WORDLESS: list[Any] = ["", " ", "\n\t ", "\u3000", None, 3, True, b"why", ["why"], {"why": 1}]


@pytest.mark.parametrize("why", WORDLESS)
@pytest.mark.parametrize("value", [{"amount": 1}, "text", None, 0, [], False])
def test_a_replacement_without_a_reason_is_refused_inside_allow(value: Any, why: Any) -> None:
    with pytest.raises(OutcomeError, match="why"):
        allow(value, why=why)


@pytest.mark.parametrize("value", [{"amount": 1}, "text", None, 0, [], False])
def test_a_replacement_without_a_why_at_all_is_refused_inside_allow(value: Any) -> None:
    verb: Any = allow
    with pytest.raises(OutcomeError, match="why"):
        verb(value)
    assert verb(value, why="since") == Allow(value=value, why="since")


@pytest.mark.parametrize("reason", WORDLESS)
def test_a_denial_without_a_reason_is_refused_inside_deny(reason: Any) -> None:
    with pytest.raises(OutcomeError, match="reason"):
        deny(reason)


@pytest.mark.parametrize("question", WORDLESS)
@pytest.mark.parametrize("detail", [None, {"amount": 1}])
def test_a_question_without_words_is_refused_inside_ask(question: Any, detail: Any) -> None:
    with pytest.raises(OutcomeError, match="question"):
        ask(question, detail=detail)


@pytest.mark.parametrize("why", WORDLESS)
def test_a_blank_reason_of_a_pass_through_is_none(why: Any) -> None:
    assert allow(why=why) == allow()
    assert allow(why=why).why is None


COPIES: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(
        lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol))
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ),
]


@pytest.mark.parametrize("copied", COPIES, ids=range(len(COPIES)))
def test_unchanged_is_one_object_however_it_is_copied(copied: Callable[[Any], Any]) -> None:
    assert copied(UNCHANGED) is UNCHANGED
    assert copied([UNCHANGED, {"value": UNCHANGED}])[1]["value"] is UNCHANGED
    # A copied pass-through is one still: it would otherwise become a replacement by a mark.
    assert copied(allow(why="seen")).value is UNCHANGED
    assert copied(allow()) == allow()


def test_allowing_unchanged_is_allowing() -> None:
    assert allow(UNCHANGED) == allow()
    assert allow(UNCHANGED, why="seen") == allow(why="seen")
    assert allow().value is UNCHANGED
    assert allow(None, why="gone") != allow(why="gone")


def test_the_unions_have_no_arm_for_a_result() -> None:
    def arms(union: Any) -> list[Any]:
        return [get_origin(arm) or arm for arm in get_args(union)]

    assert arms(ToolOutcome) == [Allow, Deny, Ask]
    assert arms(ToolResultOutcome) == [Allow, Deny]
    assert arms(MessageOutcome) == [Allow, Deny]
    assert get_args(get_args(ToolOutcome)[0]) == (ToolArgs,)
    assert get_args(get_args(MessageOutcome)[0]) == (str,)


OUTCOMES: list[Any] = [
    allow(),
    allow(why="seen"),
    allow({"amount": 1}, why="less"),
    deny("no"),
    ask("May it?"),
    ask("May it?", detail={"key": 1}),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=range(len(OUTCOMES)))
def test_an_arm_is_final_frozen_slotted_and_has_no_truth(outcome: Any) -> None:
    kind = type(outcome)
    assert kind in {Allow, Deny, Ask}
    assert kind.__final__ is True
    assert not hasattr(outcome, "__dict__")
    for name in (*kind.__struct_fields__, "kind", "result"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(outcome, name, "made up")
        with pytest.raises((AttributeError, TypeError)):
            object.__setattr__(outcome, "result", "made up")
        with pytest.raises((AttributeError, TypeError)):
            delattr(outcome, name)
    with pytest.raises(OutcomeError, match="truth"):
        bool(outcome)
    with pytest.raises(OutcomeError, match="truth"):
        _ = not outcome
    with pytest.raises(OutcomeError, match="truth"):
        _ = "ran" if outcome else "refused"


@pytest.mark.parametrize(
    "name",
    [
        "allow",
        "deny",
        "ask",
        "Allow",
        "Deny",
        "Ask",
        "MiddlewareAsk",
        "MessageDeniedError",
        "ToolOutcome",
        "ToolResultOutcome",
        "MessageOutcome",
        "ToolCallRule",
        "ToolResultRule",
        "MessageRule",
    ],
)
def test_the_words_of_outcomes_are_exported(name: str) -> None:
    assert name in footprint_core.__all__
    assert getattr(footprint_core, name) is not None


def test_the_question_of_a_pause_is_a_middleware_ask() -> None:
    played = play(
        act_at("before-tool", rule_at("before-tool", answers(ask("May it?", detail={"k": 1})), "asks"))
    )
    assert isinstance(played.outcome, AskPause)
    assert played.outcome.ask == MiddlewareAsk(middleware="asks", question="May it?", detail={"k": 1})
