"""What each span says: an event's facts under their names, bounded and clean.

A value the SDK cannot hold costs the attribute, and one attribute too many costs the first ones set; so
texts are cut, numbers kept to 64 bits, and what is not known is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from opentelemetry.util.types import AttributeValue

from footprint_core.decisions import Verdict
from footprint_core.events import (
    AgentConfigured,
    ArgsInvalid,
    BudgetSpent,
    ContextEvicted,
    DecisionFiled,
    Event,
    FatalError,
    ModelCallEnded,
    ModelCallStarted,
    ObserverError,
    PauseRequested,
    PauseResumed,
    ToolCallEnded,
    TurnEnded,
)
from footprint_observe import semconv as n

Fact: TypeAlias = str | bool | int | float | tuple[str, ...] | None
"""What an attribute is made of; None is left out."""

Attributes: TypeAlias = dict[str, AttributeValue]
"""Attributes as the SDK takes them."""

_MAX_CHARS = 256
_MAX_ITEMS = 20
_MAX_INT = 2**63 - 1
_MIN_INT = -(2**63)


def clean(facts: Mapping[str, Fact]) -> Attributes:
    """The facts that are known, within the bounds: 256 characters, 20 items, 64 bits."""
    out: Attributes = {}
    for name, fact in facts.items():
        if fact is None:
            continue
        if type(fact) is str:
            out[name] = fact if len(fact) <= _MAX_CHARS and fact.isascii() else text(fact)
        elif type(fact) is int:
            out[name] = fact if _MIN_INT <= fact <= _MAX_INT else max(_MIN_INT, min(_MAX_INT, fact))
        elif type(fact) is tuple:
            out[name] = tuple(text(item) for item in fact[:_MAX_ITEMS])
        else:
            out[name] = fact
    return out


def text(value: str) -> str:
    """At most 256 characters that can be written as UTF-8."""
    if len(value) > _MAX_CHARS:
        value = value[:_MAX_CHARS]
    return value if value.isascii() else value.encode(errors="replace").decode()


def common(event: AgentConfigured) -> Attributes:
    """What stands on every span of a segment."""
    return clean({n.AGENT_NAME: event.agent_name, n.CONVERSATION_ID: event.conversation_id})


def agent_started(event: AgentConfigured) -> Attributes:
    """What `invoke_agent` says when it starts."""
    origin = event.resumed_from
    return clean(
        {
            n.OPERATION_NAME: n.INVOKE_AGENT,
            n.PROVIDER_NAME: event.provider,
            n.REQUEST_MODEL: event.model,
            n.RUN_ID: event.run_id,
            n.SEGMENT: event.segment,
            n.RESUMED_FROM_TRACE: None if origin is None else origin.trace_id,
            n.RESUMED_FROM_SPAN: None if origin is None else origin.span_id,
        }
    )


def agent_ended(event: TurnEnded, counts: Mapping[Verdict, int]) -> Attributes:
    """What `invoke_agent` says when it ends; `counts` are the decisions that took effect in its segment."""
    return clean(
        {
            n.RUN_OUTCOME: event.outcome,
            n.ITERATIONS: event.iteration_count,
            n.DECISIONS_ALLOW: counts["allow"],
            n.DECISIONS_DENY: counts["deny"],
            n.DECISIONS_ASK: counts["ask"],
            n.TOTAL_INPUT: event.total_input_tokens,
            n.TOTAL_OUTPUT: event.total_output_tokens,
        }
    )


def model_started(event: ModelCallStarted) -> Attributes:
    """What `chat` says when it starts."""
    return clean(
        {
            n.OPERATION_NAME: n.CHAT,
            n.PROVIDER_NAME: event.provider,
            n.REQUEST_MODEL: event.model,
            n.SERVER_ADDRESS: event.server,
        }
    )


def model_ended(event: ModelCallEnded) -> Attributes:
    """What `chat` says when it ends."""
    usage, stop = event.usage, event.stop_reason
    return clean(
        {
            n.RESPONSE_MODEL: event.response_model,
            n.RESPONSE_ID: event.response_id,
            n.RESPONSE_FINISH_REASONS: None if stop is None else (stop,),
            n.RESPONSE_FIRST_CHUNK: event.first_chunk,
            n.USAGE_INPUT: None if usage is None else usage.input,
            n.USAGE_OUTPUT: None if usage is None else usage.output,
            n.USAGE_CACHE_READ: event.cache_read,
            n.USAGE_CACHE_WRITE: event.cache_write,
        }
    )


def call_started(tool_name: str, call_id: str, tool_source: str | None) -> Attributes:
    """What `execute_tool` says when it starts."""
    return clean(
        {
            n.OPERATION_NAME: n.EXECUTE_TOOL,
            n.CALL_TOOL: tool_name,
            n.CALL_ID: call_id,
            n.TOOL_SOURCE: tool_source,
        }
    )


def call_ended(event: ToolCallEnded, *, outcome: str | None) -> Attributes:
    """What `execute_tool` says when it ends; `outcome` is that of the last decision about the call."""
    return clean(
        {
            n.CALL_TOOL_TYPE: event.tool_type,
            n.TOOL_SOURCE: event.tool_source,
            n.TOOL_EXECUTED: event.executed,
            n.TOOL_STATUS: event.status,
            n.OUTCOME: outcome,
            n.MIDDLEWARE: event.decided_by_rule,
            n.ARGS_CHANGED: event.args_changed,
            n.ARGS_KNOWN_KEYS: event.args_known_keys,
            n.ARGS_UNKNOWN_KEYS: event.args_unknown_keys,
            n.RESULT_TYPE: event.result_type,
            n.RESULT_SIZE: event.result_bytes,
        }
    )


def call_paused(*, outcome: str | None, asked_by: str | None) -> Attributes:
    """What `execute_tool` says when its segment ends in a pause; `asked_by` is the rule that asked."""
    return clean(
        {
            n.TOOL_EXECUTED: False,
            n.TOOL_STATUS: "paused",
            n.OUTCOME: outcome,
            n.MIDDLEWARE: asked_by,
        }
    )


def decision(event: DecisionFiled, *, version: str | None) -> Attributes:
    """What a decision says; `version` is the rule's.

    A rule that ran out of time, or answered malformed, raised nothing.
    """
    out: Attributes = {
        n.MOMENT: event.moment,
        n.MIDDLEWARE: text(event.middleware),
        n.OUTCOME: event.outcome,
        n.CHANGED: event.changed,
        n.ITERATION: event.iteration,
        n.ROW: event.row,
    }
    if event.tool_name is not None:
        out[n.TOOL_NAME] = text(event.tool_name)
    if event.tool_call_id is not None:
        out[n.TOOL_CALL_ID] = text(event.tool_call_id)
    if event.tool_source is not None:
        out[n.TOOL_SOURCE] = text(event.tool_source)
    if version is not None:
        out[n.VERSION] = text(version)
    if event.shadow:
        out[n.SHADOW] = True
    if event.redactions:
        out[n.REDACTIONS] = sum(event.redactions.values())
    if event.answer == "raised" and event.error_class is not None:
        out[n.ERROR_TYPE] = text(event.error_class)
    return out


def redacted(event: DecisionFiled) -> Attributes:
    """What the note about a decision with redacted fields says: how many, and which row."""
    return clean(
        {
            n.MOMENT: event.moment,
            n.MIDDLEWARE: event.middleware,
            n.ROW: event.row,
            n.REDACTIONS: _redactions(event),
        }
    )


def evicted(event: ContextEvicted, *, messages: int) -> Attributes:
    """What the note about messages that left the window together says."""
    return clean(
        {
            n.WINDOW_SLOT: event.slot,
            n.WINDOW_REASON: event.reason,
            n.WINDOW_MESSAGES: messages,
            n.ITERATION: event.iteration,
        }
    )


def noted(event: Event) -> Attributes | None:
    """What the note about an event that is a point in time says; None when there is no note about it."""
    match event:
        case ArgsInvalid():
            return clean({n.ARGS_ISSUES: event.issues})
        case PauseRequested():
            return clean({n.PAUSE_KIND: event.kind, n.MIDDLEWARE: event.middleware})
        case PauseResumed():
            return clean({n.PAUSE_KIND: event.kind, n.PAUSE_ANSWER: event.answer})
        case BudgetSpent():
            return clean(
                {
                    n.ITERATION: event.iteration,
                    n.BUDGET_REASON: event.reason,
                    n.BUDGET_LIMIT: event.limit,
                    n.BUDGET_PENDING: event.pending_tool_calls,
                    n.BUDGET_ACTION: event.action,
                }
            )
        case FatalError():
            return clean({n.ERROR_TYPE: event.error_class, n.STAGE: event.stage})
        case ObserverError():
            return clean(
                {
                    n.WATCHER: event.watcher,
                    n.WATCHER_EVENT: event.event,
                    n.ERROR_TYPE: event.error_class,
                }
            )
        case _:
            return None


def _redactions(event: DecisionFiled) -> int | None:
    return sum(event.redactions.values()) if event.redactions else None
