"""What an allow does at each moment: with a reason, with a value, with nothing."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest

from footprint_core import Allow, allow
from ruled import (
    ANSWER,
    MESSAGE,
    REPLACEMENTS,
    RULED,
    VALUES,
    Played,
    RuledMoment,
    act_at,
    answers,
    play,
    rule_at,
)
from story import answered


def _row(played: Played, moment: RuledMoment) -> dict[str, Any]:
    (row,) = (row for row in played.rows if row["moment"] == moment)
    return row


def _ruled(moment: RuledMoment, answer: object) -> Played:
    return play(act_at(moment, rule_at(moment, answers(answer))))


def _entered(played: Played, moment: RuledMoment) -> Any:
    """What went on behind a moment."""
    if moment == "input":
        return played.model.requests[0].messages[0].text
    if moment == "before-tool":
        return {"amount": played.ran[0]}
    if moment == "after-tool":
        return played.read
    assert played.outcome is not None
    return answered(played.outcome).text


PASSED: dict[RuledMoment, Any] = {
    "input": MESSAGE,
    "before-tool": {"amount": 5},
    "after-tool": '{"paid":5,"card":"4111"}',
    "output": ANSWER,
}


@pytest.mark.parametrize("moment", RULED)
def test_an_allow_lets_the_value_pass_and_its_row_has_no_why(moment: RuledMoment) -> None:
    played = _ruled(moment, allow())
    assert _entered(played, moment) == PASSED[moment]
    row = _row(played, moment)
    assert (row["outcome"], row["changed"]) == ("allow", False)
    assert not row.keys() & {"why", "before", "after"}
    assert played.requests == play().requests


@pytest.mark.parametrize("moment", RULED)
def test_an_allow_with_a_reason_lets_the_value_pass_and_its_row_says_why(moment: RuledMoment) -> None:
    played = _ruled(moment, allow(why="it was seen"))
    assert _entered(played, moment) == PASSED[moment]
    row = _row(played, moment)
    assert (row["outcome"], row["changed"], row["why"]) == ("allow", False, "it was seen")
    assert not row.keys() & {"before", "after"}
    assert played.requests == play().requests


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize(
    "blank", [Allow[Any](why=""), Allow[Any](why="  "), Allow[Any](why="\n"), allow(why=" ")]
)
def test_a_blank_reason_of_a_pass_through_is_on_no_row(moment: RuledMoment, blank: Any) -> None:
    played = _ruled(moment, blank)
    assert _entered(played, moment) == PASSED[moment]
    assert _row(played, moment) == _row(_ruled(moment, allow()), moment)


READ: dict[RuledMoment, Any] = {**REPLACEMENTS, "after-tool": '["withdrawn"]'}


@pytest.mark.parametrize("moment", RULED)
def test_an_allow_with_a_value_and_a_reason_replaces_it(moment: RuledMoment) -> None:
    played = _ruled(moment, allow(REPLACEMENTS[moment], why="less"))
    assert _entered(played, moment) == READ[moment]
    row = _row(played, moment)
    assert (row["outcome"], row["changed"], row["why"]) == ("allow", True, "less")
    assert (row["before"], row["after"]) == (VALUES[moment], REPLACEMENTS[moment])


def test_none_is_a_result_like_any_other() -> None:
    played = _ruled("after-tool", allow(None, why="nothing to see"))
    assert played.read == "null"
    row = _row(played, "after-tool")
    assert (row["changed"], row["before"], row["after"]) == (True, VALUES["after-tool"], None)
    assert "after" in row


@pytest.mark.parametrize("moment", ["input", "before-tool", "output"])
def test_none_is_neither_arguments_nor_a_message(moment: RuledMoment) -> None:
    played = _ruled(moment, allow(None, why="nothing to see"))
    assert not played.acted(moment)
    assert "NoneType" in played.refusal(moment)
    assert _row(played, moment)["outcome"] == "deny"


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("withheld", "withheld"),
        ("", ""),
        (7, "7"),
        (0, "0"),
        (2.5, "2.5"),
        (True, "true"),
        (False, "false"),
        ([], "[]"),
        ([1, {"a": None}], '[1,{"a":null}]'),
        ({}, "{}"),
        ({"paid": 1}, '{"paid":1}'),
        (None, "null"),
        ((1, 2), "[1,2]"),
    ],
)
@pytest.mark.parametrize("given", [{"a": 1}, "text", 3, [1], None])
def test_any_value_may_replace_any_result(given: Any, value: Any, read: str) -> None:
    chain = [
        rule_at("after-tool", answers(allow(value, why="the last word")), "outer"),
        rule_at("after-tool", answers(allow(given, why="what came")), "inner"),
    ]
    played = play(act_at("after-tool", *chain))
    assert played.read == read
    inner, outer = (row for row in played.rows)
    assert inner["after"] == given
    assert outer["outcome"] == "allow"


NO_ARGS = ["amount", 3, None, True, [], [("amount", 1)], ("amount",), {"amount"}, b"{}"]


@pytest.mark.parametrize("value", [*NO_ARGS, MappingProxyType({"amount": 1})])
def test_args_are_replaced_by_a_dict_or_the_call_is_denied(value: Any) -> None:
    played = _ruled("before-tool", allow(value, why="less"))
    assert played.ran == []
    assert type(value).__name__ in played.read
    row = _row(played, "before-tool")
    assert (row["outcome"], row["changed"], row["why"]) == ("deny", False, played.read)


@pytest.mark.parametrize("value", [{"amount": 1}, OrderedDict(amount=1)])
def test_args_are_replaced_by_any_dict(value: Any) -> None:
    played = _ruled("before-tool", allow(value, why="less"))
    assert (played.ran, _row(played, "before-tool")["after"]) == ([1], {"amount": 1})


@pytest.mark.parametrize("moment", ["input", "output"])
@pytest.mark.parametrize("value", [3, None, True, b"text", ["text"], {"content": "text"}, ("text",), 2.5])
def test_a_message_is_replaced_by_text_or_denied(moment: RuledMoment, value: Any) -> None:
    played = _ruled(moment, allow(value, why="shorter"))
    assert not played.acted(moment)
    assert type(value).__name__ in played.refusal(moment)
    row = _row(played, moment)
    assert (row["outcome"], row["changed"], row["why"]) == ("deny", False, played.refusal(moment))
    assert len(played.model.requests) == {"input": 0, "output": 2}[moment]


@pytest.mark.parametrize("moment", ["input", "output"])
@pytest.mark.parametrize("text", ["", " "])
def test_a_message_may_be_emptied(moment: RuledMoment, text: str) -> None:
    played = _ruled(moment, allow(text, why="nothing is left of it"))
    assert _entered(played, moment) == text
    row = _row(played, moment)
    assert (row["outcome"], row["changed"], row["after"]) == ("allow", True, text)
