"""The walker of a chain does what a ten-line model of it does."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from footprint_core import (
    MemoryLedger,
    allow,
    deny,
)
from footprint_core.providers import call, reply
from story import answered, describe

VERBS = ("pass", "reason", "add", "same", "deny", "raise", "junk")


class Rule:
    """Answers with one verb at each of the moments it has a hook for."""

    def __init__(self, name: str, before: str | None, after: str | None) -> None:
        self.name = name
        if before is not None:
            self.on_tool_call = lambda call: self._said(before, call.args["n"], lambda n: {"n": n})
        if after is not None:
            self.on_tool_result = lambda call: self._said(after, call.result, lambda n: n)

    def _said(self, verb: str, number: int, made: Any) -> Any:
        match verb:
            case "pass":
                return allow()
            case "reason":
                return allow(why=f"{self.name} looked")
            case "add":
                return allow(made(number + 1), why=f"{self.name} added")
            case "same":
                return allow(made(number), why=f"{self.name} kept")
            case "deny":
                return deny(f"{self.name} refused")
            case "raise":
                raise RuntimeError(f"{self.name} broke")
            case _:
                return {"outcome": "allow", "value": number}


def model(chain: list[tuple[str, str]], number: int) -> tuple[list[tuple[str, str, bool]], int | None]:
    """Rows (rule, outcome, changed) and the number that goes on, or None: a list and one loop."""
    rows: list[tuple[str, str, bool]] = []
    for name, verb in chain:
        if verb in {"deny", "raise", "junk"}:
            rows.append((name, "deny", False))
            return rows, None
        number += verb == "add"
        rows.append((name, "allow", verb == "add"))
    return rows, number


verbs = st.none() | st.sampled_from(VERBS)
chains = st.lists(st.tuples(verbs, verbs).filter(any), max_size=6)


@given(chains, st.integers(-5, 5))
def test_the_rows_and_what_goes_on_are_those_of_a_ten_line_model(
    chain: list[tuple[str | None, str | None]], number: int
) -> None:
    ran: list[int] = []

    async def take(n: int) -> int:
        ran.append(n)
        return n * 10

    rules = [Rule(f"r{i}", before, after) for i, (before, after) in enumerate(chain)]
    ledger = MemoryLedger()
    builder, provider = describe([reply(calls=[call("c", "take", {"n": number})]), reply(text="ok")], take)
    agent = builder.tool_middleware(*rules).ledger(ledger).build()
    out = answered(asyncio.run(_run(agent)))

    before = [(f"r{i}", verb) for i, (verb, _) in enumerate(chain) if verb is not None]
    after = [(f"r{i}", verb) for i, (_, verb) in enumerate(chain) if verb is not None][::-1]
    rows, runs = model(before, number)
    if runs is not None:
        more, reads = model(after, runs * 10)
        # A result that is refused is changed: the model reads the reason.
        rows += [(name, outcome, changed or outcome == "deny") for name, outcome, changed in more]
        text = provider.requests[-1].messages[-1].text
        assert (text == str(reads)) is (reads is not None)
    assert ran == ([] if runs is None else [runs])
    assert [(row.middleware, row.outcome, row.changed) for row in out.decisions] == rows
    assert ledger.decisions(out.run_id) == out.decisions


async def _run(agent: Any) -> Any:
    return await agent.run("go")
