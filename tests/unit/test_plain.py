"""What values become when they enter the product."""

from __future__ import annotations

import dataclasses
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel

from footprint_core import plain


class Model(BaseModel):
    amount: int


@dataclasses.dataclass
class Point:
    x: int
    y: float


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, "a", None, True), [1, "a", None, True]),
        ({"a": {"b": [1.5]}}, {"a": {"b": [1.5]}}),
        (Model(amount=3), {"amount": 3}),
        (Point(1, 2.0), {"x": 1, "y": 2.0}),
        ({1: "one"}, {"1": "one"}),
        ({1: "a", "1": "b"}, {"1": "a", "1~": "b"}),
        ({date(2024, 1, 1): 3, date(2024, 1, 2): 4}, {"2024-01-01": 3, "2024-01-02": 4}),
        ({True: 1, None: 2, 1.5: 3}, {"true": 1, "null": 2, "1.5": 3}),
        (2**80, 2**80),
    ],
)
def test_data_becomes_plain_json(value: object, expected: object) -> None:
    assert plain.examine(value) == (expected, True)


@pytest.mark.parametrize("value", [object(), float("nan"), float("inf"), lambda: 1, {"a": object()}])
def test_what_json_cannot_hold_becomes_a_mark_that_names_its_type(value: object) -> None:
    plain_value, held = plain.examine(value)
    assert not held
    assert "[not JSON: " in plain.rendered(plain_value)


def test_a_value_that_contains_itself_ends_in_a_mark() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert b"[not JSON: list]" in plain.encode(plain.detach(endless))


def test_a_lone_surrogate_is_replaced() -> None:
    mended = plain.encode(plain.detach({"\ud800": "a\udfff"})).decode()
    assert mended.startswith('{"')
    assert "a" in mended


def test_a_detached_value_shares_nothing() -> None:
    value: dict[str, Any] = {"a": [1, {"b": 2}]}
    taken = plain.detach(value)
    copied = plain.copy(taken)
    value["a"].append(3)
    copied["a"][1]["b"] = 9
    assert taken == {"a": [1, {"b": 2}]}


def test_equality_is_that_of_canonical_json() -> None:
    assert plain.same({"a": 1, "b": [1.0]}, {"b": [1], "a": 1.0})
    assert not plain.same(True, 1)
    assert not plain.same([False], [0])
    assert not plain.same({"a": 1}, {"a": 1, "b": None})
    assert not plain.same("1", 1)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({}, "object"),
        ([], "array"),
        ("", "string"),
        (1, "number"),
        (1.5, "number"),
        (True, "boolean"),
        (None, "null"),
    ],
)
def test_types_are_named_in_words_of_json(value: object, word: str) -> None:
    assert plain.json_type(value) == word


def test_a_model_reads_text_as_it_is_and_everything_else_as_json() -> None:
    assert plain.rendered("as it is") == "as it is"
    assert plain.rendered(None) == "null"
    assert plain.rendered({"a": [3]}) == '{"a":[3]}'


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="no JSON"):
        plain.decode("{")
