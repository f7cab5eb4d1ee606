"""Agents that pay, rules that ask a person about it, and everything that came of both."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from footprint_core import (
    Agent,
    AskPause,
    CheckInPause,
    HumanPause,
    Ledger,
    MemoryLedger,
    Outcome,
    Permission,
    Tool,
    ToolCallContext,
    ToolContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    allow,
    ask,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.facts import CallAnswered, Fact
from footprint_core.pause.checkpoint import digest
from footprint_core.providers import Completed, Scripted, call, reply
from footprint_core.session import Session
from story import Seen, describe

YES = check_in_approved(by="dana@ops", note="checked")
NO = check_in_declined(by="dana@ops", note="a duplicate")
DONE = reply(text="done")


class Rule:
    """A rule that answers what a test says, and remembers the calls it was shown."""

    def __init__(self, name: str, says: Callable[[ToolCallContext], ToolOutcome] | None = None) -> None:
        self.name = name
        self.version = "1"
        self.shown: list[ToolCallContext] = []
        self._says = says or (lambda call: allow(why="seen"))

    def on_tool_call(self, call: ToolCallContext, /) -> ToolOutcome:
        self.shown.append(call)
        return self._says(call)

    @property
    def args(self) -> list[dict[str, Any]]:
        """The args it was shown, call by call."""
        return [call.args for call in self.shown]


def asks(name: str = "four-eyes", *, question: str = "Really?", above: int = 100, **more: Any) -> Rule:
    """A rule that asks about amounts above a limit."""
    return Rule(name, lambda call: ask(question, **more) if call.args["amount"] > above else allow())


def adds(number: int, name: str = "fee") -> Rule:
    """A rule that adds to the amount."""
    return Rule(name, lambda call: allow({**call.args, "amount": call.args["amount"] + number}, why=name))


class Reads:
    """A rule for results that remembers what it was shown."""

    def __init__(self, name: str = "reader") -> None:
        self.name = name
        self.version = "1"
        self.shown: list[ToolResultContext] = []

    def on_tool_result(self, call: ToolResultContext, /) -> ToolResultOutcome:
        self.shown.append(call)
        return allow(why="read")


class Checker:
    """A permission checker that remembers the calls it was asked about."""

    name = "policy"

    def __init__(self, *says: Permission) -> None:
        self.says = list(says)
        self.asked: list[ToolCallContext] = []

    def check(self, call: ToolCallContext, /) -> Permission:
        self.asked.append(call)
        return self.says.pop(0) if self.says else Permission(result="allow")


class Till:
    """A tool that pays, what it paid, and the agents that have it."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.paid: list[int] = []
        self.contexts: list[ToolContext] = []
        self.ledger: Any = MemoryLedger() if ledger is None else ledger
        self.seen = Seen()
        self.model = Scripted([])

    def pay(self, **declared: Any) -> Tool:
        """The tool, with what it declares."""

        @tool(name="pay", **declared)
        async def pay(amount: int, context: ToolContext) -> dict[str, int]:
            self.paid.append(amount)
            self.contexts.append(context)
            return {"paid": amount}

        return pay

    def agent(
        self,
        said: Sequence[Completed] | Completed,
        rules: Sequence[Any] = (),
        *tools: Tool,
        permission: Checker | None = None,
        results: Sequence[Any] = (),
        ledger: Ledger | None = None,
        **options: Any,
    ) -> Agent:
        """An agent over what a model says; without other tools, it has the one that pays."""
        replies = [said] if isinstance(said, Completed) else said
        builder, self.model = describe(
            replies, *(tools or (self.pay(),)), watch=[self.seen], ledger=ledger or self.ledger, **options
        )
        builder.act(before_tool=list(rules), after_tool=list(results))
        if permission is not None:
            builder.permission(permission)
        return builder.build()

    def facts(self, run_id: str) -> list[Fact]:
        """The facts of a run."""
        return [entry.fact for entry in self.ledger.entries(run_id)]

    def ended(self, run_id: str) -> list[tuple[str, bool]]:
        """How each call of a run ended, and whether it is said to have run."""
        return [(f.status, f.executed) for f in self.facts(run_id) if isinstance(f, CallAnswered)]

    def read(self) -> list[str]:
        """What the model has read of its calls, as of its last request."""
        return [m.text for m in self.model.requests[-1].messages if isinstance(m, ToolMessage)]


def pays(*amounts: Any, name: str = "pay") -> list[Completed]:
    """A reply that pays every amount, and one that ends the turn."""
    return [reply(calls=[call(f"c{i}", name, {"amount": amount}) for i, amount in enumerate(amounts)]), DONE]


async def until_asked(agent: Agent | Session, **options: Any) -> Any:
    """The question a turn comes to."""
    return paused(await agent.run("go", **options))


def paused(outcome: Outcome) -> Any:
    """The outcome, which is a question."""
    assert isinstance(outcome, AskPause | CheckInPause | HumanPause), outcome
    return outcome


def posted(checkpoint: Any) -> Any:
    """A checkpoint as it comes out of the post: a copy that went through JSON."""
    return json.loads(json.dumps(checkpoint))


def edited(checkpoint: Any, path: str, value: Any, *, sealed: bool = False) -> Any:
    """A checkpoint with another value at a dotted path, `...` for none; sealed, its digest fits it."""
    changed = posted(checkpoint)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = changed
    for parent in parents:
        place = place[parent]
    if value is ...:
        del place[last]
    else:
        place[last] = copy.deepcopy(value)
    return seal(changed) if sealed else changed


def seal(checkpoint: Any) -> Any:
    """The checkpoint under a digest that fits it, as somebody writes it who means to deceive."""
    return {**checkpoint, "digest": digest(checkpoint["salt"], checkpoint)}


def paths(value: Any, within: str = "") -> Iterator[str]:
    """The dotted path of everything in a value."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield f"{within}{key}"
        yield from paths(value[key], f"{within}{key}.")
