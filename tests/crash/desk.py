"""The conversation that is killed: eleven calls, three questions, and tools that say when they ran.

Nothing in it depends on the process: the model answers by the length of the conversation, so whoever goes on
with a run after a kill gets the replies the run would have had.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from footprint_core import (
    Agent,
    Answer,
    Ledger,
    Outcome,
    ToolCallContext,
    ToolContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    tool,
)
from footprint_core.ledger import Entry
from footprint_core.messages import ToolMessage
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply

YES = check_in_approved(by="dana@ops", note="checked")
CANARY = "zanzibar"
MESSAGE = f"Settle all of them for {CANARY}."
IDEMPOTENT = frozenset({"look", "stamp"})
"""The tools that may run twice."""

Passes = Callable[[str], None]
"""Told that a seam is passed; it may not return."""


class Notes:
    """What a process saw, a line each, in a file that is only appended to; it outlives every kill."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(self, saw: str, **more: Any) -> None:
        """Append a line, in one write."""
        os.write(self._file, json.dumps({"saw": saw, **more}).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self.path.read_bytes().splitlines():
            yield json.loads(line)

    def of(self, saw: str) -> list[dict[str, Any]]:
        """The lines of one kind."""
        return [note for note in self if note["saw"] == saw]


def fingerprint(entry: Entry) -> str:
    """A digest of an entry as it is kept: its place, its time and its fact."""
    fact = msgspec.json.encode(entry.fact)
    return hashlib.sha256(b"%d %d %s" % (entry.position, entry.time, fact)).hexdigest()


REPLIES: tuple[Completed, ...] = (
    reply(calls=[call("c1", "look", {"order": 1}), call("c2", "pay", {"order": 2})]),
    reply(calls=[call("c3", "pay", {"order": 3, "amount": 500}), call("c4", "stamp", {"order": 4})]),
    reply(calls=[call("c5", "wire", {"order": 5}), call("c6", "look", {"order": 6})]),
    reply(calls=[call("c7", "person", {"order": 7}), call("c8", "pay", {"order": 8})]),
    reply(
        calls=[
            call("c9", "look", {"order": 9}),
            call("c10", "stamp", {"order": 10}),
            call("c11", "pay", {"order": 11}),
        ]
    ),
)
CALLS = {one.id: one.name for completed in REPLIES for one in completed.tool_calls}
"""The name of the tool of every call there is, in order."""


class Follows:
    """A model that answers by how far the conversation is; its answer is all that its tools said."""

    name = "follows"

    def __init__(self, replies: int) -> None:
        self._replies = replies

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        turns = sum(message.role == "assistant" for message in request.messages)
        if turns < self._replies:
            yield REPLIES[turns]
            return
        read = {
            message.call_id: message.text for message in request.messages if isinstance(message, ToolMessage)
        }
        yield reply(text=json.dumps(read))


@before_tool("limits")
def limits(asked: ToolCallContext) -> ToolOutcome:
    """Changes what is looked for, so that what runs is not what the model wrote."""
    if asked.tool_name != "look":
        return allow()
    return allow({**asked.args, "depth": 2}, why="not deeper than two")


@before_tool("four-eyes")
def four_eyes(asked: ToolCallContext) -> ToolOutcome:
    """Asks about payments above 100."""
    return ask("Pay so much?") if asked.args.get("amount", 0) > 100 else allow()


@after_tool("brief")
def brief(done: ToolResultContext) -> ToolResultOutcome:
    """Changes what the model reads of a payment."""
    if done.tool_name != "pay" or done.failed:
        return allow()
    return allow(f"{done.result} (short)", why="the model needs no more")


def tools(notes: Notes, passes: Passes) -> list[Any]:
    """The tools; each says that it was entered with which args, and that it did what it does."""

    def did(name: str, context: ToolContext, **args: Any) -> str:
        at = {"call": context.call_id, "run": context.run_id, "key": context.idempotency_key}
        notes.say("body", tool=name, args=args, **at)
        passes("in:body")
        notes.say("effect", tool=name, **at)
        passes("end:body")
        return f"{name} {args['order']}"

    @tool(idempotent=True)
    async def look(order: int, context: ToolContext, depth: int = 1) -> str:
        return did("look", context, order=order, depth=depth)

    @tool
    async def pay(order: int, context: ToolContext, amount: int = 5) -> str:
        return did("pay", context, order=order, amount=amount)

    @tool(idempotent=True)
    def stamp(order: int, context: ToolContext) -> str:
        return did("stamp", context, order=order)

    @tool(check_in="always")
    def wire(order: int, context: ToolContext) -> str:
        return did("wire", context, order=order)

    @tool
    async def person(order: int, context: ToolContext) -> str:
        did("person", context, order=order)
        ask_human("May I?", order=order)

    return [look, pay, stamp, wire, person]


def agent_of(
    ledger: Ledger, notes: Notes, passes: Passes, *, together: bool = False, short: bool = False
) -> Agent:
    """The agent; `together` runs the calls of one reply at the same time, `short` ends behind two replies."""
    model = Follows(2 if short else len(REPLIES))
    builder = Agent.create(
        provider=model, model="m", name="desk", id="desk", parallel_tools=together, max_iterations=20
    )
    builder.tool(*tools(notes, passes)).act(before_tool=[limits, four_eyes], after_tool=[brief])
    return builder.ledger(ledger).build()


def answer_about(name: str) -> Any:
    """What lets a call that paused go on."""
    return {"may": "go on"} if name == "person" else YES


async def to_the_end(session: Any, out: Outcome, notes: Notes) -> Answer:
    """Answer one question after another, and say what was handed over."""
    while not isinstance(out, Answer):
        notes.say("handed", run=out.run_id, checkpoint=out.checkpoint)
        out = await session.resume(out.checkpoint, answer_about(out.tool_name))
    notes.say("answer", run=out.run_id, text=out.text)
    return out


def read_by_the_model() -> dict[str, str]:
    """What the model reads of each call in a run that nothing disturbs."""
    said = {id: f"{name} {id[1:]}" for id, name in CALLS.items()}
    said |= {id: f"{text} (short)" for id, text in said.items() if CALLS[id] == "pay"}
    return said | {id: '{"may":"go on"}' for id, name in CALLS.items() if name == "person"}
