"""The language scenarios are written in, where the open ones do not speak all of it."""

from __future__ import annotations

import msgspec
import pytest

from conformance.matching import differences
from conformance.predicates import holds
from conformance.scenario import Clause, Predicate, Scenario
from conformance.templates import fill
from conformance.values import Json
from conformance.verbs import outcome
from footprint_core import Deny, OutcomeError, allow

CONTEXT: Json = {
    "toolName": "pay",
    "args": {"amount": 250, "note": "two words", "items": [{"sku": "A"}], "flag": True, "none": None},
    "history": [{"role": "user", "content": "hi"}],
}


@pytest.mark.parametrize(
    "predicate",
    [
        {"path": "args.amount", "op": "gte", "value": 250.0},
        {"path": "args.items.0.sku", "op": "eq", "value": "A"},
        {"path": "args.items.length", "op": "eq", "value": 1},
        {"path": "args.note.length", "op": "lt", "value": 10},
        {"path": "args.none", "op": "exists"},
        {"path": "args.none", "op": "eq", "value": None},
        {"path": "args.gone", "op": "absent"},
        {"path": "args.gone", "op": "ne", "value": None},
        {"path": "args.note", "op": "matches", "value": "w.r"},
        {"path": "args.note", "op": "contains", "value": "o w"},
        {"any": [{"path": "args.gone", "op": "exists"}, {"path": "toolName", "op": "eq", "value": "pay"}]},
        {"not": {"path": "args.flag", "op": "eq", "value": 1}},
        {"all": [{"not": {"path": "args.flag", "op": "gt", "value": 0}}]},
    ],
)
def test_a_predicate_holds(predicate: Json) -> None:
    assert holds(msgspec.convert(predicate, Predicate), CONTEXT)
    assert not holds(msgspec.convert({"not": predicate}, Predicate), CONTEXT)


def test_a_template_writes_texts_raw_others_as_canonical_json_and_nothing_for_what_is_absent() -> None:
    text = "{{toolName}} {{args.items}} {{args.amount}} {{args.none}} {{args.gone}}{{gone}}!"
    assert fill(text, CONTEXT) == 'pay [{"sku":"A"}] 250 null !'
    assert fill("{{v}}", {"v": {"b": 1.0, "a": "é"}}) == '{"a":"é","b":1}'


def test_a_transform_without_a_reason_raises_inside_the_rule() -> None:
    clause = msgspec.convert({"do": {"verb": "same"}}, Clause)
    with pytest.raises(OutcomeError):
        outcome(clause, CONTEXT, CONTEXT["args"], {})


@pytest.mark.parametrize(
    ("do", "answer"),
    [
        ({"verb": "drop", "field": "gone"}, allow()),
        ({"verb": "drop", "field": "flag"}, allow({"amount": 250}, why="w")),
        ({"verb": "mask", "pattern": "z", "with": "*"}, allow()),
        ({"verb": "replace", "value": None}, allow(None, why="w")),
        ({"verb": "deny", "reason": "no {{toolName}}"}, Deny(reason="no pay")),
    ],
)
def test_a_verb_is_the_products(do: Json, answer: object) -> None:
    clause = msgspec.convert({"do": do, "why": "w"}, Clause)
    assert outcome(clause, CONTEXT, {"amount": 250, "flag": True}, {}) == answer


def test_a_scenario_that_says_what_is_not_known_here_is_refused() -> None:
    stories: list[Json] = [{"script": [], "agents": []}, {"script": [{"do": "sleep"}]}]
    for told in stories:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(told, Scenario)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": None}, {}),
        ({}, {"a": None}),
        ([1], [1, 2]),
        (1, True),
        ("1", 1),
        ({"$json": {"a": 1}}, "{"),
        ({"$json": {"a": 1}}, '{"a":2}'),
        ({"$authored": "drop-notice", "contains": ["3"]}, "2 messages"),
        ({"$authored": "drop-notice", "contains": []}, None),
        ({"$contains": ["x"]}, "y"),
    ],
)
def test_what_differs_is_told(expected: Json, actual: Json) -> None:
    assert list(differences(expected, actual))


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"a": [1, {"b": 1e-7}]}, {"a": [1.0, {"b": 0.0000001}]}),
        ({"$json": {"a": 1}}, '{"a": 1.0}'),
        ({"$authored": "drop-notice", "contains": ["3"], "keptRequest": True}, "3 messages left"),
    ],
)
def test_what_is_equal_by_value_does_not_differ(expected: Json, actual: Json) -> None:
    assert not list(differences(expected, actual))
