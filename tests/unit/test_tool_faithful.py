"""What is on record of arguments is what runs, or the call is refused."""

from __future__ import annotations

import datetime as dt
import functools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    SecretStr,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass

from footprint_core import BuilderError, MemoryLedger, tool
from footprint_core.facts import ToolIntended
from footprint_core.providers import call, reply
from story import answered, describe, run


class Hiding(BaseModel):
    amount: int
    to: str = Field(exclude=True)


class Lying(BaseModel):
    amount: int

    @model_serializer
    def written(self) -> dict[str, int]:
        return {"amount": 1}


class Honest(BaseModel):
    amount: int
    when: dt.date | None = None
    tags: Sequence[str] = ()
    secret: SecretStr | None = None


@dataclass
class Flat:
    amount: int
    deep: list[Honest]


def play(body: Any, args: dict[str, Any]) -> tuple[list[Any], str, list[Any]]:
    ran: list[Any] = []
    ledger = MemoryLedger()

    def pay(p: Any) -> str:
        ran.append(p)
        return "paid"

    pay.__annotations__["p"] = body
    replies = [reply(calls=[call("c", "pay", {"p": args})]), reply(text="ok")]
    builder, model = describe(replies, tool(pay), ledger=ledger)
    out = answered(run(builder.build().run("go")))
    intents = [e.fact.args for e in ledger.entries(out.run_id) if isinstance(e.fact, ToolIntended)]
    return ran, model.requests[-1].messages[-1].text, intents


@pytest.mark.parametrize(
    ("body", "args"), [(Hiding, {"amount": 1, "to": "mallory"}), (Lying, {"amount": 999})]
)
def test_a_tool_does_not_run_with_what_its_type_keeps_off_the_record(body: Any, args: Any) -> None:
    ran, text, intents = play(body, args)
    assert ran == intents == []
    assert "recorded as they run" in text
    assert "mallory" not in text


@pytest.mark.parametrize(
    ("body", "args", "recorded"),
    [
        (
            Honest,
            {"amount": "5", "when": "2026-01-02", "tags": ["a"], "secret": "s3"},
            {"amount": 5, "when": "2026-01-02", "tags": ["a"], "secret": "**********"},
        ),
        (
            Flat,
            {"amount": 1, "deep": [{"amount": 2}]},
            {"amount": 1, "deep": [{"amount": 2, "when": None, "tags": [], "secret": None}]},
        ),
    ],
)
def test_dates_secrets_and_nested_types_run_and_are_recorded_as_their_types_say(
    body: Any, args: Any, recorded: Any
) -> None:
    ran, text, intents = play(body, args)
    assert len(ran) == 1
    assert text == "paid"
    assert intents == [{"p": recorded}]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)
    amount: int
    to: str = Field("nobody", exclude=True)


class Rooted(RootModel[list[Frozen]]):
    pass


class One(BaseModel):
    root: int = Field(exclude=True)


@pydantic_dataclass(config=ConfigDict(extra="allow"))
class Open:
    amount: int


HIDDEN = {"amount": 1, "to": "mallory"}


@pytest.mark.parametrize(
    ("body", "args"),
    [
        (dict[int, Frozen], {"1": HIDDEN}),
        (set[Frozen], [HIDDEN]),
        (frozenset[Frozen], [HIDDEN]),
        (deque[Frozen], [HIDDEN]),
        (tuple[Frozen, int], [HIDDEN, 1]),
        (Rooted, [HIDDEN]),
        (One, {"root": 5}),
        (Open, {"amount": 1, "z": 9}),
    ],
)
def test_what_a_type_keeps_off_the_record_is_found_wherever_it_stands(body: Any, args: Any) -> None:
    ran, text, intents = play(body, args)
    assert ran == intents == []
    assert "recorded as they run" in text


class Rate(BaseModel):
    rate: float = 0
    rates: dict[str, float] = {"a": 1}


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, serialize_by_alias=True)
    order_id: int


class Caching(BaseModel):
    amount: int

    @functools.cached_property
    def twice(self) -> int:
        return self.amount * 2

    @model_validator(mode="after")
    def warm(self) -> Self:
        assert self.twice
        return self


@pytest.mark.parametrize(
    ("body", "args", "recorded"),
    [
        (Rate, {}, {"rate": 0, "rates": {"a": 1}}),
        (Camel, {"orderId": 5}, {"orderId": 5}),
        (Caching, {"amount": 5}, {"amount": 5}),
        (dict[int, Rate], {"1": {"rate": 2}}, {"1": {"rate": 2, "rates": {"a": 1}}}),
        (Rooted, [{"amount": 1}], None),
    ],
)
def test_ordinary_types_run_and_are_on_record(body: Any, args: Any, recorded: Any) -> None:
    ran, text, intents = play(body, args)
    if recorded is None:
        assert "recorded as they run" in text
        return
    assert text == "paid", text
    assert len(ran) == 1
    assert intents == [{"p": recorded}]


def test_a_default_that_would_run_as_no_row_shows_it_is_refused_and_a_path_is_not() -> None:
    def hiding(p: Frozen = Frozen(amount=1, to="mallory")) -> None: ...  # noqa: B008
    def once(p: Once) -> None: ...
    def here(p: Path = Path("/tmp")) -> str:
        return str(p)

    for body in (hiding, once):
        with pytest.raises(BuilderError):
            tool(body)
    assert tool(here).schema["properties"]["p"]


def test_an_argument_with_an_alias_and_a_default_is_known_by_its_alias() -> None:
    @tool
    def find(order_id: Annotated[int, Field(alias="orderId")] = 5) -> int:
        return order_id

    assert list(find.schema["properties"]) == ["orderId"]


@dataclass
class Once:
    amount: int
    times: InitVar[int] = 1


def test_a_parameter_that_is_read_once_and_a_default_no_row_can_show_are_refused() -> None:
    def lazily(numbers: Iterable[int]) -> int:
        return sum(numbers)

    def oddly(number: float = float("nan")) -> float:
        return number

    for body in (lazily, oddly):
        with pytest.raises(BuilderError):
            tool(body)
