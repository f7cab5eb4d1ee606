"""What the steps of one segment share, and the ways a segment can end."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from footprint_core.chain.subject import Subject
from footprint_core.commit import Writer
from footprint_core.facts import CallStatus, EarlyStop, PauseKind
from footprint_core.messages import ToolCall
from footprint_core.middleware import Phase
from footprint_core.outcomes import ToolArgs
from footprint_core.output_schema import Judged
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
        served: Whether a single call is served to a client, who can be asked nothing.
        stage: What the segment is doing, for the record of a failure.
        stopped_early: Why the turn ended before the model was done.
        judged: How the answer came out, when a schema is declared.
        held: Calls of the batch that came to something before one ahead of them is answered, by index.
        taken: Calls of the batch that were taken up in an earlier segment, by index.
        answered: Whether its answer is on record.
        paused: The pause that is on record, once it is.
    """

    spec: AgentSpec
    state: RunState
    writer: Writer
    audience: Audience
    identity: Json
    inline: bool = False
    served: bool = False
    stage: str = "start"
    stopped_early: EarlyStop | None = None
    judged: Judged | None = None
    held: dict[int, Settled] = {}
    taken: frozenset[int] = frozenset()
    answered: bool = False
    paused: PausedRun | None = None


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """What a person approved.

    Attributes:
        kind: Who asked them.
        rule: The rule that asked, or None.
        args: The args the chain had made when they were asked.
        checked: The args they saw, for a check-in: those that were about to run.
    """

    kind: PauseKind
    rule: str | None
    args: ToolArgs
    checked: ToolArgs | None


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was taken up.

    Attributes:
        index: Its place among the calls of the reply.
        call: The call.
        subject: What the rules are shown of it.
        args: The args so far.
        changed: Whether they are no longer what the model sent.
        start: The link of the chain to go on at.
        consent: What a person approved about this call, or None.
        rewalk: Whether the whole chain is walked again in spite of the consent.
    """

    index: int
    call: ToolCall
    subject: Subject
    args: ToolArgs
    changed: bool = False
    start: int = 0
    consent: Consent | None = None
    rewalk: bool = False

    @property
    def approved(self) -> PauseKind | None:
        """The kind of the question a person approved, unless everything is asked again."""
        return None if self.consent is None or self.rewalk else self.consent.kind

    @property
    def proposed(self) -> ToolArgs:
        """The args permission is asked about: those a person saw at a check-in, else those so far."""
        shown = None if self.consent is None or self.rewalk else self.consent.checked
        return self.args if shown is None else shown


class Ran(msgspec.Struct, frozen=True, kw_only=True, tag_field="held", tag="ran"):
    """A body that ran: its result, or the message of what it raised, as plain JSON.

    Attributes:
        args: The args it ran with.
        result: The result.
        failed: Whether it raised.
        error_class: The class of what it raised, or None.
        duration_us: How long it ran, microseconds.
        changed: Whether the args were no longer what the model sent.
    """

    args: ToolArgs
    result: Json
    failed: bool
    error_class: str | None
    duration_us: int
    changed: bool


class Refusing(msgspec.Struct, frozen=True, kw_only=True, tag_field="held", tag="refused"):
    """Why a call did not run, and what the model reads instead.

    Attributes:
        status: How the call ended.
        text: What the model reads.
        args: The args as far as they came.
        rule: The rule that decided, or None.
        issues: How many things were wrong with the args, when they were rejected.
        changed: Whether the args were no longer what the model sent.
    """

    status: CallStatus
    text: str
    args: ToolArgs
    rule: str | None = None
    issues: int | None = None
    changed: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True, tag_field="held", tag="question"):
    """A person has to decide or to answer before a call goes on.

    Attributes:
        kind: Who asks.
        index: The call's place among the calls of the reply.
        call_id: The call.
        tool_name: Its tool.
        tool_source: The server the tool comes from, or None.
        args: The args the chain made so far; for a tool that paused itself, those it runs with.
        middleware: The rule that asks, or None.
        link: Its place in the chain.
        question: What it asks, or None.
        shown: What the person is shown beside it: a rule's detail, a tool's evidence, its payload.
        checked: The args that are about to run, for a check-in.
        expires_in: Seconds within which a rule wants its answer, or None.
        ran_us: How long the body ran before it asked, microseconds.
        changed: Whether the args were no longer what the model sent.
    """

    kind: PauseKind
    index: int
    call_id: str
    tool_name: str
    tool_source: str | None
    args: ToolArgs
    middleware: str | None = None
    link: int = -1
    question: str | None = None
    shown: Json = None
    checked: ToolArgs | None = None
    expires_in: float | None = None
    ran_us: int = 0
    changed: bool = False


class Halted(msgspec.Struct, frozen=True, kw_only=True, tag_field="held", tag="halted"):
    """A permission checker ended the run.

    Attributes:
        refusing: What the model would read of the call.
        reason: The checker's reason, or None.
        checker: Its name.
        iteration: The model call that asked for the call.
        call_id: The call.
        tool_name: Its tool.
        proposed: The args the checker was asked about.
    """

    refusing: Refusing
    reason: str | None
    checker: str
    iteration: int
    call_id: str
    tool_name: str
    proposed: ToolArgs


class PausedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A question that is open, and the checkpoint that continues behind it.

    Attributes:
        question: The question.
        pause_id: The pause.
        checkpoint: Plain JSON.
        args_problem: What checking the args would say now, or None.
    """

    question: Question
    pause_id: str
    checkpoint: dict[str, Any]
    args_problem: str | None


Settled: TypeAlias = Ran | Refusing | Question | Halted
"""What a call of a batch came to."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The turn ended in an answer."""

    text: str


class DeniedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A rule refused the message or the answer."""

    reason: str
    phase: Phase
    rule: str


Ending: TypeAlias = Answered | DeniedMessage | Question | Halted
"""How the steps of a segment came to an end."""
