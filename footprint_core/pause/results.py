"""What a turn gives its caller: an answer, or a question to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from footprint_core.decisions import Decision
from footprint_core.facts import EarlyStop, SchemaStage
from footprint_core.outcomes import ToolArgs
from footprint_core.plain import Json

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The turn ended in an answer.

    Attributes:
        text: What the caller may read, as the output rules left it.
        run_id: The run.
        decisions: Its decision rows, as they are kept.
        stopped_early: Why the turn ended before the model was done, or None.
        schema_met: Whether it matches the declared schema; None when none is declared.
        schema_stage: Where it failed the schema, or None.
        value: The answer as the schema read it; None when it does not match.
    """

    text: str
    run_id: str
    decisions: tuple[Decision, ...]
    stopped_early: EarlyStop | None = None
    schema_met: bool | None = None
    schema_stage: SchemaStage | None = None
    value: Any = None


class MiddlewareAsk(msgspec.Struct, frozen=True, kw_only=True):
    """The question of a rule, for whoever shows it to a person.

    Attributes:
        middleware: The rule.
        question: What it asks.
        detail: What it gave with the question.
    """

    middleware: str
    question: str
    detail: Json


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

    @property
    def ask(self) -> MiddlewareAsk:
        """The question alone."""
        return MiddlewareAsk(middleware=self.middleware, question=self.question, detail=self.detail)


class CheckInPause(msgspec.Struct, frozen=True, kw_only=True):
    """A tool declares that a person consents before it runs; nothing of the call has happened.

    Attributes:
        tool_name: The tool the model wants.
        tool_source: The server it comes from, or None.
        tool_call_id: The call.
        args: The args that will run, checked, defaults included.
        evidence: What the tool shows beside them, or None.
        decisions: The decision rows so far, as they are kept.
        run_id: The run.
        pause_id: The pause.
        checkpoint: Plain JSON that continues the run, here or in another process.
    """

    tool_name: str
    tool_source: str | None
    tool_call_id: str
    args: ToolArgs
    evidence: Json
    decisions: tuple[Decision, ...]
    run_id: str
    pause_id: str
    checkpoint: dict[str, Any]


class HumanPause(msgspec.Struct, frozen=True, kw_only=True):
    """A tool asked a person while it ran; their answer, any JSON value, becomes its result.

    Attributes:
        tool_name: The tool.
        tool_source: The server it comes from, or None.
        tool_call_id: The call.
        data: What the tool paused with. No key of it decides anything about the pause.
        decisions: The decision rows so far, as they are kept.
        run_id: The run.
        pause_id: The pause.
        checkpoint: Plain JSON that continues the run, here or in another process.
    """

    tool_name: str
    tool_source: str | None
    tool_call_id: str
    data: Json
    decisions: tuple[Decision, ...]
    run_id: str
    pause_id: str
    checkpoint: dict[str, Any]


Pause: TypeAlias = AskPause | CheckInPause | HumanPause
"""A run that waits for a person."""

Outcome: TypeAlias = Answer | AskPause | CheckInPause | HumanPause
"""What `run`, `follow_up` and `resume` return."""


def is_paused(outcome: Outcome) -> TypeIs[Pause]:
    """Whether a person has to decide or to answer."""
    return isinstance(outcome, AskPause | CheckInPause | HumanPause)


def is_ask_pause(outcome: Outcome) -> TypeIs[AskPause]:
    """Whether a rule asked."""
    return isinstance(outcome, AskPause)


def is_check_in_pause(outcome: Outcome) -> TypeIs[CheckInPause]:
    """Whether a tool declares that a person consents."""
    return isinstance(outcome, CheckInPause)


def is_human_pause(outcome: Outcome) -> TypeIs[HumanPause]:
    """Whether a tool asked while it ran."""
    return isinstance(outcome, HumanPause)


def demands_decision(outcome: Outcome) -> TypeIs[AskPause | CheckInPause]:
    """Whether only `check_in_approved` or `check_in_declined` answers it."""
    return isinstance(outcome, AskPause | CheckInPause)
