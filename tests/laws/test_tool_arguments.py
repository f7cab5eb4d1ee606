"""Arguments are checked before a tool runs, and what ran is on record."""

from __future__ import annotations

from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, Field

from footprint_core import (
    BuilderError,
    MemoryLedger,
    Tool,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    before_tool,
    tool,
)
from footprint_core.events import ArgsInvalid, ToolCallEnded
from footprint_core.facts import ToolIntended
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

SECRET = "hunter2"


class Colour(Enum):
    RED = "red"


class Address(BaseModel):
    street: str
    number: int = 1


class Called:
    """One call of a tool, and everything that was shown of its arguments."""

    def __init__(self, made: Tool, args: dict[str, Any], *, changed: dict[str, Any] | None = None) -> None:
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.seen, ledger = Seen(), MemoryLedger()

        @before_tool("first")
        def first(asked: ToolCallContext) -> ToolOutcome:
            self.before.append(asked.args)
            return allow() if changed is None else allow(changed, why="changed")

        @before_tool("second")
        def second(asked: ToolCallContext) -> ToolOutcome:
            self.before.append(asked.args)
            return allow()

        @after_tool("after")
        def after(ended: ToolResultContext) -> ToolResultOutcome:
            self.after.append(ended.args)
            return allow()

        said = [reply(calls=[call("c1", made.name, args)]), reply(text="done")]
        builder, model = describe(said, made, watch=[self.seen], ledger=ledger)
        agent = builder.act(before_tool=[first, second], after_tool=[after]).build()
        self.answer = answered(run(agent.run("go")))
        self.intents = [
            e.fact.args for e in ledger.entries(self.answer.run_id) if isinstance(e.fact, ToolIntended)
        ]
        (self.read,) = [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]


def test_a_typed_function_gets_the_validated_values_and_the_record_holds_them_as_json() -> None:
    got: dict[str, Any] = {}

    @tool(name="ship")
    async def ship(
        to: Address, on: date, count: int, colour: Colour = Colour.RED, tags: tuple[str, ...] = ("a",)
    ) -> str:
        """Ship."""
        got.update(to=to, on=on, count=count, colour=colour, tags=tags)
        return "shipped"

    sent = {"to": {"street": "Elm"}, "on": "2026-01-02", "count": "3"}
    ran = {
        "to": {"street": "Elm", "number": 1},
        "on": "2026-01-02",
        "count": 3,
        "colour": "red",
        "tags": ["a"],
    }
    called = Called(ship, sent)
    assert got == {
        "to": Address(street="Elm", number=1),
        "on": date(2026, 1, 2),
        "count": 3,
        "colour": Colour.RED,
        "tags": ("a",),
    }
    # Rules ahead of the check see what the model sent, rules behind the tool what ran.
    assert called.before == [sent, sent]
    assert called.intents == called.after == [ran]
    assert {type(value) for value in called.intents[0].values()} == {dict, str, int, list}


def test_what_a_rule_made_of_the_arguments_is_what_is_checked_and_runs() -> None:
    got: list[object] = []

    @tool(name="pay")
    async def pay(amount: int, to: str = "till") -> None:
        """Pay."""
        got.append((amount, to))

    called = Called(pay, {"amount": SECRET, "more": 1}, changed={"amount": "7"})
    assert got == [(7, "till")]
    assert called.before == [{"amount": SECRET, "more": 1}, {"amount": "7"}]
    assert called.intents == called.after == [{"amount": 7, "to": "till"}]


def untyped(a, b: int = 1) -> None:  # type: ignore[no-untyped-def]
    """Does not say what it takes."""


def starred(*a: int) -> None:
    """Takes as many as come."""


@pytest.mark.parametrize("function", [untyped, starred, max, str])
def test_a_function_that_does_not_say_what_it_takes_is_no_tool(function: Any) -> None:
    with pytest.raises(BuilderError, match="named"):
        tool(name="named")(function)


@pytest.mark.parametrize("function", [max, str])
def test_a_function_without_a_signature_takes_no_dict_either(function: Any) -> None:
    with pytest.raises(BuilderError, match="named"):
        tool(name="named", schema={})(function)


ORDER: dict[str, Any] = {
    "properties": {
        "kind": {"enum": ["card", "cash"]},
        "card": {"$ref": "#/$defs/card"},
        "lines": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
    },
    "required": ["kind"],
    "if": {"properties": {"kind": {"const": "card"}}},
    "then": {"required": ["card"]},
    "dependentRequired": {"card": ["lines"]},
    "unevaluatedProperties": False,
    "$defs": {"card": {"type": "string", "pattern": "^[0-9]+$", "minLength": 4}},
}


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({"kind": "cash"}, None),
        ({"kind": "card", "card": "4111", "lines": ["a", 1]}, None),
        ({}, "kind: expected a value"),
        ({"kind": "card"}, "card: expected a value"),
        ({"kind": "cheque"}, "kind: expected one of the listed values"),
        ({"kind": "cash", "card": "4111"}, "properties that go with those given"),
        ({"kind": "card", "card": "41x1", "lines": []}, "card: expected a text of the listed pattern"),
        ({"kind": "card", "card": "41", "lines": []}, "card: expected a longer text"),
        ({"kind": "cash", "lines": ["a", "b"]}, "lines.1: expected integer, got string"),
        ({"kind": "cash", "lines": [1]}, "lines.0: expected string, got number"),
        ({"kind": "cash", "more": 1}, "only the listed properties"),
    ],
)
def test_a_tool_with_a_schema_is_checked_by_all_of_it(args: dict[str, Any], wrong: str | None) -> None:
    got: list[dict[str, Any]] = []

    @tool(name="order", schema=ORDER)
    async def order(args: dict[str, Any]) -> str:
        got.append(args)
        return "ordered"

    called = Called(order, args)
    if wrong is None:
        assert (called.read, got) == ("ordered", [args])
        assert called.intents == called.after == [args]
    else:
        assert wrong in called.read
        assert (got, called.intents, called.after) == ([], [], [])


def even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd, {SECRET}")
    return value


@tool(name="typed")
async def typed(
    whole: int = 0,
    ratio: float = 0.0,
    flag: bool = False,
    text: str = "",
    one: Literal["a", "b"] = "a",
    colour: Colour = Colour.RED,
    on: date = date(2026, 1, 1),
    id: UUID | None = None,
    small: Annotated[int, Field(le=3)] = 0,
    code: Annotated[str, Field(pattern="^[a-z]$")] = "a",
    even: Annotated[int, AfterValidator(even)] = 2,
    items: list[int] = [],  # noqa: B006 - never changed
    to: Address | None = None,
) -> str:
    """Takes much."""
    return "ran"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"whole": SECRET}, "whole: expected integer, got string"),
        ({"ratio": [SECRET]}, "ratio: expected number, got array"),
        ({"flag": SECRET}, "flag: expected boolean, got string"),
        ({"text": {"a": SECRET}}, "text: expected string, got object"),
        ({"one": SECRET}, "one: expected one of the listed values, got string"),
        ({"colour": SECRET}, "colour: expected one of the listed values, got string"),
        ({"on": SECRET}, "on: expected "),
        ({"id": SECRET}, "id: expected "),
        ({"small": 40417}, "small: expected "),
        ({"code": SECRET}, "code: expected "),
        ({"even": 40417}, "even: expected a value its type accepts, got number"),
        ({"items": [1, SECRET, None]}, "items.1: expected integer, got string; items.2: expected integer, "),
        ({"to": {"number": SECRET}}, "to.street: expected a value, got nothing; to.number: expected integer"),
        ({"other": SECRET}, "other: expected no such argument, got string"),
        ({"whole": float("1e400")}, "whole: expected "),
    ],
)
def test_rejected_arguments_are_told_by_path_and_type_and_never_by_value(
    args: dict[str, Any], said: str
) -> None:
    called = Called(typed, args)
    assert "typed" in called.read
    assert said in called.read
    assert SECRET not in called.read
    assert "40417" not in called.read
    assert called.intents == []
    (invalid,), (ended,) = called.seen.of(ArgsInvalid), called.seen.of(ToolCallEnded)
    assert (invalid.tool_name, invalid.tool_call_id) == ("typed", "c1")
    assert invalid.issues >= 1
    assert (ended.status, ended.executed) == ("invalid", False)
    assert SECRET not in repr(called.seen.events)


NARROW = tool(name="narrow", schema={"additionalProperties": False})(lambda args: None)


@pytest.mark.parametrize("count", [9, 10, 11, 25])
@pytest.mark.parametrize("made", [typed, NARROW], ids=["types", "schema"])
def test_at_most_ten_problems_are_told_and_the_others_counted(count: int, made: Tool) -> None:
    called = Called(made, {f"wrong{n:02}": n for n in range(count)})
    assert called.read.count("no such argument") == min(count, 10)
    assert ("more" in called.read) == (count > 10)
    if count > 10:
        assert f"and {count - 10} more" in called.read
    assert called.seen.of(ArgsInvalid)[0].issues == count


def test_a_tool_that_changes_its_arguments_changes_neither_the_rows_nor_what_rules_see() -> None:
    def spoil(lists: list[list[int]], person: dict[str, Any]) -> str:
        """Spoils everything."""
        lists[0].append(9)
        lists.clear()
        person["tags"].append("spoiled")
        return "spoiled"

    changed = {"lists": [[1]], "person": {"tags": ["a"]}}
    schema: dict[str, Any] = {"properties": {"lists": {}, "person": {}}}
    with_schema = tool(name="spoil", schema=schema)(lambda args: spoil(args["lists"], args["person"]))
    for made in (tool(spoil), with_schema):
        called = Called(made, {"lists": [[0]], "person": {"tags": []}}, changed=changed)
        assert called.read == "spoiled"
        assert called.intents == called.after == [{"lists": [[1]], "person": {"tags": ["a"]}}]
        (row, *_) = called.answer.decisions
        assert row.before == {"lists": [[0]], "person": {"tags": []}}
        assert row.after == {"lists": [[1]], "person": {"tags": ["a"]}}
