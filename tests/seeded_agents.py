"""Three agents of a travel desk, on a clock that is told how long things take; see `seeded`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from footprint_core import (
    Agent,
    AgentBuilder,
    Permission,
    ToolCallContext,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    deny,
    on_message,
    sliding_window,
    static_credentials,
    tool,
)
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted
from footprint_observe import KeyRing, Redaction, Rule

KEYS = KeyRing.of({"2026": bytes(range(32))})
"""What pseudonyms, seals and the bodies of pauses are made with."""

POLICY = Redaction.of(
    rules=[
        Rule(path="**.card", strategy="seal"),
        Rule(path="**.customer", strategy="pseudonym"),
        Rule(path="**.phone", strategy="partial"),
        Rule(path="**.address", strategy="drop"),
        Rule(path="**.email", strategy="mask"),
    ],
    erasable=["**.passport"],
    keys=KEYS,
)
"""Every strategy of redaction, on the customer of an order."""

_CARD = re.compile(r"\b\d{4}-\d{4}-\d{4}-\d{4}\b")
_CUSTOMER = {
    "customer": "C-1001",
    "card": "4000-0000-0000-0002",
    "phone": "+1 555 0100 200",
    "address": "1 Sample Street",
    "email": "ada@example.com",
    "passport": "X0000000",
}


class Clock:
    """The clock of a seeded file: every look at it takes a quarter of a millisecond, the rest is said.

    Attributes:
        now_us: Microseconds since the Unix epoch.
    """

    def __init__(self, now_us: int) -> None:
        self.now_us = now_us

    def now(self) -> int:
        self.now_us += 250
        return self.now_us

    def passes(self, seconds: float) -> None:
        """Let time pass."""
        self.now_us += int(seconds * 1_000_000)


class Model(Scripted):
    """Gives its replies after some time, and raises when it has none left, as a service that is down."""

    def __init__(self, replies: Sequence[Completed], clock: Clock, *, streaming: bool) -> None:
        super().__init__(replies, streaming=streaming)
        self._clock = clock
        self._left = len(replies)

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self._left -= 1
        return _takes(None if self._left < 0 else super().reply(request), self._clock)


async def _takes(
    said: AsyncIterator[Chunk | Completed] | None, clock: Clock
) -> AsyncIterator[Chunk | Completed]:
    if said is None:
        clock.passes(10)
        raise ConnectionError("the model is down")
    async for one in said:
        clock.passes(0.3)
        yield one


@on_message("mask-cards")
def mask_cards(message: Any) -> Any:
    clean, count = _CARD.subn("[card]", message.content)
    return allow(clean, why=f"masked {count} card number(s)") if count else allow()


@on_message("no-abuse")
def no_abuse(message: Any) -> Any:
    return deny("We do not answer abuse.") if "idiot" in message.content else allow()


@on_message("no-promises")
def no_promises(message: Any) -> Any:
    if "guarantee" in message.content:
        return deny("Nothing is guaranteed in writing.")
    clean = message.content.replace("Project Bluebird", "Our desk")
    return allow(clean, why="took out an internal name") if clean != message.content else allow()


@before_tool("refund-ceiling")
def refund_ceiling(asked: ToolCallContext) -> Any:
    return deny("Refunds above $500 are not yours to give.") if asked.args.get("amount", 0) > 500 else allow()


@before_tool("four-eyes")
def four_eyes(asked: ToolCallContext) -> Any:
    amount = asked.args.get("amount", 0)
    return ask(f"Refund ${amount}?", detail=asked.args, expires_in=21_600) if amount > 100 else allow()


@before_tool("small-pages")
def small_pages(asked: ToolCallContext) -> Any:
    limit = asked.args.get("limit")
    if not isinstance(limit, int) or limit <= 50:
        return allow()
    return allow({**asked.args, "limit": 50}, why="no more than fifty at once")


@before_tool("fraud-score", version="2")
def fraud_score(asked: ToolCallContext) -> Any:
    if asked.args.get("order") == 13:
        raise LookupError("no score for this order")
    return allow()


def credit_check(patience: float) -> Any:
    @before_tool("credit-check", version="1", timeout=patience)
    async def checks(asked: ToolCallContext) -> Any:
        if asked.args.get("order") == 17:
            await asyncio.Event().wait()
        return allow()

    return checks


@before_tool("half-written")
def half_written(asked: ToolCallContext) -> Any:
    return None if asked.args.get("order") == 19 else allow()


@before_tool("trial-night-stop")
def trial_night_stop(asked: ToolCallContext) -> Any:
    """Allows everything; `seeded` files every third of its rows as a denial that was only recorded."""
    return allow()


@after_tool("strip-customer")
def strip_customer(done: Any) -> Any:
    if done.failed or not isinstance(done.result, dict) or "customer" not in done.result:
        return allow()
    left = {key: value for key, value in done.result.items() if key not in _CUSTOMER}
    return allow(left, why="the model needs nothing about the customer")


@after_tool("withhold-internal")
def withhold_internal(done: Any) -> Any:
    return deny("That article is internal.") if "internal only" in str(done.result) else allow()


class Desk:
    """Who may call what: nobody moves money to a bank, and nobody deletes an account."""

    name = "desk-policy"

    def check(self, asked: ToolCallContext, /) -> Permission:
        match asked.tool_name:
            case "wire_money":
                return Permission(result="halt", reason="a wire was asked for", policy_rule_id="D-1")
            case "delete_account":
                return Permission(
                    result="deny", rationale="accounts are deleted by hand", policy_rule_id="D-2"
                )
            case _:
                return Permission(result="allow")


def _refund_tools(clock: Clock) -> list[Any]:
    @tool(idempotent=True)
    async def look_up_order(order: int) -> dict[str, Any]:
        clock.passes(0.02 + order % 10 / 100)
        # Not every order has everything, so that each strategy of redaction is met another number of times.
        known = [key for place, key in enumerate(_CUSTOMER) if (order + 1) % (place + 1) == 0]
        return {"order": order, "paid": 649, **{key: _CUSTOMER[key] for key in known}}

    @tool
    async def issue_refund(order: int, amount: int) -> dict[str, Any]:
        clock.passes(0.2 + amount / 1000)
        return {"order": order, "refunded": amount}

    @tool(check_in="always", evidence=lambda args: {"order": args["order"], "reversible": False})
    async def charge_back(order: int) -> dict[str, Any]:
        clock.passes(1.5)
        return {"order": order, "charged_back": True}

    @tool
    async def wire_money(order: int, amount: int) -> None:
        raise AssertionError("the desk halts it")

    return [look_up_order, issue_refund, charge_back, wire_money]


def _support_tools(clock: Clock) -> list[Any]:
    @tool
    async def search_articles(words: str, limit: int = 10) -> dict[str, Any]:
        clock.passes(0.05 + limit / 1000)
        if words == "outage":
            raise TimeoutError("the search is down")
        return {"words": words, "found": ["internal only" if words == "salaries" else "how to rebook"]}

    @tool(needs="mail")
    async def send_mail(order: int) -> str:
        clock.passes(0.4)
        return f"sent about {order}"

    @tool(needs="sms")
    async def send_text(order: int) -> str:
        raise AssertionError("nobody has its credential")

    @tool
    async def delete_account(order: int) -> None:
        raise AssertionError("the desk denies it")

    return [search_articles, send_mail, send_text, delete_account]


def _travel_tools(clock: Clock) -> list[Any]:
    @tool
    async def find_flights(to: str) -> list[str]:
        clock.passes(0.8)
        return [f"{to} 08:10", f"{to} 17:45"]

    @tool
    async def pick_seat(order: int) -> str:
        clock.passes(0.01)
        ask_human("Which seat?", order=order, free=["12A", "14C"])

    @tool
    async def book_flight(order: int) -> str:
        clock.passes(2.5)
        if order == 99:
            # As a person who presses Ctrl-C while the airline is asked.
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        return f"booked {order}"

    # As if a server had lent it; what it does is the same.
    return [msgspec.structs.replace(find_flights, source="airline"), pick_seat, book_flight]


def builders(clock: Clock, *, patience: float = 60) -> dict[str, AgentBuilder]:
    """The agents by name, described but for their ledger and their watchers.

    Args:
        clock: What time they go by.
        patience: How long the rule of the 17th order, which never answers, is waited for.
    """

    def described(name: str, model: str, *tools: Any, **options: Any) -> AgentBuilder:
        nobody = Model([], clock, streaming=name == "support")
        made = Agent.create(provider=nobody, model=model, name=name, **options).tool(*tools)
        return made.permission(Desk()).credentials(static_credentials({"mail": "mail-token-000"}))

    refunds = described("refunds", "large-2", *_refund_tools(clock), keep_last_tool_results=1)
    support = described("support", "small-1", *_support_tools(clock))
    travel = described("travel", "large-2", *_travel_tools(clock), max_iterations=3)
    return {
        "refunds": refunds.act(
            input=[mask_cards, no_abuse],
            before_tool=[refund_ceiling, fraud_score, credit_check(patience), half_written, four_eyes],
            after_tool=[strip_customer],
            window=sliding_window(keep_recent_turns=3),
            output=[no_promises],
        ),
        "support": support.act(
            input=[no_abuse], before_tool=[small_pages], after_tool=[withhold_internal], output=[no_promises]
        ),
        "travel": travel.act(
            before_tool=[trial_night_stop], after_tool=[strip_customer], output=[no_promises]
        ),
    }
