"""Rules that answer what a test says, at any moment, and what came of one turn under them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec

from footprint_core import (
    AgentBuilder,
    MemoryLedger,
    MessageDeniedError,
    Outcome,
    ToolContext,
    act_key_for,
    after_tool,
    before_tool,
    on_message,
    plain,
    tool,
)
from footprint_core.events import Event
from footprint_core.facts import Fact
from footprint_core.providers import Completed, ModelRequest, Scripted, call, reply
from story import Seen, describe, facts_of, run

RuledMoment: TypeAlias = Literal["input", "before-tool", "after-tool", "output"]
Hook: TypeAlias = Callable[[Any], Any]

RULED: tuple[RuledMoment, ...] = ("input", "before-tool", "after-tool", "output")
"""The moments at which rules answer."""

MESSAGE = "please pay"
ANSWER = "it is paid"
RESULT = {"paid": 5, "card": "4111"}
PAYS = (reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text=ANSWER))

VALUES: dict[RuledMoment, Any] = {
    "input": MESSAGE,
    "before-tool": {"amount": 5},
    "after-tool": RESULT,
    "output": ANSWER,
}
"""What a rule is shown at each moment of the turn `play` plays."""

REPLACEMENTS: dict[RuledMoment, Any] = {
    "input": "please pay less",
    "before-tool": {"amount": 0},
    "after-tool": ["withdrawn"],
    "output": "it is settled",
}
"""A value that may stand in its place."""


def rule_at(moment: RuledMoment, hook: Hook, name: str = "rule") -> Any:
    """A rule with one hook."""
    makes: dict[RuledMoment, Any] = {
        "input": on_message,
        "before-tool": before_tool,
        "after-tool": after_tool,
        "output": on_message,
    }
    return makes[moment](name)(hook)


def act_at(moment: RuledMoment, *rules: Any) -> dict[str, Any]:
    """Rules under the key of a moment."""
    return {act_key_for(moment): list(rules)}


def answers(answer: object) -> Hook:
    """A hook that answers this, or raises it."""

    def hook(_: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return hook


def shown(moment: RuledMoment, context: Any) -> Any:
    """The value a rule is shown at a moment."""
    return getattr(context, {"before-tool": "args", "after-tool": "result"}.get(moment, "content"))


class Played:
    """One turn, or more, and everything that can be seen of it from outside."""

    def __init__(self, builder: AgentBuilder, model: Scripted, *, watcher: str = "seen") -> None:
        self.seen = Seen(watcher)
        self.ledger = MemoryLedger()
        self.agent = builder.watch(self.seen).ledger(self.ledger).build()
        self.model = model
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None

    def go(self, *expected: type[BaseException]) -> Played:
        """Run the turn; a refused message and what is expected are kept, not raised."""
        try:
            self.outcome = run(self.agent.run(MESSAGE))
        except BaseException as error:
            if not isinstance(error, (MessageDeniedError, *expected)):
                raise
            self.error = error
        return self

    @property
    def ran(self) -> list[int]:
        """The amounts that were paid in the run."""
        return _paid[self.agent.last_run_id or ""]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The decision rows of the run, without what differs between equal runs."""
        return [facts_of(row) for row in self.ledger.decisions(self.agent.last_run_id or "")]

    @property
    def facts(self) -> list[Fact]:
        """The facts of the run."""
        return [entry.fact for entry in self.ledger.entries(self.agent.last_run_id or "")]

    @property
    def requests(self) -> list[bytes]:
        """The bytes of every request."""
        return [wire(request) for request in self.model.requests]

    @property
    def events(self) -> list[Any]:
        """The events, without what differs between equal runs."""
        return [even(event) for event in self.seen.events]

    @property
    def read(self) -> str:
        """What the model read of the call."""
        return self.model.requests[1].messages[-1].text

    def refusal(self, moment: RuledMoment) -> str:
        """What a denial says to whoever reads it: the model, or the caller."""
        if moment in {"before-tool", "after-tool"}:
            return self.read
        assert isinstance(self.error, MessageDeniedError)
        assert self.error.phase == moment
        return self.error.reason

    def acted(self, moment: RuledMoment) -> bool:
        """Whether what a moment decides about went on."""
        if moment == "input":
            return bool(self.model.requests)
        if moment == "before-tool":
            return bool(self.ran)
        if moment == "after-tool":
            return any(b"4111" in request for request in self.requests)
        return self.outcome is not None


def play(
    act: dict[str, Any] | None = None,
    *expected: type[BaseException],
    replies: Sequence[Completed] = PAYS,
    **options: Any,
) -> Played:
    """One turn of an agent with a tool that pays, under rules."""
    builder, model = paying(replies, **options)
    if act is not None:
        builder.act(**act)
    return Played(builder, model).go(*expected)


_paid: defaultdict[str, list[int]] = defaultdict(list)


@tool
async def pay(amount: int, context: ToolContext) -> dict[str, Any]:
    """Pay."""
    _paid[context.run_id].append(amount)
    return {**RESULT, "paid": amount}


def paying(replies: Sequence[Completed] = PAYS, **options: Any) -> tuple[AgentBuilder, Scripted]:
    """A builder over a tool that pays, and the model."""
    return describe(replies, pay, **options)


def wire(request: ModelRequest) -> bytes:
    """A request as bytes."""
    return plain.encode(
        {
            "system": request.system,
            "messages": msgspec.to_builtins(request.messages[:]),
            "tools": msgspec.to_builtins(request.tools),
            "model": request.model,
        }
    )


def even(event: Event) -> Any:
    """An event without what differs between equal runs."""
    told: dict[str, Any] = msgspec.to_builtins(event)
    for key in ("run_id", "time", "duration", "paused", "pause_id"):
        with suppress(KeyError):
            del told[key]
    return told
