"""An agent that handles refunds: two tools, and a rule at every moment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from footprint_core import (
    Agent,
    Ledger,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    Watcher,
    after_tool,
    allow,
    ask,
    before_tool,
    deny,
    on_message,
    sliding_window,
)
from footprint_core.plain import is_object
from footprint_core.providers import Provider

CEILING = 500
"""Refunds above it are refused, in dollars."""

TWO_PERSONS = 100
"""Refunds above it need a person, in dollars."""

_SSN = re.compile(r"\b\d{3}-\d{2}-\d{4}\b", re.ASCII)
_CODE_NAME = re.compile(r"\bProject [A-Z][a-z]+\b", re.ASCII)
_PERSONAL = ("name", "email", "address")


@on_message("scrub-ssns")
def scrub_ssns(message: MessageContext) -> MessageOutcome:
    """No social security number reaches the model."""
    clean, count = _SSN.subn("[ssn]", message.content)
    return allow(clean, why=f"masked {count} social security number(s)") if count else allow()


@before_tool("refund-ceiling")
def refund_ceiling(call: ToolCallContext) -> ToolOutcome:
    """A refund above the ceiling is not the agent's to give."""
    if call.tool_name == "issue_refund" and call.args.get("amount", 0) > CEILING:
        return deny(f"Refunds above ${CEILING} are not yours to give; offer at most ${CEILING}.")
    return allow()


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    """A refund that is not small needs a person."""
    if call.tool_name == "issue_refund" and call.args.get("amount", 0) > TWO_PERSONS:
        args = call.args
        return ask(f"Refund ${args['amount']} for order {args['order_id']}?", detail=args)
    return allow()


@after_tool("strip-pii")
def strip_pii(call: ToolResultContext) -> ToolResultOutcome:
    """The model reads what it needs of an order, and nothing about the customer."""
    result = call.result
    if not is_object(result):
        return allow()
    found = [key for key in _PERSONAL if result.pop(key, None) is not None]
    return allow(result, why=f"removed {', '.join(found)}") if found else allow()


@on_message("no-codenames")
def no_codenames(message: MessageContext) -> MessageOutcome:
    """The names of internal projects stay inside."""
    clean, count = _CODE_NAME.subn("Our refund desk", message.content)
    return allow(clean, why=f"removed {count} internal name(s)") if count else allow()


async def look_up_order(order_id: int) -> dict[str, object]:
    """Look up an order."""
    return {
        "order_id": order_id,
        "item": "espresso machine",
        "paid": 649,
        "status": "arrived broken",
        "name": "Ada Example",
        "email": "ada@example.com",
        "address": "1 Sample Street",
    }


async def issue_refund(order_id: int, amount: int) -> dict[str, object]:
    """Refund an amount, in whole dollars, for an order."""
    return {"order_id": order_id, "refunded": amount, "receipt": f"R-{order_id}-{amount}"}


def refund_agent(provider: Provider, ledger: Ledger, watchers: Sequence[Watcher] = ()) -> Agent:
    """The agent, over a provider, a ledger and watchers."""
    return (
        Agent.create(provider=provider, model="scripted-model", name="refunds")
        .system("You handle refunds.")
        .tool(look_up_order, issue_refund)
        .act(
            input=[scrub_ssns],
            before_tool=[refund_ceiling, four_eyes],
            after_tool=[strip_pii],
            window=sliding_window(keep_recent_turns=12),
            output=[no_codenames],
        )
        .watch(*watchers)
        .ledger(ledger)
        .build()
    )
