"""Tools: functions as they are, decorated with and without options, methods, plain and async."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, assert_type

from pydantic import BaseModel, Field

from footprint_core import Agent, Answer, Tool, ToolContext, tool
from footprint_core.providers import Scripted, call, reply


def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


async def wait(seconds: Annotated[float, Field(ge=0)]) -> dict[str, float]:
    """Wait a little."""
    await asyncio.sleep(0)
    return {"waited": seconds}


@tool
def shout(text: str, *, how: Literal["loud", "louder"] = "loud") -> str:
    """Say it louder."""
    return text.upper() + ("!" if how == "louder" else "")


@tool(name="look-up", inline=True, idempotent=True)
def look_up(key: str, context: ToolContext) -> list[str]:
    """Look a key up."""
    return [key, context.call_id]


class Line(BaseModel):
    item: str
    count: int = 1


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    async def order(self, lines: list[Line], context: ToolContext) -> str:
        """Order something."""
        await asyncio.sleep(0)
        return f"{sum(line.count for line in lines)} things from {self.name} ({context.iteration})"


assert_type(shout, Tool)
assert_type(look_up, Tool)
assert_type(tool(add), Tool)
assert_type(tool(name="plus")(add), Tool)


async def main() -> None:
    asked = [
        call("1", "add", {"a": 1}),
        call("2", "wait", {"seconds": 0.5}),
        call("3", "shout", {"text": "hi", "how": "louder"}),
        call("4", "look-up", {"key": "k"}),
        call("5", "order", {"lines": [{"item": "pen"}, {"item": "ink", "count": 2}]}),
    ]
    model = Scripted([reply(calls=asked), reply(text="Done.")])
    builder = Agent.create(provider=model, model="m", name="tools")
    out = await builder.tool(add, wait, shout, look_up).tool(Shop("here").order).build().run("Go")
    assert isinstance(out, Answer)
    assert [message.text for message in model.requests[1].messages[2:]] == [
        "3",
        '{"waited":0.5}',
        "HI!",
        '["k","4"]',
        "3 things from here (1)",
    ]


if __name__ == "__main__":
    asyncio.run(main())
