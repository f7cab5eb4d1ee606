"""What the steps of one segment share, and the ways a segment can end."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

import msgspec

from footprint_core.commit import Writer
from footprint_core.facts import EarlyStop, PauseKind
from footprint_core.middleware import Phase
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState
from footprint_core.watch import Audience


class Turn(msgspec.Struct, kw_only=True):
    """One segment while it runs.

    Attributes:
        spec: The agent.
        state: The run, folded.
        writer: The segment's writer.
        audience: Who watches it.
        identity: The caller's identity, as plain JSON, or None.
        inline: Whether plain tools run in the calling thread, since no event loop of the caller waits.
        stage: What the segment is doing, for the record of a failure.
        stopped_early: Why the turn ended before the model was done.
        answered: Whether its answer is on record.
    """

    spec: AgentSpec
    state: RunState
    writer: Writer
    audience: Audience
    identity: Json
    inline: bool = False
    stage: str = "start"
    stopped_early: EarlyStop | None = None
    answered: bool = False


def being_cancelled() -> bool:
    """Whether this task is being cancelled; other code can raise the same error by itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The turn ended in an answer."""

    text: str


class DeniedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A rule refused the message or the answer."""

    reason: str
    phase: Phase
    rule: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A person has to decide before a call goes on.

    Attributes:
        kind: Who asks.
        middleware: The rule that asks, or None.
        link: Its place in the chain.
        question: What it asks.
        detail: What it gave with the question.
        index: The call's place among the calls of the reply.
        call_id: The call.
        tool_name: Its tool.
        tool_source: The server the tool comes from, or None.
        args: The args that will run so far.
    """

    kind: PauseKind
    middleware: str | None
    link: int
    question: str
    detail: Json
    index: int
    call_id: str
    tool_name: str
    tool_source: str | None
    args: ToolArgs


Ending: TypeAlias = Answered | DeniedMessage | Question
"""How the steps of a segment came to an end."""
