"""What a tool returned becomes plain JSON data once, and text only behind the chain."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, model_serializer

from footprint_core import Decision, MemoryLedger, ToolResultContext, after_tool, allow, tool
from footprint_core.facts import ToolFinished
from footprint_core.providers import call, reply
from story import answered, describe, run


class Money(BaseModel):
    amount: int
    notes: tuple[str, ...] = ()


@dataclasses.dataclass
class Card:
    number: int
    money: Money | None = None


class Struct(msgspec.Struct):
    number: int


class Color(enum.Enum):
    RED = "red"


class Words(str):
    __slots__ = ()


SAID = [reply(calls=[call("c1", "give", {})]), reply(text="done")]


class Given:
    """One result: what rules and rows show of it, and what the model reads without rules."""

    def __init__(self, value: Any) -> None:
        self.shown: list[Any] = []
        self.rows: list[Decision] = []
        self.read = ""
        self.filed: Any = None

        @tool(inline=True)
        def give() -> Any:
            return value

        @after_tool("looks")
        def looks(ended: ToolResultContext) -> Any:
            self.shown.append(ended.result)
            return allow(["wrapped", ended.result], why="wrapped")

        @after_tool("first")
        def first(ended: ToolResultContext) -> Any:
            self.shown.append(ended.result)
            return allow()

        for rules in ((looks, first), ()):
            ledger = MemoryLedger()
            builder, model = describe(SAID, give, ledger=ledger)
            out = answered(run(builder.tool_middleware(*rules).build().run("go")))
            self.rows += out.decisions
            self.read = model.requests[1].messages[-1].text
            facts = [entry.fact for entry in ledger.entries(out.run_id)]
            (self.filed,) = [fact.result for fact in facts if isinstance(fact, ToolFinished)]


CARD = '{"number":1,"money":{"amount":2,"notes":[]}}'
VALUES: list[tuple[Any, Any, str]] = [
    ("text", "text", "text"),
    ("", "", ""),
    ("größe\n", "größe\n", "größe\n"),
    (Words("text"), "text", "text"),
    (3, 3, "3"),
    (1.5, 1.5, "1.5"),
    (True, True, "true"),
    (None, None, "null"),
    ([1, "a", None], [1, "a", None], '[1,"a",null]'),
    ((1, (2,)), [1, [2]], "[1,[2]]"),
    ({"a": {"b": [1.0]}}, {"a": {"b": [1.0]}}, '{"a":{"b":[1.0]}}'),
    ({1: "one"}, {"1": "one"}, '{"1":"one"}'),
    (Money(amount=5, notes=("a",)), {"amount": 5, "notes": ["a"]}, '{"amount":5,"notes":["a"]}'),
    (Card(1), {"number": 1, "money": None}, '{"number":1,"money":null}'),
    (Card(1, Money(amount=2)), {"number": 1, "money": {"amount": 2, "notes": []}}, CARD),
    (Struct(4), {"number": 4}, '{"number":4}'),
    (Color.RED, "red", "red"),
]


@pytest.mark.parametrize(("value", "data", "text"), VALUES, ids=lambda value: type(value).__name__)
def test_rules_rows_and_the_model_see_the_one_plain_form_of_a_result(
    value: Any, data: Any, text: str
) -> None:
    given = Given(value)
    assert given.shown == [data, data]
    assert [type(shown) for shown in given.shown] == [type(data)] * 2
    assert given.filed == data
    (row,) = [row for row in given.rows if row.changed]
    assert (row.before, row.after) == (data, ["wrapped", data])
    assert given.read == text


def test_a_result_becomes_data_once_when_it_returns() -> None:
    dumped: list[int] = []

    class Counted(BaseModel):
        amount: int = 5

        @model_serializer
        def dump(self) -> dict[str, int]:
            dumped.append(self.amount)
            return {"amount": self.amount}

    @after_tool("reads")
    def reads(ended: ToolResultContext) -> Any:
        assert ended.result == ended.result == {"amount": 5}
        return allow()

    again = after_tool("again")(reads.on_tool_result)
    builder, model = describe(SAID, tool(name="give")(Counted))
    run(builder.tool_middleware(reads, again).build().run("go"))
    assert dumped == [5]
    assert model.requests[1].messages[-1].text == '{"amount":5}'


def test_what_a_tool_does_later_to_the_object_it_returned_changes_nothing() -> None:
    kept: dict[str, Any] = {"paid": [5]}

    @after_tool("late")
    def late(ended: ToolResultContext) -> Any:
        kept["paid"].append("forged")
        kept.clear()
        return allow(why="looked")

    @after_tool("later")
    def later(ended: ToolResultContext) -> Any:
        assert ended.result == {"paid": [5]}
        return allow()

    builder, model = describe(SAID, tool(name="give")(lambda: kept))
    run(builder.tool_middleware(later, late).build().run("go"))
    assert kept == {}
    assert model.requests[1].messages[-1].text == '{"paid":[5]}'


class Hostile:
    """Nothing of it can be had."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("canary")

    def __repr__(self) -> str:
        raise RuntimeError("canary")


class HostileModel(BaseModel):
    amount: int = 1

    @model_serializer
    def dump(self) -> dict[str, int]:
        raise RuntimeError("canary")


class OwnJson(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("canary")


class Key:
    def __hash__(self) -> int:
        return 1


def cycle() -> list[Any]:
    made: list[Any] = [1]
    made.append(made)
    return made


UNWRITABLE: list[tuple[Any, Any]] = [
    (object(), "[not JSON: object]"),
    (float("nan"), "[not JSON: float]"),
    (float("inf"), "[not JSON: float]"),
    (10**5000, "[not JSON: int]"),
    (lambda: "canary", "[not JSON: function]"),
    (Hostile(), "[not JSON: Hostile]"),
    (HostileModel(), "[not JSON: HostileModel]"),
    (OwnJson(a=1), "[not JSON: OwnJson]"),
    ({"a": object()}, {"a": "[not JSON: object]"}),
    ([1, Hostile()], [1, "[not JSON: Hostile]"]),
    (cycle(), [1, "[not JSON: list]"]),
    ({Key(): 1}, {"[not JSON: Key]": 1}),
]


@pytest.mark.parametrize(("value", "mark"), UNWRITABLE, ids=lambda value: type(value).__name__)
def test_what_json_cannot_hold_becomes_a_bracketed_text_that_names_its_type(value: Any, mark: Any) -> None:
    given = Given(value)
    assert given.filed == mark
    assert given.shown == [mark, mark]
    assert given.read == (mark if isinstance(mark, str) else json.dumps(mark, separators=(",", ":")))
    assert "canary" not in f"{given.rows} {given.read}"


def test_a_result_nested_deeper_than_anybody_reads_is_cut_and_breaks_nothing() -> None:
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    given = Given(deep)
    assert "[not JSON: list]" in given.read
    assert len(given.read) < 1000
