"""The row a decision leaves: who decided what, where, when, why, and what changed."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from footprint_core.clock import iso
from footprint_core.moments import LoopMoment
from footprint_core.plain import Json

Verdict: TypeAlias = Literal["allow", "deny", "ask"]
"""The three verbs, as rows and events spell them."""

AnswerKind: TypeAlias = Literal["given", "raised", "timed-out", "malformed", "person"]
"""How a decision came about."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of the ledger: what one rule, or one person, decided once.

    Attributes:
        run_id: The run, 32 hex characters.
        segment: The segment of the run, from 1.
        position: The row's place among the entries of its run, from 1.
        recorded_us: When it was decided, microseconds since the Unix epoch, UTC.
        middleware: The rule.
        version: The rule's version, when it says one.
        moment: The moment.
        iteration: The model call it belongs to, from 1; 0 at input.
        outcome: allow, deny or ask.
        changed: Whether what went on differs from what came, as canonical JSON.
        answer: How the decision came about.
        why: The reason, or the question.
        before: What came, as plain JSON; set exactly when `changed`.
        after: What went on; set exactly when `changed`.
        detail: What the rule gave with its question.
        decided_by: The person, for an answered question.
        tool_name: The tool, at the tool moments.
        tool_source: The server the tool came from, when it did.
        tool_call_id: The call, at the tool moments.
        duration_us: The rule's own running time in microseconds; None when no rule ran.
        error_class: The class of what a rule raised.
        shadow: Whether the decision was only recorded.
        after_approval: Whether it changed args that a person had approved.
        imported: Whether another ledger filed it, and a checkpoint carried it here.
        redacted: Path and method of every field that was redacted.
    """

    run_id: str
    segment: int
    position: int
    recorded_us: int
    middleware: str
    moment: LoopMoment
    iteration: int
    outcome: Verdict
    changed: bool
    answer: AnswerKind
    version: str | None = None
    why: str | None = None
    before: Json = msgspec.UNSET
    after: Json = msgspec.UNSET
    detail: Json = msgspec.UNSET
    decided_by: str | None = None
    tool_name: str | None = None
    tool_source: str | None = None
    tool_call_id: str | None = None
    duration_us: int | None = None
    error_class: str | None = None
    shadow: bool = False
    after_approval: bool = False
    imported: bool = False
    redacted: tuple[tuple[str, str], ...] = ()

    @property
    def at(self) -> Literal["tool", "message"]:
        """Where the row came from, in the older spelling."""
        return "message" if self.moment in {"input", "output"} else "tool"

    @property
    def phase(self) -> LoopMoment | None:
        """The moment, for decisions about messages."""
        return self.moment if self.at == "message" else None

    @property
    def recorded_at(self) -> str:
        """When it was decided: ISO 8601, UTC, to the microsecond."""
        return iso(self.recorded_us)

    @property
    def duration(self) -> float | None:
        """The rule's own running time in seconds."""
        return None if self.duration_us is None else self.duration_us / 1_000_000

    def to_dict(self) -> dict[str, Json]:
        """The row as plain JSON; a key that does not apply is absent."""
        out: dict[str, Json] = {
            "run_id": self.run_id,
            "segment": self.segment,
            "position": self.position,
            "recorded_at": self.recorded_at,
            "middleware": self.middleware,
            "moment": self.moment,
            "at": self.at,
            "iteration": self.iteration,
            "outcome": self.outcome,
            "changed": self.changed,
        }
        optional = ("version", "phase", "tool_name", "tool_source", "tool_call_id", "duration", "error_class")
        for name in (*optional, "why", "decided_by"):
            if (value := getattr(self, name)) is not None:
                out[name] = value
        for name in ("before", "after", "detail"):
            if (value := getattr(self, name)) is not msgspec.UNSET:
                out[name] = value
        for name in ("shadow", "after_approval", "imported"):
            if getattr(self, name):
                out[name] = True
        if self.redacted:
            out["redacted"] = [list(pair) for pair in self.redacted]
        return out
