"""A file in which calls ended in every way there is; each call has the name of its end as its id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asked import NO, YES, Checker, adds, asks, paused
from file_ledger import on_file
from footprint_core import (
    Agent,
    Permission,
    ToolCallContext,
    allow,
    ask_human,
    before_tool,
    deny,
    tool,
)
from footprint_core.facts import CallTaken, Fact, MessageTaken, RunConfigured, ToolIntended
from footprint_core.ledger import Batch, Entry
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from story import answered, run

WHO = {"user": "ada", "team": "desk"}
MESSAGE = "pay the \u00fcber invoice"
SAME_ID = "again"


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    if amount == 13:
        raise LookupError("no such account")
    return {"paid": amount}


@tool(needs="bank")
def wire(amount: int) -> int:
    """Pay with a credential nobody provides."""
    return amount


@tool(check_in="always", evidence=lambda args: {"reversible": False})
def close(amount: int) -> dict[str, int]:
    """Pay with consent."""
    return {"closed": amount}


@tool
def choose(amount: int) -> str:
    """Ask a person."""
    ask_human("Which colour?", options=["red", "blue"])


@before_tool("ceiling", version="7")
def ceiling(call: ToolCallContext) -> Any:
    """Refuse one amount."""
    return deny("Above the ceiling.") if call.args.get("amount") == 2000 else allow()


def _agent(ledger: SqliteLedger, id: str, name: str, args: Any, rules: Sequence[Any], **more: Any) -> Agent:
    model = Scripted([reply(calls=[call(id, name, args)]), reply(text="done")])
    builder = Agent.create(provider=model, model="m-1", name="desk").tool(pay, wire, close, choose)
    builder.act(before_tool=[ceiling, *rules]).ledger(ledger)
    if "permission" in more:
        builder.permission(more["permission"])
    return builder.build()


async def _all(ledger: SqliteLedger) -> dict[str, str]:
    runs: dict[str, str] = {}

    async def one(
        id: str, args: Any, *rules: Any, name: str = "pay", answer: Any = None, key: str = "", **more: Any
    ) -> None:
        agent = _agent(ledger, id, name, args, rules, **more)
        outcome = await agent.run(MESSAGE, identity=WHO)
        runs[key or id] = outcome.run_id
        if answer is not None:
            answered(await agent.resume(paused(outcome).checkpoint, answer))

    await one(SAME_ID, {"amount": 1}, key="the older")
    await one("ran", {"amount": 1})
    await one("changed", {"amount": 1}, adds(1))
    await one("failed", {"amount": 13})
    await one("denied", {"amount": 2000})
    await one("invalid", {"amount": "much"})
    await one("unknown", {"amount": 1}, name="nothing")
    await one("blocked", {"amount": 1}, name="wire")
    forbidden = Permission(result="deny", rationale="it is late", reason="not at night", policy_rule_id="P-7")
    await one("not-permitted", {"amount": 1}, permission=Checker(forbidden))
    await one("approved", {"amount": 500}, asks(), answer=YES)
    await one("changed-behind", {"amount": 500}, asks(), adds(-1), answer=YES)
    await one("declined", {"amount": 500}, asks(), answer=NO)
    await one("consented", {"amount": 1}, name="close", answer=YES)
    await one("refused-consent", {"amount": 1}, name="close", answer=NO)
    await one("human", {"amount": 1}, name="choose", answer="blue")
    await one("waiting", {"amount": 500}, asks())
    await one(SAME_ID, {"amount": 2}, key="the newer")
    return runs


def _cut_short(ledger: SqliteLedger) -> None:
    """A run whose process died in the body of a tool."""
    facts: tuple[Fact, ...] = (
        RunConfigured(
            agent_id="a", agent_name="desk", provider="s", model="m-1", rules={}, tools=("pay",), turn_index=1
        ),
        MessageTaken(turn_index=1, message_chars=2, text="go"),
        CallTaken(iteration=1, call_id="in-doubt", tool_name="pay"),
        ToolIntended(iteration=1, call_id="in-doubt", tool_name="pay", args={"amount": 3}),
    )
    now = 1_800_000_000_000_000
    entries = tuple(Entry(position=at, time=now + at, fact=fact) for at, fact in enumerate(facts, 1))
    ledger.append_inline(Batch(run_id="f" * 32, segment=1, entries=entries))


def play(path: Path) -> dict[str, str]:
    """Let calls end in every way; the run of each, by its end."""
    ledger = on_file(path)

    async def go() -> dict[str, str]:
        runs = await _all(ledger)
        runs["cancelled"] = await _cancelled(ledger)
        return runs

    runs = run(go())
    _cut_short(ledger)
    asyncio.run(ledger.close())
    return {**runs, "in-doubt": "f" * 32}


async def _cancelled(ledger: SqliteLedger) -> str:
    """A turn that is cancelled while a tool runs."""
    reached = asyncio.Event()

    async def wait() -> None:
        reached.set()
        await asyncio.Event().wait()

    model = Scripted([reply(calls=[call("cancelled", "wait", {})])])
    agent = Agent.create(provider=model, model="m-1", name="desk").tool(wait).ledger(ledger).build()
    turn = asyncio.ensure_future(agent.run("go"))
    await reached.wait()
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    return _newest(ledger)


def _newest(ledger: SqliteLedger) -> str:
    from footprint_observe.query import run as newest

    return newest(ledger.path)["run_id"]
