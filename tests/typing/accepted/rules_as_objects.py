"""Rules written as classes: a name and a hook, plain or async, one hook or several."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from footprint_core import (
    Agent,
    Answer,
    MessageContext,
    MessageOutcome,
    MessageRule,
    ToolCallContext,
    ToolCallRule,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    ToolResultRule,
    allow,
    ask,
    deny,
)
from footprint_core.providers import Scripted, call, reply


class Ceiling:
    """Every verb there is before a tool."""

    name = "ceiling"
    version = "3"

    def __init__(self, most: int) -> None:
        self.most = most

    def on_tool_call(self, call: ToolCallContext) -> ToolOutcome:
        amount: int = call.args["amount"]
        if amount < 0:
            return deny("An amount is not negative.")
        if amount > 10 * self.most:
            return ask(f"Pay {amount}?", detail={"most": self.most})
        if amount > self.most:
            return allow({**call.args, "amount": self.most}, why=f"at most {self.most}")
        return allow()


class Lookup:
    name = "lookup"

    async def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome:
        await asyncio.sleep(0)
        return allow(why=f"looked {call.tool_name} up")


@dataclass(frozen=True)
class Masked:
    """Two hooks, and a name that is a field."""

    name: str
    secret: str

    def on_tool_result(self, call: ToolResultContext) -> ToolResultOutcome:
        if call.failed:
            return allow()
        return allow(str(call.result).replace(self.secret, "***"), why="masked a word")

    async def on_message(self, message: MessageContext) -> MessageOutcome:
        clean = message.content.replace(self.secret, "***")
        return allow() if clean == message.content else allow(clean, why="masked a word")


class Either:
    """A hook may say that it is sometimes async."""

    @property
    def name(self) -> str:
        return "either"

    def on_message(self, message: MessageContext) -> MessageOutcome | Awaitable[MessageOutcome]:
        return allow() if message.phase == "input" else self._later()

    async def _later(self) -> MessageOutcome:
        return allow()


class Narrow:
    """A hook may promise less than the union."""

    name = "narrow"

    def on_tool_result(self, call: ToolResultContext) -> ToolResultOutcome:
        return deny("It failed.") if call.failed else allow(None, why="Nobody needs to read it.")


calls: list[ToolCallRule] = [Ceiling(100), Lookup()]
results: list[ToolResultRule] = [Narrow(), Masked("masked", "blue")]
messages: list[MessageRule] = [Masked("quiet", "blue"), Either()]


def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount} for the blue one"


async def main() -> None:
    script = [reply(calls=[call("1", "pay", {"amount": 250})]), reply(text="Paid for the blue one.")]
    builder = Agent.create(provider=Scripted(script), model="m", name="payer").tool(pay)
    agent = builder.act(input=messages, before_tool=calls, after_tool=results, output=messages).build()
    out = await agent.run("Pay 250")
    assert isinstance(out, Answer)
    assert out.text == "Paid for the *** one."
    assert [row.after for row in out.decisions if row.middleware == "ceiling"] == [{"amount": 100}]


if __name__ == "__main__":
    asyncio.run(main())
