"""Answers of a declared shape: a model, any type, a JSON Schema, and a schema of one's own."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, assert_type

from pydantic import BaseModel

from footprint_core import Agent, AgentBuilder, Answer, OutputSchema, OutputSchemaError
from footprint_core.providers import Scripted, reply


class Refund(BaseModel):
    order: int
    amount: float


class Even:
    """Judges by itself, and may hand over whatever it makes of the answer."""

    instruction = "Answer with an even number."

    def check(self, value: Any) -> int:
        if not isinstance(value, int) or value % 2:
            raise ValueError("it is not even")
        return value // 2


even: OutputSchema = Even()
schema: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def begun(*texts: str) -> AgentBuilder:
    script = [reply(text=text) for text in texts]
    return Agent.create(provider=Scripted(script), model="m", name="shaped")


async def value_of(builder: AgentBuilder) -> Any:
    out = await builder.build().run_typed("Answer")
    assert isinstance(out, Answer)
    assert_type(out.schema_met, bool | None)
    return out.value


async def failed_at(builder: AgentBuilder) -> str | None:
    try:
        await value_of(builder)
    except OutputSchemaError as error:
        assert_type(error.stage, Literal["json-parse", "schema-validate"])
        return error.stage
    return None


async def main() -> None:
    refund = await value_of(begun('{"order": 4, "amount": 2.5}').output_schema(Refund))
    assert isinstance(refund, Refund)
    assert refund.order == 4
    assert await value_of(begun("[1, 2]").output_schema(list[int])) == [1, 2]
    assert await value_of(begun('["a"]').output_schema(schema)) == ["a"]
    assert await value_of(begun("3", "4").output_schema(even, retries=1)) == 2
    assert await failed_at(begun("3").output_schema(even)) == "schema-validate"
    assert await failed_at(begun("4").output_schema(even)) is None


if __name__ == "__main__":
    asyncio.run(main())
