"""What each span says: an event's facts under their names, bounded and clean.

What is not known is absent. Spans are many, so what is the same for all spans of a segment, of a rule or of
a tool is made once, and what the core counted is taken as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from opentelemetry.trace import SpanContext, format_span_id, format_trace_id

from footprint_core.decisions import Verdict
from footprint_core.events import (
    AgentConfigured,
    DecisionFiled,
    ModelCallEnded,
    ModelCallStarted,
    ToolCallEnded,
    TurnEnded,
)
from footprint_observe import semconv as n
from footprint_observe.recording.names import error_class

from .otel_values import Attributes, clean, text, whole

_PORT_DIGITS = 5


def common(event: AgentConfigured) -> Attributes:
    """What stands on every span of a segment."""
    return clean({n.AGENT_NAME: event.agent_name, n.CONVERSATION_ID: event.conversation_id})


def agent_started(event: AgentConfigured, origin: SpanContext | None) -> Attributes:
    """What `invoke_agent` says when it starts; `origin` is the span of the segment it goes on behind."""
    return clean(
        {
            n.OPERATION_NAME: n.INVOKE_AGENT,
            n.PROVIDER_NAME: event.provider,
            n.REQUEST_MODEL: event.model,
            n.RUN_ID: event.run_id,
            n.SEGMENT: event.segment,
            n.RESUMED_FROM_TRACE: None if origin is None else format_trace_id(origin.trace_id),
            n.RESUMED_FROM_SPAN: None if origin is None else format_span_id(origin.span_id),
        }
    )


def agent_counted(counts: Mapping[Verdict, int]) -> Attributes:
    """What `invoke_agent` says of the decisions that took effect in its segment."""
    return {
        n.DECISIONS_ALLOW: counts["allow"],
        n.DECISIONS_DENY: counts["deny"],
        n.DECISIONS_ASK: counts["ask"],
    }


def agent_ended(event: TurnEnded) -> Attributes:
    """What `invoke_agent` says when it ends."""
    return clean(
        {
            n.RUN_OUTCOME: event.outcome,
            n.ITERATIONS: event.iteration_count,
            n.TOTAL_INPUT: event.total_input_tokens,
            n.TOTAL_OUTPUT: event.total_output_tokens,
        }
    )


def model_started(event: ModelCallStarted) -> Attributes:
    """What `chat` says when it starts."""
    address, port = (None, None) if event.server is None else _host_and_port(event.server)
    return clean(
        {
            n.OPERATION_NAME: n.CHAT,
            n.PROVIDER_NAME: event.provider,
            n.REQUEST_MODEL: event.model,
            n.SERVER_ADDRESS: address,
            n.SERVER_PORT: port,
        }
    )


def model_ended(event: ModelCallEnded) -> Attributes:
    """What `chat` says when it ends."""
    told: Attributes = {}
    if event.response_model is not None:
        told[n.RESPONSE_MODEL] = text(event.response_model)
    if event.response_id is not None:
        told[n.RESPONSE_ID] = text(event.response_id)
    if event.stop_reason is not None:
        told[n.RESPONSE_FINISH_REASONS] = (event.stop_reason,)
    if event.first_chunk is not None and math.isfinite(event.first_chunk):
        told[n.RESPONSE_FIRST_CHUNK] = event.first_chunk
    if (usage := event.usage) is not None:
        told[n.USAGE_INPUT] = whole(usage.input)
        told[n.USAGE_OUTPUT] = whole(usage.output)
    if event.cache_read is not None:
        told[n.USAGE_CACHE_READ] = whole(event.cache_read)
    if event.cache_write is not None:
        told[n.USAGE_CACHE_WRITE] = whole(event.cache_write)
    return told


def call_ended(event: ToolCallEnded, *, outcome: Verdict | None) -> Attributes:
    """What `execute_tool` says when it ends; `outcome` is that of the last decision about the call."""
    told: Attributes = {
        n.CALL_TOOL_TYPE: text(event.tool_type),
        n.TOOL_EXECUTED: event.executed,
        n.TOOL_STATUS: event.status,
        n.ARGS_CHANGED: event.args_changed,
        n.ARGS_KNOWN_KEYS: whole(event.args_known_keys),
        n.ARGS_UNKNOWN_KEYS: whole(event.args_unknown_keys),
        n.RESULT_TYPE: event.result_type,
        n.RESULT_SIZE: whole(event.result_bytes),
    }
    if outcome is not None:
        told[n.OUTCOME] = outcome
    if event.decided_by_rule is not None:
        told[n.MIDDLEWARE] = text(event.decided_by_rule)
    if event.tool_source is not None:
        told[n.TOOL_SOURCE] = text(event.tool_source)
        if event.executed:
            # Tools that have a source are those of an MCP server. Of a call that was refused, no request
            # went to it.
            told[n.MCP_METHOD] = n.TOOLS_CALL
    return told


def rule(event: DecisionFiled, version: str | None) -> Attributes:
    """What every decision of a rule at a moment says."""
    return clean({n.MOMENT: event.moment, n.MIDDLEWARE: event.middleware, n.VERSION: version})


def about_call(tool_name: str | None, call_id: str | None, source: str | None) -> Attributes:
    """What every decision about a call says."""
    return clean({n.TOOL_NAME: tool_name, n.TOOL_CALL_ID: call_id, n.TOOL_SOURCE: source})


def decision(event: DecisionFiled, rule: Attributes, about: Attributes) -> Attributes:
    """What a decision says, besides what all of its rule and all about its call say.

    A rule that ran out of time, or answered malformed, raised nothing.
    """
    told: Attributes = {
        **rule,
        **about,
        n.OUTCOME: event.outcome,
        n.CHANGED: event.changed,
        n.ITERATION: whole(event.iteration),
        n.ROW: whole(event.row),
    }
    if event.shadow:
        told[n.SHADOW] = True
    if event.redactions:
        told[n.REDACTIONS] = whole(sum(event.redactions.values()))
    if event.answer == "raised" and event.error_class is not None:
        told[n.ERROR_TYPE] = error_class(event.error_class)
    return told


def _host_and_port(server: str) -> tuple[str, int | None]:
    """The two apart, as the conventions want them; a server without a port is a host."""
    host, _, port = server.rpartition(":")
    bare = host.endswith("]") or ":" not in host
    if host and bare and port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS:
        return host.removeprefix("[").removesuffix("]"), int(port)
    return server, None
