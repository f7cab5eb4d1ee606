"""Everything a run can commit: one closed union of small frozen values.

A fact may hold values, named in its `values`; they go to the ledger, redacted when written, and
nowhere else. All its other fields are facts that anybody may see. `state` folds facts, `projection`
turns them into events.

None of them is tracked by the garbage collector: their fields hold plain data, text and tuples of such
values, so none can be part of a cycle, and a long run keeps thousands of them.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import msgspec

from footprint_core.decisions import AnswerKind, Verdict
from footprint_core.messages import ToolCall
from footprint_core.moments import LoopMoment
from footprint_core.plain import Json, JsonType

CallStatus: TypeAlias = Literal["ran", "failed", "denied", "invalid", "unknown", "blocked", "cancelled"]
"""How a call ended: `ran` and `failed` executed, the others did not (`cancelled` may have)."""

Route: TypeAlias = Literal["tool-calls", "final", "output-retry", "wrap-up"]
"""Where the loop goes after a reply."""

RunOutcome: TypeAlias = Literal["answered", "denied", "paused", "halted", "failed", "cancelled", "abandoned"]
"""How a segment ended."""

PauseKind: TypeAlias = Literal["ask", "check-in", "human"]
"""Who asked the person: a rule, a tool's declaration, or the tool while running."""

StopReason: TypeAlias = Literal["stop", "tool_use", "max_tokens", "refusal", "other"]
"""Why the model stopped."""


class TraceRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The span of a segment: 32 and 16 hex characters."""

    trace_id: str
    span_id: str


class RuleRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A rule as a run was configured with it."""

    name: str
    version: str | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens of one model call, as the provider reported them.

    Attributes:
        input: Tokens read.
        output: Tokens written.
        cache_read: Tokens of the input that came from a cache.
        cache_write: Tokens of the input that were written to one.
    """

    input: int
    output: int
    cache_read: int | None = None
    cache_write: int | None = None


class EarlyStop(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Why a turn ended before the model was done.

    Attributes:
        reason: The budget that ended.
        iteration: The model call it ended at.
        pending_tool_calls: Calls the model asked for that were not dispatched.
        wrapped_up: Whether one more call without tools closed the turn.
    """

    reason: Literal["max-iterations"]
    iteration: int
    pending_tool_calls: int
    wrapped_up: bool = False


class Refusal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A turn of the window that could not leave.

    Attributes:
        reason: A word of a closed set, see `window.engine`.
        turn_index: The turn, before the removal, from 0.
        message_index: Its first message, before the removal, from 0.
    """

    reason: str
    turn_index: int
    message_index: int


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


class Decided(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="decision"):
    """One rule, or one person, decided once. Fields as on `decisions.Decision`."""

    values: ClassVar[tuple[str, ...]] = ("why", "before", "after", "detail", "decided_by")
    middleware: str
    moment: LoopMoment
    iteration: int
    outcome: Verdict
    changed: bool = False
    answer: AnswerKind = "given"
    version: str | None = None
    tool_name: str | None = None
    tool_source: str | None = None
    call_id: str | None = None
    duration_us: int | None = None
    error_class: str | None = None
    shadow: bool = False
    after_approval: bool = False
    why: Json = msgspec.UNSET
    before: Json = msgspec.UNSET
    after: Json = msgspec.UNSET
    detail: Json = msgspec.UNSET
    decided_by: Json = msgspec.UNSET


class WindowVisited(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="window.visited"
):
    """A window strategy engaged: what left, and what refused to."""

    values: ClassVar[tuple[str, ...]] = ("notice",)
    iteration: int
    strategy: str
    removed: tuple[int, ...]
    removed_messages: int
    refusals: tuple[Refusal, ...]
    refusals_more: int
    dropped_observations: tuple[str, ...]
    pinned: tuple[str, ...]
    yielded: int
    stand_down: bool
    figures: dict[str, int]
    notice_after: int | None = None
    notice: Json = msgspec.UNSET


class ModelAsked(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="model.asked"):
    """A request is about to go out. All figures are counters, none is a scan."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    provider: str
    model: str
    server: str | None
    messages: int
    message_chars: int
    new_messages: int
    system_chars: int
    tools: tuple[str, ...]
    tool_chars: int
    first: bool


class ModelReplied(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="model.replied"
):
    """The reply is complete."""

    values: ClassVar[tuple[str, ...]] = ("text", "calls")
    iteration: int
    call_count: int
    stop_reason: StopReason
    duration_us: int
    route: Route | None = None
    usage: Usage | None = None
    response_id: str | None = None
    response_model: str | None = None
    first_chunk_us: int | None = None
    text: Json = msgspec.UNSET
    calls: tuple[ToolCall, ...] | Json = ()


class ModelFailed(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="model.failed"):
    """The provider raised, or the call was cancelled, before the reply was complete."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    error_class: str
    duration_us: int


class CallTaken(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="call.taken"):
    """A call is taken up, before anything decides about it."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    call_id: str
    tool_name: str
    tool_source: str | None = None
    parallel_count: int | None = None


class ToolIntended(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="tool.intended"
):
    """A tool is about to run. Without a `ToolFinished` behind it, it may have run.

    `args` are those that will run, validated, defaults included; its position is the idempotency key.
    """

    values: ClassVar[tuple[str, ...]] = ("args",)
    iteration: int
    call_id: str
    tool_name: str
    tool_source: str | None = None
    args: Json = msgspec.UNSET


class ToolFinished(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="tool.finished"
):
    """A tool ran: its result as plain JSON, or the message of what it raised."""

    values: ClassVar[tuple[str, ...]] = ("result",)
    iteration: int
    call_id: str
    tool_name: str
    failed: bool
    duration_us: int
    tool_source: str | None = None
    cancelled: bool = False
    error_class: str | None = None
    result: Json = msgspec.UNSET


class CallAnswered(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="call.answered"
):
    """What the model reads of a call.

    `text` is absent when it is the tool's result, unchanged; `refused` says that it is not the tool's own.
    """

    values: ClassVar[tuple[str, ...]] = ("text",)
    iteration: int
    call_id: str
    tool_name: str
    tool_type: str
    status: CallStatus
    executed: bool
    args_changed: bool
    args_known_keys: int
    args_unknown_keys: int
    result_type: JsonType | Literal["opaque"]
    result_bytes: int
    tool_source: str | None = None
    decided_by_rule: str | None = None
    refused: bool = False
    issues: int | None = None
    error_class: str | None = None
    duration_us: int | None = None
    text: Json = msgspec.UNSET


class PauseOpened(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="pause.opened"):
    """A person is asked. `digest` is over tool, source and args, with `salt`; see `pause.checkpoint`."""

    values: ClassVar[tuple[str, ...]] = ("salt", "digest")
    pause_id: str
    pause_kind: PauseKind
    iteration: int
    call_id: str
    tool_name: str
    tool_source: str | None = None
    middleware: str | None = None
    salt: Json = msgspec.UNSET
    digest: Json = msgspec.UNSET


class PauseAnswered(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="pause.answered"
):
    """A person answered; this append is what consumes the pause."""

    values: ClassVar[tuple[str, ...]] = ()
    pause_id: str
    pause_kind: PauseKind
    answer: Literal["approved", "declined", "value"]
    tool_name: str
    call_id: str
    paused_us: int


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


Fact: TypeAlias = (
    RunConfigured
    | MessageTaken
    | Decided
    | WindowVisited
    | ModelAsked
    | ModelReplied
    | ModelFailed
    | CallTaken
    | ToolIntended
    | ToolFinished
    | CallAnswered
    | PauseOpened
    | PauseAnswered
    | IterationEnded
    | BudgetExhausted
    | SegmentEnded
)
"""Everything a run can commit."""
