"""What can be declared as a schema: a type, a JSON Schema, or an object that checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from footprint_core import BuilderError, MemoryLedger, OutputSchema
from footprint_core.facts import OutputJudged
from footprint_core.providers import reply
from story import answered, describe, run

SECRET = "hunter2"


class Order(BaseModel):
    """An order."""

    id: int
    lines: list[str] = Field(min_length=1)


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict):
    name: str


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 3}},
    "required": ["n"],
    "additionalProperties": False,
}


class Even:
    """An object that checks."""

    instruction = "Answer with an even number."

    def check(self, value: Any, /) -> object:
        if value % 2:
            raise ValueError("it is odd")
        return value // 2


def judged(schema: Any, text: str) -> tuple[Any, list[Any], str]:
    """The answer, the errors that were filed, and the system prompt."""
    ledger = MemoryLedger()
    builder, model = describe([reply(text=text)], ledger=ledger)
    builder.system("Be exact.").output_schema(schema)
    answer = answered(run(builder.build().run("go")))
    entries = ledger.entries(answer.run_id)
    errors = [getattr(e.fact, "error", None) for e in entries if isinstance(e.fact, OutputJudged)]
    return answer, errors, model.requests[0].system


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (Order, '{"id": 7, "lines": ["a"]}', Order(id=7, lines=["a"])),
        (Point, '{"x": 1}', Point(x=1)),
        (Named, '{"name": "ada"}', {"name": "ada"}),
        (list[int], "[1, 2]", [1, 2]),
        (int | None, "null", None),
        (Literal["yes", "no"], '"yes"', "yes"),
        (SCHEMA, ' {"n": 3}\n', {"n": 3}),
        (Even(), "12", 6),
    ],
    ids=repr,
)
def test_an_answer_that_matches_comes_as_its_schema_read_it(schema: Any, text: str, value: Any) -> None:
    answer, errors, system = judged(schema, text)
    assert (answer.value, answer.schema_met) == (value, True)
    assert type(answer.value) is type(value)
    assert answer.text == text
    assert len(errors) == 1
    # The model is told of the shape, behind what it was told otherwise.
    assert system.startswith("Be exact.\n\n")
    assert len(system) > len("Be exact.\n\n")


@pytest.mark.parametrize(
    ("schema", "text", "stage", "said"),
    [
        (Order, '{"id": "hunter2", "lines": []}', "schema-validate", ["id: ", "lines: "]),
        (Order, '{"id": 7, "lines": ["a"]', "json-parse", ["JSON"]),
        (Order, "", "json-parse", ["JSON"]),
        (Order, '```json\n{"id": 7, "lines": ["a"]}\n```', "json-parse", ["JSON"]),
        (Order, '{"id": 7, "lines": ["a"]} {}', "json-parse", ["JSON"]),
        (Order, "NaN", "json-parse", ["JSON"]),
        (list[int], '[1, "hunter2"]', "schema-validate", ["1: "]),
        (SCHEMA, '{"n": 2}', "schema-validate", ["n: expected a larger number, got number"]),
        (SCHEMA, '{"more": "hunter2"}', "schema-validate", ["more: ", "n: expected a value"]),
        (SCHEMA, "[]", "schema-validate", ["(answer): expected object, got array"]),
        (Even(), "13", "schema-validate", ["it is odd"]),
        # A check of another make may raise anything.
        (Even(), '"text"', "schema-validate", ["not all arguments converted"]),
        (Even(), "null", "schema-validate", ["unsupported operand"]),
    ],
)
def test_one_that_does_not_is_told_where_it_failed(
    schema: Any, text: str, stage: str, said: list[str]
) -> None:
    answer, (error,), _ = judged(schema, text)
    assert (answer.value, answer.schema_met, answer.schema_stage) == (None, False, stage)
    assert all(part in error for part in said), error
    # The validators of the product name the place and the type; only a schema of one's own may quote.
    assert SECRET not in error


class Later:
    """A check nobody would await."""

    instruction = ""

    def check(self, value: Any, /) -> Any:
        async def checks() -> object:
            raise ValueError("it does not match")

        return checks()


def test_a_check_that_hands_over_a_coroutine_matches_nothing() -> None:
    answer, (error,), _ = judged(Later(), "10")
    assert (answer.value, answer.schema_met) == (None, False)
    assert "async" in error


class Async:
    instruction = ""

    async def check(self, value: Any, /) -> object:
        return value


class Uninstructed:
    instruction = 5

    def check(self, value: Any, /) -> object:
        return value


class Checkless:
    instruction = ""
    check = 5


@pytest.mark.parametrize(
    "wrong",
    [
        Async(),
        Uninstructed(),
        Checkless(),
        object(),
        "a text",
        5,
        {"type": "hunter2"},
        {"$ref": "https://hunter2.example/schema"},
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        lambda value: value,
    ],
)
def test_what_cannot_judge_is_refused_where_it_is_declared(wrong: Any) -> None:
    builder, _ = describe([])
    with pytest.raises(BuilderError) as caught:
        builder.output_schema(wrong)
    assert "schema" in str(caught.value)
    assert SECRET not in str(caught.value)
    # The refused one does not count.
    builder.output_schema(int)
    with pytest.raises(BuilderError, match="before"):
        builder.output_schema(int)


def test_the_port_is_met_by_any_object_that_has_an_instruction_and_a_check() -> None:
    assert isinstance(Even(), OutputSchema)
    assert not isinstance(object(), OutputSchema)
