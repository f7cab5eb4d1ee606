"""What is on record of arguments is what runs, or the call is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field, SecretStr, model_serializer

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


def test_a_parameter_that_is_read_once_and_a_default_no_row_can_show_are_refused() -> None:
    def lazily(numbers: Iterable[int]) -> int:
        return sum(numbers)

    def oddly(number: float = float("nan")) -> float:
        return number

    for body in (lazily, oddly):
        with pytest.raises(BuilderError):
            tool(body)
