"""The doors a turn can be played through: one story, told through each of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from footprint_core import (
    ActOptions,
    Agent,
    Answer,
    MemoryLedger,
    Outcome,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    tool,
)
from footprint_core.providers import Completed, Scripted, call, reply
from ruled import wire
from story import Seen, facts_of, run

NUMBER = "4111-1111"
MESSAGE = f"please pay 5 from {NUMBER}"
ANSWER = f"paid 5 from {NUMBER}"
YES = check_in_approved(by="dana@ops")


class Desk:
    """An agent that pays, in the middle of a story that depends on the door.

    Args:
        act: Its rules.
        streaming: Whether the model streams.
        options: For `Agent.create`.
    """

    def __init__(self, act: ActOptions, *, streaming: bool = False, **options: Any) -> None:
        self.act = act
        self.streaming = streaming
        self.options = options
        self.paid: list[int] = []
        self.seen = Seen()
        self.ledger = MemoryLedger()
        self.model = Scripted([])
        self.run_id = ""
        self.earlier = 0

    def build(self, *said: Completed, gate: bool = False) -> Agent:
        """The agent, over what the model says; with `gate`, a rule asks about the tool `opens`."""

        async def pay(amount: int) -> dict[str, Any]:
            self.paid.append(amount)
            return {"paid": amount, "from": NUMBER}

        def opens() -> str:
            return "open"

        @tool(check_in="always")
        def consents() -> str:
            return "open"

        def person() -> None:
            ask_human("Go on?")

        self.model = Scripted(said, streaming=self.streaming)
        builder = Agent.create(provider=self.model, model="m", name="desk", **self.options)
        builder.tool(pay, opens, consents, person).act(**self.act)
        if gate:
            builder.tool_middleware(_gate)
        return builder.watch(self.seen).ledger(self.ledger).build()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the rules under test about the payment and the messages, without their places."""
        kept = [row for row in self.ledger.decisions(self.run_id) if row.middleware != _gate.name]
        told = [facts_of(row) for row in kept if row.tool_name in {None, "pay"}]
        return [{k: v for k, v in row.items() if k not in {"position", "segment"}} for row in told]

    @property
    def requests(self) -> list[bytes]:
        """The requests of the turn that were made through the door, as bytes."""
        return [wire(request) for request in self.model.requests[self.earlier :]]

    @property
    def read(self) -> str:
        """What the model read of the payment."""
        messages = self.model.requests[-1].messages
        (text,) = (m.text for m in messages if isinstance(m, ToolMessage) and m.tool_name == "pay")
        return text


@before_tool("gate")
def _gate(asked: ToolCallContext) -> ToolOutcome:
    return ask("Open?") if asked.tool_name == "opens" else allow()


PAYS = call("c1", "pay", {"amount": 5})
DONE = reply(text=ANSWER)
Door: TypeAlias = Callable[[Desk], Outcome]


def _run(desk: Desk) -> Outcome:
    return _ended(desk, lambda agent: run(agent.run(MESSAGE)), desk.build(reply(calls=[PAYS]), DONE))


def _run_sync(desk: Desk) -> Outcome:
    return _ended(desk, lambda agent: agent.run_sync(MESSAGE), desk.build(reply(calls=[PAYS]), DONE))


def _run_typed(desk: Desk) -> Outcome:
    return _ended(desk, lambda agent: run(agent.run_typed(MESSAGE)), desk.build(reply(calls=[PAYS]), DONE))


def _follow_up(desk: Desk) -> Outcome:
    agent = desk.build(reply(text="hello"), reply(calls=[PAYS]), DONE)
    assert isinstance(run(agent.run("hello")), Answer)
    desk.earlier = 1
    return _ended(desk, lambda agent: run(agent.follow_up(MESSAGE)), agent)


def _session(desk: Desk) -> Outcome:
    agent = desk.build(reply(calls=[PAYS]), DONE)
    session = agent.session(conversation_id="c")
    try:
        return run(session.run(MESSAGE))
    finally:
        desk.run_id = session.last_run_id or ""


def _behind(pausing: str, answer: Any) -> Door:
    """The payment comes in the same reply behind a call that pauses; another agent resumes."""

    def door(desk: Desk) -> Outcome:
        calls = [call("c0", pausing, {}), PAYS]
        paused = run(desk.build(reply(calls=calls), gate=True).run(MESSAGE))
        assert not isinstance(paused, Answer)
        assert paused.tool_name == pausing
        desk.run_id = paused.run_id
        checkpoint = json.loads(json.dumps(paused.checkpoint))
        return run(desk.build(DONE, gate=True).resume(checkpoint, answer))

    return door


def _ended(desk: Desk, play: Callable[[Agent], Outcome], agent: Agent) -> Outcome:
    try:
        return play(agent)
    finally:
        desk.run_id = agent.last_run_id or ""


TAKING: dict[str, Door] = {
    "run": _run,
    "run_sync": _run_sync,
    "run_typed": _run_typed,
    "follow_up": _follow_up,
    "session": _session,
}
"""Doors that take a message."""

RESUMING: dict[str, Door] = {
    "resume behind a rule": _behind("opens", YES),
    "resume behind a check-in": _behind("consents", YES),
    "resume behind a tool": _behind("person", {"go": "on"}),
}
"""Doors that go on behind a pause."""

DOORS: dict[str, Door] = {**TAKING, **RESUMING}
"""Every door a turn can be played through."""
