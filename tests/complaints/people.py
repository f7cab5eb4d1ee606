"""A till whose payments a person is asked about, for tests of pauses and of what answers them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from footprint_core import (
    Agent,
    Answer,
    Ledger,
    MemoryLedger,
    Outcome,
    Pause,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    Watcher,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.providers import Completed, Scripted, call, reply

YES = check_in_approved(by="dana@ops", note="checked")
NO = check_in_declined(by="dana@ops", note="not today")
DONE = reply(text="done")


def through_json(checkpoint: Any) -> Any:
    """What is left of a checkpoint behind a trip through text."""
    return json.loads(json.dumps(checkpoint, sort_keys=True, indent=1))


def pays(*amounts: int, name: str = "pay") -> Completed:
    """A reply that asks for payments, under the ids `c0`, `c1` and so on."""
    return reply(calls=[call(f"c{i}", name, {"amount": amount}) for i, amount in enumerate(amounts)])


@before_tool("four-eyes")
def four_eyes(asked: ToolCallContext) -> ToolOutcome:
    """Asks about payments above 100."""
    if asked.tool_name != "pay" or asked.args.get("amount", 0) <= 100:
        return allow()
    return ask("Pay so much?", detail={"amount": asked.args["amount"]})


class Till:
    """What was done, and the tools that do it.

    Three of them can pause: `pay` above 100 by a rule, `wire` by its own declaration, `person` while it runs.
    """

    def __init__(self) -> None:
        self.did: list[tuple[str, Any]] = []
        self.keys: list[str] = []

    def tools(self) -> list[Any]:
        """The tools."""

        def pay(amount: int, context: ToolContext) -> str:
            self.did.append(("pay", amount))
            self.keys.append(context.idempotency_key)
            return f"paid {amount}"

        @tool(check_in=lambda args: args["amount"] > 100, evidence=lambda args: {"much": args["amount"]})
        def wire(amount: int, context: ToolContext) -> str:
            self.did.append(("wire", amount))
            self.keys.append(context.idempotency_key)
            return f"wired {amount}"

        def person(amount: int, context: ToolContext) -> str:
            self.did.append(("person", amount))
            self.keys.append(context.idempotency_key)
            if amount > 100:
                ask_human("May I?", amount=amount)
            return f"asked nobody about {amount}"

        return [pay, wire, person]

    def agent(
        self,
        *said: Completed,
        ledger: Ledger | None = None,
        rules: Sequence[Any] = (four_eyes,),
        watch: Sequence[Watcher] = (),
        streaming: bool = False,
        id: str = "till",
        **options: Any,
    ) -> tuple[Agent, Scripted]:
        """An agent over what its model says."""
        model = Scripted(said, streaming=streaming)
        builder = Agent.create(provider=model, model="m", name="till", id=id, **options)
        builder.tool(*self.tools()).tool_middleware(*rules).watch(*watch)
        return builder.ledger(MemoryLedger() if ledger is None else ledger).build(), model


PAUSING = ("pay", "wire", "person")
"""The tools of a till that pause above 100: by a rule, by a consent, by themselves."""


def paused(outcome: Outcome) -> Pause:
    """The outcome, which is a pause."""
    assert not isinstance(outcome, Answer), outcome
    return outcome


def answer_to(pause: Pause) -> Any:
    """What lets the call of a pause go on."""
    return answer_about(pause.tool_name)


def answer_about(name: str) -> Any:
    """What lets a call of one of the tools that pause go on."""
    return {"may": "go on"} if name == "person" else YES
