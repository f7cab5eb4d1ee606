"""The small closed words and values that facts and events are made of."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

CallStatus: TypeAlias = Literal["ran", "failed", "denied", "invalid", "unknown", "blocked", "cancelled"]
"""How a call ended: `ran` and `failed` executed, the others did not (`cancelled` may have)."""

Route: TypeAlias = Literal["tool-calls", "final", "output-retry", "wrap-up"]
"""Where the loop goes after a reply."""

RunOutcome: TypeAlias = Literal["answered", "denied", "paused", "halted", "failed", "cancelled", "abandoned"]
"""How a segment ended."""

PauseKind: TypeAlias = Literal["ask", "check-in", "human"]
"""Who asked the person: a rule, a tool's declaration, or the tool while running."""

PermissionResult: TypeAlias = Literal["allow", "gate_open", "deny", "halt"]
"""What a permission checker decided; `gate_open` lets the call go on like `allow`."""

SchemaStage: TypeAlias = Literal["json-parse", "schema-validate"]
"""Where an answer failed its schema."""

SchemaOutcome: TypeAlias = Literal["passed", "retried", "exhausted"]
"""How a judgement of an answer by its schema came out."""

PlanAction: TypeAlias = Literal["evict", "summarize", "none"]
"""What a token strategy did about a window over its threshold."""

RefusalReason: TypeAlias = Literal[
    "system-envelope",
    "current-request",
    "unresolved-tool-call",
    "paused-tool",
    "pending-check-in",
    "inside-keep-window",
    "last-tool-result",
    "only-existing-summary",
    "summarizer-failed",
    "replacement-not-smaller",
]
"""Why a turn did not leave the window."""

StopReason: TypeAlias = Literal["stop", "tool_use", "max_tokens", "refusal", "other"]
"""Why the model stopped."""


class TraceRef(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The span of a segment: 32 and 16 hex characters."""

    trace_id: str
    span_id: str


class RuleRef(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
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


class EarlyStop(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
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
        reason: Why.
        turn_index: The turn, before the removal, from 0.
        message_index: Its first message, before the removal, from 0.
    """

    reason: RefusalReason
    turn_index: int
    message_index: int


class TokenPressure(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A window was over the threshold of a token strategy.

    Attributes:
        cap: The threshold, in tokens.
        projected: Tokens the last model call read.
        action: What the strategy did about it.
    """

    cap: int
    projected: int
    action: PlanAction
