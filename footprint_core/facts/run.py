"""A segment from its configuration to its end, and the message it begins with."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from footprint_core.facts.words import EarlyStop, Route, RuleRef, RunOutcome, TraceRef
from footprint_core.moments import LoopMoment
from footprint_core.plain import Json


class RunConfigured(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="run.configured"
):
    """A segment begins: which agent, which rules, which tools."""

    values: ClassVar[tuple[str, ...]] = ("identity", "system")
    agent_id: str
    agent_name: str
    provider: str
    model: str
    rules: dict[LoopMoment, tuple[RuleRef, ...]]
    tools: tuple[str, ...]
    turn_index: int
    streaming: bool = False
    conversation_id: str | None = None
    window: str | None = None
    follows: str | None = None
    resumed: bool = False
    resumed_from: TraceRef | None = None
    identity: Json = msgspec.UNSET
    system: Json = msgspec.UNSET


class MessageTaken(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="message.taken"
):
    """The message as the input chain left it; absent when it was refused. A turn begins."""

    values: ClassVar[tuple[str, ...]] = ("text",)
    turn_index: int
    message_chars: int
    text: Json = msgspec.UNSET


class IterationEnded(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="iteration.ended"
):
    """Every call of an iteration is answered, or its answer is decided."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    call_count: int


class BudgetExhausted(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="budget.exhausted"
):
    """The iteration budget ended while the model still asked for tools."""

    values: ClassVar[tuple[str, ...]] = ("instruction",)
    iteration: int
    limit: int
    pending_tool_calls: int
    action: Literal["wrapped-up", "cut-short"]
    instruction: Json = msgspec.UNSET


class SegmentEnded(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="segment.ended"
):
    """A segment is over. `text` is the answer the caller gets, when there is one."""

    values: ClassVar[tuple[str, ...]] = ("text",)
    outcome: RunOutcome
    iterations: int
    input_tokens: int
    output_tokens: int
    duration_us: int
    stopped_early: EarlyStop | None = None
    error_class: str | None = None
    stage: str | None = None
    text: Json = msgspec.UNSET


class RunRecovered(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="run.recovered"
):
    """A run whose process died goes on, from what the ledger holds.

    Attributes:
        finished: Calls of the run whose tool had ended; none of them runs again.
        in_doubt: Calls that may have run: their intent is on record, and how they ended is not.
    """

    values: ClassVar[tuple[str, ...]] = ()
    finished: int
    in_doubt: int


class RunAbandoned(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="run.abandoned"
):
    """A person gave a run up; nothing continues it."""

    values: ClassVar[tuple[str, ...]] = ("by", "reason")
    by: Json = msgspec.UNSET
    reason: Json = msgspec.UNSET


class RouteTaken(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="route.taken"):
    """Where the loop goes after an answer that a schema was declared for; known behind the output rules."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    chosen: Route
