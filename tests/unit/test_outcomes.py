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
