"""Real runs, recorded to be stamped out: what the batches of a run of a busy agent look like.

Five agents with 20 rules in three versions and 12 tools take messages; about 3 % of what the rules decide are
denials, one run in 25 asks a person, and one person in five has not answered yet.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from footprint_core import (
    Agent,
    AskPause,
    MemoryLedger,
    MessageContext,
    ToolCallContext,
    ToolResultContext,
    allow,
    ask,
    check_in_approved,
    check_in_declined,
    deny,
)
from footprint_core.facts import Usage
from footprint_core.ledger import Batch, Receipt
from footprint_core.providers import Scripted, call, reply

RULES, VERSIONS, TOOLS, PERSONS = 20, 3, 12, 12
DENIED, ASKED = 0.03, 0.02
NOTE = "the parcel was left at the neighbour, who has not answered the door since monday"


class Recording(MemoryLedger):
    """A ledger that remembers the batches it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.batches.append(batch)
        return super().append_inline(batch)


class Rule:
    """Allows most, changes some, refuses a few, and asks a person about fewer."""

    def __init__(self, number: int, version: int, chance: random.Random) -> None:
        self.name = f"rule-{number:02d}"
        self.version = f"{version}.{number}"
        self._chance = chance


class MessageRule(Rule):
    def on_message(self, message: MessageContext) -> Any:
        if message.phase == "input" and self._chance.random() < 0.1:
            return allow(message.content.replace("c-1", "c-*"), why="customer numbers are not for the model")
        return allow()


class CallRule(Rule):
    def on_tool_call(self, call: ToolCallContext) -> Any:
        drawn = self._chance.random()
        if drawn < DENIED * 1.6:
            return deny(f"{self.name} does not let {call.tool_name} act on order {call.args['order']}")
        if drawn < DENIED * 1.6 + ASKED:
            return ask(f"May {call.tool_name} act on order {call.args['order']}?", detail={"amount": 4200})
        if drawn < 0.15:
            return allow({**call.args, "amount": 3000}, why="over the ceiling, so it was lowered")
        return allow()


class ResultRule(Rule):
    def on_tool_result(self, call: ToolResultContext) -> Any:
        if self._chance.random() < 0.2 and not call.failed:
            return allow({**call.result, "note": ""}, why="notes are not for the model")
        return allow()


def tool(name: str) -> Any:
    async def body(order: int, amount: int, customer: str) -> dict[str, Any]:
        return {"order": order, "amount": amount, "customer": customer, "status": "done", "note": NOTE}

    body.__name__ = name
    return body


def agent(kind: int, version: int, chance: random.Random, ledger: Recording) -> tuple[Agent, list[str]]:
    """One of the agents, its rules in one of their versions, with the turns of one run."""
    tools = [f"tool_{(kind * 3 + i) % TOOLS:02d}" for i in range(4)]
    asked = chance.choices((0, 1, 2, 3), (2, 5, 2, 1))[0]
    usage = Usage(input=1200, output=80)
    said = [
        reply(text="One moment.", usage=usage, calls=[call(f"call_{n}", chance.choice(tools), args(chance))])
        for n in range(asked)
    ]
    model = Scripted([*said, reply(text=f"That is done now, {NOTE}.", usage=usage)])
    builder = Agent.create(provider=model, model="a-model", name=f"agent-{kind}")
    builder.tool(*map(tool, tools)).ledger(ledger).system("You look after orders.")
    at = [(kind * 4 + i) % RULES for i in range(9)]
    message, before, after, last = at[:2], at[2:6], at[6:8], at[8:]
    builder.act(
        input=[MessageRule(n, version, chance) for n in message],
        before_tool=[CallRule(n, version, chance) for n in before],
        after_tool=[ResultRule(n, version, chance) for n in after],
        output=[MessageRule(n, version, chance) for n in last],
    )
    return builder.build(), tools


def args(chance: random.Random) -> dict[str, Any]:
    return {"order": chance.randrange(10**6), "amount": 4200, "customer": f"c-1{chance.randrange(10**5):05d}"}


async def one(kind: int, version: int, chance: random.Random) -> list[Batch]:
    """The batches of one run."""
    ledger = Recording()
    built, _ = agent(kind, version, chance, ledger)
    message = f"Order {chance.randrange(10**6)} of c-1{chance.randrange(10**5):05d} did not come: {NOTE}."
    async with built:
        out = await built.run(message, identity={"user": f"u-{chance.randrange(5000)}"})
        while isinstance(out, AskPause) and chance.random() < 0.8:
            by = f"person-{chance.randrange(PERSONS):02d}@ops"
            yes = chance.random() < 0.7
            decided = check_in_approved(by=by) if yes else check_in_declined(by=by, note="not this one")
            out = await built.resume(out.checkpoint, decided)
    return ledger.batches


async def recorded(version: int, runs: int, chance: random.Random) -> Sequence[list[Batch]]:
    """Runs of all agents, with their rules in one of their versions."""
    return [await one(number % 5, version, chance) for number in range(runs)]
