"""Random conversations: what a model asks for, what the tools do, and a world to play them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from footprint_core import (
    ActOptions,
    Agent,
    Ledger,
    MemoryLedger,
    Tool,
    ToolContext,
    Watcher,
    WindowStrategy,
    pause_here,
    tool,
)
from footprint_core.providers import Completed, Scripted, call, reply

TOOLS = ("echo", "fail", "person")


class Asked(msgspec.Struct, frozen=True):
    """One call a model asks for."""

    tool: str
    number: int


calls = st.builds(Asked, st.sampled_from(TOOLS), st.integers(0, 9))
turns = st.lists(st.lists(calls, min_size=1, max_size=3), min_size=0, max_size=4)
"""The calls of each reply of a turn; a text ends it."""


def replies(asked: Sequence[Sequence[Asked]]) -> list[Completed]:
    """What a scripted model says."""
    said = [
        reply(calls=[call(f"c{i}-{j}", one.tool, {"number": one.number}) for j, one in enumerate(batch)])
        for i, batch in enumerate(asked)
    ]
    return [*said, reply(text="done")]


class World:
    """Tools that remember what they ran with, over one ledger.

    Args:
        asks: Whether the tool `person` asks a person; without, it gives what they would answer.
        idempotent: Whether the tools say that running them twice is harmless.
    """

    def __init__(self, *, asks: bool = False, ledger: Ledger | None = None, idempotent: bool = False) -> None:
        self.asks = asks
        self.idempotent = idempotent
        self.ran: list[tuple[str, int]] = []
        self.ledger: Ledger = MemoryLedger() if ledger is None else ledger

    def tools(self) -> tuple[Tool, ...]:
        """The tools of `TOOLS`."""

        @tool(inline=True, idempotent=self.idempotent)
        def echo(number: int) -> dict[str, Any]:
            self.ran.append(("echo", number))
            return {"number": number, "deep": [{"number": number}]}

        @tool(inline=True, idempotent=self.idempotent)
        def fail(number: int) -> int:
            self.ran.append(("fail", number))
            raise ValueError(f"no {number}")

        @tool(inline=True, idempotent=self.idempotent)
        def person(number: int, context: ToolContext) -> Any:
            self.ran.append(("person", number))
            if self.asks:
                pause_here({"number": number, "call": context.call_id})
            return answer(number)

        return (echo, fail, person)

    def agent(
        self,
        said: Sequence[Completed],
        act: ActOptions | None = None,
        *,
        watch: Sequence[Watcher] = (),
        window: WindowStrategy | None = None,
        parallel: bool = False,
    ) -> tuple[Agent, Scripted]:
        """An agent over what a model says."""
        model = Scripted(said)
        builder = Agent.create(
            provider=model, model="m", name="random", max_iterations=50, parallel_tools=parallel
        )
        builder.tool(*self.tools()).ledger(self.ledger).watch(*watch)
        if act is not None:
            builder.act(**act)
        if window is not None:
            builder.window(window)
        return builder.build(), model


def answer(number: int) -> dict[str, int]:
    """What a person answers a tool that asks."""
    return {"answered": number}


def asked_for(model: Scripted) -> list[Any]:
    """Every request as plain data."""
    return [msgspec.to_builtins((request.messages[:], request.tools)) for request in model.requests]
