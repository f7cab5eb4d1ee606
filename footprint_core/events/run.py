"""A segment from its first event to its last."""

from __future__ import annotations

from typing import ClassVar, Literal

from footprint_core.events.base import EventBase
from footprint_core.facts import EarlyStop, Route, RuleRef, RunOutcome, SchemaStage, TraceRef
from footprint_core.moments import LoopMoment


class AgentConfigured(EventBase, frozen=True, kw_only=True, tag_field="type", tag="agent.run_configured"):
    """The first event of every segment: the posture that is active."""

    type: ClassVar[str] = "agent.run_configured"
    agent_id: str
    agent_name: str
    conversation_id: str | None = None
    provider: str
    model: str
    window: str | None = None
    rules: dict[LoopMoment, tuple[RuleRef, ...]]
    tools: tuple[str, ...]
    streaming: bool
    resumed: bool
    resumed_from: TraceRef | None = None


class TurnStarted(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.turn_start"):
    """The message was decided about; the turn begins."""

    type: ClassVar[str] = "agent.turn_start"
    turn_index: int
    message_chars: int


class IterationFinished(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.iteration_end"
):
    """An iteration is over."""

    type: ClassVar[str] = "agent.iteration_end"
    iteration: int
    tool_call_count: int


class RouteDecided(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.route_decided"
):
    """Where the loop goes after the reply."""

    type: ClassVar[str] = "agent.route_decided"
    iteration: int
    chosen: Route


class BudgetSpent(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.budget_exhausted"
):
    """The iteration budget ended with tool calls pending."""

    type: ClassVar[str] = "agent.budget_exhausted"
    reason: Literal["max-iterations"]
    iteration: int
    limit: int
    pending_tool_calls: int
    action: Literal["wrapped-up", "cut-short"]


class OutputRetried(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.output_schema_retry"
):
    """An answer that does not match its schema is asked for again."""

    type: ClassVar[str] = "agent.output_schema_retry"
    attempt: int
    retries_remaining: int
    iteration: int
    stage: SchemaStage


class OutputUnmet(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.output_contract_unmet"
):
    """An answer is returned although it does not match its schema."""

    type: ClassVar[str] = "agent.output_contract_unmet"
    attempts: int
    iteration: int
    stage: SchemaStage
    broken_by: str | None = None


class FatalError(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="error.fatal"):
    """A segment failed; `recorded` is False when the ledger no longer takes appends."""

    type: ClassVar[str] = "error.fatal"
    error_class: str
    stage: str
    recorded: bool = True


class ObserverError(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="observer.error"):
    """A watcher raised, for the first time in this run. A signal, not in the ledger."""

    type: ClassVar[str] = "observer.error"
    watcher: str
    error_class: str
    event: str
    count: int


class TurnEnded(EventBase, frozen=True, kw_only=True, tag_field="type", tag="agent.turn_end"):
    """The last event of every segment."""

    type: ClassVar[str] = "agent.turn_end"
    outcome: RunOutcome
    iteration_count: int
    total_input_tokens: int
    total_output_tokens: int
    duration: float
    stopped_early: EarlyStop | None = None
    recorded: bool = True
