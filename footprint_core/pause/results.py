"""What a turn gives its caller: an answer, or a question to a person."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

import msgspec

from footprint_core.decisions import Decision
from footprint_core.facts import EarlyStop
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The turn ended in an answer.

    Attributes:
        text: What the caller may read, as the output rules left it.
        run_id: The run.
        decisions: Its decision rows, as they are kept.
        stopped_early: Why the turn ended before the model was done, or None.
    """

    text: str
    run_id: str
    decisions: tuple[Decision, ...]
    stopped_early: EarlyStop | None = None


class AskPause(msgspec.Struct, frozen=True, kw_only=True):
    """A rule asked a person; nothing of the call has happened.

    Attributes:
        middleware: The rule.
        question: What it asks.
        detail: What it gave with the question.
        tool_name: The tool the model wants.
        tool_source: The server it comes from, or None.
        tool_call_id: The call.
        args: The args that will run so far.
        args_problem: What checking them would say now, paths and types only, or None. Advice.
        decisions: The decision rows so far, as they are kept.
        run_id: The run.
        pause_id: The pause.
        checkpoint: Plain JSON that continues the run, here or in another process.
    """

    middleware: str
    question: str
    detail: Json
    tool_name: str
    tool_source: str | None
    tool_call_id: str
    args: ToolArgs
    args_problem: str | None
    decisions: tuple[Decision, ...]
    run_id: str
    pause_id: str
    checkpoint: dict[str, Any]


Outcome: TypeAlias = Answer | AskPause
"""What `run`, `follow_up` and `resume` return."""


def is_paused(outcome: Outcome) -> TypeGuard[AskPause]:
    """Whether a person has to decide."""
    return isinstance(outcome, AskPause)
