"""What a rule may answer."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from footprint_core import UNCHANGED, Allow, Ask, Deny, OutcomeError, allow, ask, deny


def test_allow_passes_through_and_may_carry_a_reason() -> None:
    assert allow() == Allow()
    assert allow(why="seen").why == "seen"
    assert allow(why="  ").why is None
    assert allow(UNCHANGED) == allow()


def test_a_replacement_needs_a_reason() -> None:
    assert allow({"a": 1}, why="less").value == {"a": 1}
    assert allow(None, why="nothing").value is None
    for why in ("", " ", None, 3):
        with pytest.raises(OutcomeError, match="needs why"):
            allow(3, why=why)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]


@pytest.mark.parametrize("blank", ["", "  ", None, 3])
def test_a_refusal_and_a_question_need_words(blank: object) -> None:
    with pytest.raises(OutcomeError, match="reason"):
        deny(blank)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(OutcomeError, match="question"):
        ask(blank)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_question_may_say_how_long_it_waits() -> None:
    assert ask("may I?").expires_in is None
    assert ask("may I?", expires_in=90).expires_in == 90
    assert ask("may I?", detail={"n": 1}, expires_in=0.5) == Ask(
        question="may I?", detail={"n": 1}, expires_in=0.5
    )


@pytest.mark.parametrize(
    "seconds", [0, -1, 0.0, float("nan"), float("inf"), True, False, "60", [60], 10**400, 1e300]
)
def test_how_long_a_question_waits_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(OutcomeError, match="expires_in"):
        ask("may I?", expires_in=seconds)


def test_an_outcome_has_no_truth_value() -> None:
    outcomes: list[object] = [Allow[object](), Deny(reason="no"), Ask(question="may I?")]
    for outcome in outcomes:
        with pytest.raises(OutcomeError, match="match on"):
            bool(outcome)


def test_an_outcome_is_frozen_and_takes_no_other_attribute() -> None:
    outcome: Any = allow()
    with pytest.raises((AttributeError, TypeError)):
        setattr(outcome, "result", "made up")  # noqa: B010 - a checker refuses the plain spelling
    with pytest.raises((AttributeError, TypeError)):
        object.__setattr__(outcome, "result", "made up")


def test_unchanged_keeps_its_identity_when_it_is_copied() -> None:
    assert copy.copy(UNCHANGED) is UNCHANGED
    assert copy.deepcopy(UNCHANGED) is UNCHANGED
    assert pickle.loads(pickle.dumps(UNCHANGED)) is UNCHANGED
