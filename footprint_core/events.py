"""What watchers are told: one closed union of frozen values that hold facts, never a value.

Every event carries where it comes from (`run_id`, `segment`, `sequence`) and when the fact was noted
(`time`, microseconds since the Unix epoch, UTC). Durations are seconds. A field that does not apply is
None. Names a model chose are shown only when they are 1 to 64 of a harmless alphabet.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NoReturn, TypeAlias, TypeVar, get_args

import msgspec

from footprint_core.decisions import AnswerKind, Verdict
from footprint_core.facts import (
    CallStatus,
    EarlyStop,
    PauseKind,
    Route,
    RuleRef,
    RunOutcome,
    StopReason,
    TraceRef,
)
from footprint_core.moments import LoopMoment
from footprint_core.plain import JsonType

_K = TypeVar("_K")
_V = TypeVar("_V")

Slot: TypeAlias = Literal["system-prompt", "messages", "tools"]
"""A part of what the model is shown."""


class FrozenDict(dict[_K, _V]):
    """A dict that cannot be changed: every watcher is handed the same event."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("An event cannot be changed; copy the dict first.")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]


class _Event(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    segment: int
    sequence: int
    time: int


class AgentConfigured(_Event, frozen=True, kw_only=True, tag_field="type", tag="agent.run_configured"):
    """The first event of every segment: the posture that is active."""

    type: ClassVar[str] = "agent.run_configured"
    agent_id: str
    agent_name: str
    conversation_id: str | None
    provider: str
    model: str
    window: str | None
    rules: dict[LoopMoment, tuple[RuleRef, ...]]
    tools: tuple[str, ...]
    streaming: bool
    resumed: bool
    resumed_from: TraceRef | None


class PauseResumed(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="pause.resume"):
    """A person's answer was accepted."""

    type: ClassVar[str] = "pause.resume"
    pause_id: str
    kind: PauseKind
    answer: Literal["approved", "declined", "value"]
    tool_name: str
    tool_call_id: str
    paused: float


class DecisionFiled(_Event, frozen=True, kw_only=True, tag_field="type", tag="middleware.decision"):
    """A decision row was filed; `row` is its position in the run."""

    type: ClassVar[str] = "middleware.decision"
    middleware: str
    version: str | None
    moment: LoopMoment
    at: Literal["tool", "message"]
    phase: LoopMoment | None
    tool_name: str | None
    tool_call_id: str | None
    tool_source: str | None
    iteration: int
    outcome: Verdict
    changed: bool
    shadow: bool
    answer: AnswerKind
    error_class: str | None
    redactions: dict[str, int] | None
    row: int
    duration: float | None


class TurnStarted(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.turn_start"):
    """The message was decided about; the turn begins."""

    type: ClassVar[str] = "agent.turn_start"
    turn_index: int
    message_chars: int


class ContextEvicted(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="context.evicted"):
    """One message left the window."""

    type: ClassVar[str] = "context.evicted"
    slot: Slot
    reason: Literal["budget"]
    iteration: int


class ContextInjected(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="context.injected"):
    """A slot gained pieces since the last model call of the run."""

    type: ClassVar[str] = "context.injected"
    slot: Slot
    pieces: int
    iteration: int


class SlotComposed(
    _Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="context.slot_composed"
):
    """A slot as the model will see it."""

    type: ClassVar[str] = "context.slot_composed"
    slot: Slot
    iteration: int
    pieces: int
    chars: int


class ToolsOffered(_Event, frozen=True, kw_only=True, tag_field="type", tag="tools.offered"):
    """The tools the model may ask for in this call."""

    type: ClassVar[str] = "tools.offered"
    iteration: int
    offered: tuple[str, ...]
    count: int


class IterationStarted(
    _Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.iteration_start"
):
    """A model call is about to be made."""

    type: ClassVar[str] = "agent.iteration_start"
    iteration: int


class ModelCallStarted(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.llm_start"):
    """The request goes out."""

    type: ClassVar[str] = "stream.llm_start"
    iteration: int
    provider: str
    model: str
    server: str | None
    messages_count: int
    tools_count: int


class TokenStreamed(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.token"):
    """A chunk arrived: how long it is, never what it says. A signal, not in the ledger."""

    type: ClassVar[str] = "stream.token"
    iteration: int
    token_index: int
    chars: int


class TokenUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens read and written."""

    input: int
    output: int


class ModelCallEnded(_Event, frozen=True, kw_only=True, tag_field="type", tag="stream.llm_end"):
    """The reply is complete, or the call failed."""

    type: ClassVar[str] = "stream.llm_end"
    iteration: int
    tool_call_count: int
    usage: TokenUsage | None
    cache_read: int | None
    cache_write: int | None
    response_model: str | None
    response_id: str | None
    first_chunk: float | None
    stop_reason: StopReason | None
    error_class: str | None
    duration: float


class RouteDecided(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.route_decided"):
    """Where the loop goes after the reply."""

    type: ClassVar[str] = "agent.route_decided"
    iteration: int
    chosen: Route


class ToolCallStarted(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.tool_start"):
    """A call is taken up, before anything decides about it."""

    type: ClassVar[str] = "stream.tool_start"
    tool_name: str
    tool_call_id: str
    tool_source: str | None
    iteration: int
    parallel_count: int | None


class ArgsInvalid(
    _Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="validation.args_invalid"
):
    """The arguments were rejected."""

    type: ClassVar[str] = "validation.args_invalid"
    tool_name: str
    tool_call_id: str
    iteration: int
    issues: int


class PauseRequested(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="pause.request"):
    """The run is about to pause."""

    type: ClassVar[str] = "pause.request"
    pause_id: str
    kind: PauseKind
    middleware: str | None
    tool_name: str
    tool_call_id: str
    iteration: int


class ToolCallEnded(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.tool_end"):
    """A call is answered; `duration` is the body's, absent when nothing ran."""

    type: ClassVar[str] = "stream.tool_end"
    tool_name: str
    tool_call_id: str
    tool_source: str | None
    tool_type: str
    iteration: int
    status: CallStatus
    executed: bool
    decided_by_rule: str | None
    args_changed: bool
    args_known_keys: int
    args_unknown_keys: int
    result_type: JsonType | Literal["opaque"]
    result_bytes: int
    error_class: str | None
    duration: float | None


class IterationFinished(
    _Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.iteration_end"
):
    """An iteration is over."""

    type: ClassVar[str] = "agent.iteration_end"
    iteration: int
    tool_call_count: int


class BudgetSpent(
    _Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="agent.budget_exhausted"
):
    """The iteration budget ended with tool calls pending."""

    type: ClassVar[str] = "agent.budget_exhausted"
    reason: Literal["max-iterations"]
    iteration: int
    limit: int
    pending_tool_calls: int
    action: Literal["wrapped-up", "cut-short"]


class FatalError(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="error.fatal"):
    """A segment failed; `recorded` is False when the ledger no longer takes appends."""

    type: ClassVar[str] = "error.fatal"
    error_class: str
    stage: str
    recorded: bool = True


class ObserverError(_Event, frozen=True, kw_only=True, gc=False, tag_field="type", tag="observer.error"):
    """A watcher raised, for the first time in this run. A signal, not in the ledger."""

    type: ClassVar[str] = "observer.error"
    watcher: str
    error_class: str
    event: str
    count: int


class TurnEnded(_Event, frozen=True, kw_only=True, tag_field="type", tag="agent.turn_end"):
    """The last event of every segment."""

    type: ClassVar[str] = "agent.turn_end"
    outcome: RunOutcome
    iteration_count: int
    total_input_tokens: int
    total_output_tokens: int
    duration: float
    stopped_early: EarlyStop | None
    recorded: bool = True


Event: TypeAlias = (
    AgentConfigured
    | PauseResumed
    | DecisionFiled
    | TurnStarted
    | ContextEvicted
    | ContextInjected
    | SlotComposed
    | ToolsOffered
    | IterationStarted
    | ModelCallStarted
    | TokenStreamed
    | ModelCallEnded
    | RouteDecided
    | ToolCallStarted
    | ArgsInvalid
    | PauseRequested
    | ToolCallEnded
    | IterationFinished
    | BudgetSpent
    | FatalError
    | ObserverError
    | TurnEnded
)
"""Everything a watcher can be told."""

Signal: TypeAlias = TokenStreamed | ObserverError | FatalError | TurnEnded
"""What is published at once, without a row behind it."""

EVENTS: dict[str, type[Event]] = {event.type: event for event in get_args(Event)}
"""Every event by its name."""
