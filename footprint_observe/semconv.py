"""The names everything shipped is known by: attributes and spans, strings only.

Recorders, dashboards and the README take their names from here. `gen_ai.*`, `error.type` and `server.address`
are spelled as in version 1.41 of the OpenTelemetry conventions; the installed package is no source for
them, because it marks every `gen_ai` constant as moved. Recorders use the constants as they stand here, so
another spelling is other values here; two at a time would mean recorders that look each name up.
"""

from __future__ import annotations

from typing import Final

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.0"

# On every span.
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"

# Of the conventions.
ERROR_TYPE: Final = "error.type"
MCP_METHOD: Final = "mcp.method.name"
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
SERVICE_INSTANCE: Final = "service.instance.id"
SERVICE_NAME: Final = "service.name"
CALL_ID: Final = "gen_ai.tool.call.id"
CALL_TOOL: Final = "gen_ai.tool.name"
CALL_TOOL_TYPE: Final = "gen_ai.tool.type"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - tokens of a model
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE: Final = "gen_ai.usage.cache_creation.input_tokens"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"

# Of viewers that read no other mark of a guardrail.
SPAN_KIND: Final = "openinference.span.kind"

# Of a run, on the span of a segment. The decisions are those of the segment. Iterations and total tokens are
# those of the run so far, segments before a pause included, so they are not to be added up over segments.
DECISIONS_ALLOW: Final = "footprint.decisions.allow"
DECISIONS_ASK: Final = "footprint.decisions.ask"
DECISIONS_DENY: Final = "footprint.decisions.deny"
ITERATIONS: Final = "footprint.iterations"
RESUMED_FROM_SPAN: Final = "footprint.resumed_from.span_id"
RESUMED_FROM_TRACE: Final = "footprint.resumed_from.trace_id"
RUN_ID: Final = "footprint.run.id"
RUN_OUTCOME: Final = "footprint.run.outcome"
SEGMENT: Final = "footprint.segment"
TOTAL_INPUT: Final = "footprint.usage.total.input_tokens"
TOTAL_OUTPUT: Final = "footprint.usage.total.output_tokens"

# Of a call.
ARGS_CHANGED: Final = "footprint.args.changed"
ARGS_KNOWN_KEYS: Final = "footprint.args.known_keys"
ARGS_UNKNOWN_KEYS: Final = "footprint.args.unknown_keys"
RESULT_SIZE: Final = "footprint.result.size"
RESULT_TYPE: Final = "footprint.result.type"
TOOL_EXECUTED: Final = "footprint.tool.executed"
TOOL_STATUS: Final = "footprint.tool.status"

# Of a decision; some stand on its call, too.
CHANGED: Final = "footprint.changed"
ITERATION: Final = "footprint.iteration"
MIDDLEWARE: Final = "footprint.middleware"
MOMENT: Final = "footprint.moment"
OUTCOME: Final = "footprint.outcome"
REDACTION_STRATEGY: Final = "footprint.redaction.strategy"
REDACTIONS: Final = "footprint.redactions"
ROW: Final = "footprint.row"
SHADOW: Final = "footprint.shadow"
TOOL_CALL_ID: Final = "footprint.tool.call.id"
TOOL_NAME: Final = "footprint.tool.name"
TOOL_SOURCE: Final = "footprint.tool.source"
VERSION: Final = "footprint.version"

# Of what happens inside a span; the first one says how much of it the span has no room for.
EVENTS_LEFT_OUT: Final = "footprint.events.left_out"
ARGS_ISSUES: Final = "footprint.args.issues"
BUDGET_ACTION: Final = "footprint.budget.action"
BUDGET_LIMIT: Final = "footprint.budget.limit"
BUDGET_PENDING: Final = "footprint.budget.pending_tool_calls"
BUDGET_REASON: Final = "footprint.budget.reason"
CHECK_IN_APPROVED: Final = "footprint.check_in.approved"
CREDENTIAL_KIND: Final = "footprint.credential.kind"
CREDENTIAL_SERVICE: Final = "footprint.credential.service"
OUTPUT_ATTEMPT: Final = "footprint.output.attempt"
OUTPUT_BROKEN_BY: Final = "footprint.output.broken_by"
OUTPUT_RETRIES: Final = "footprint.output.retries_remaining"
OUTPUT_STAGE: Final = "footprint.output.stage"
PAUSE_ANSWER: Final = "footprint.pause.answer"
PAUSE_KIND: Final = "footprint.pause.kind"
PAUSE_SECONDS: Final = "footprint.pause.duration"
PERMISSION_CHECKER: Final = "footprint.permission.checker"
PERMISSION_RESULT: Final = "footprint.permission.result"
PERMISSION_RULE: Final = "footprint.permission.policy_rule_id"
RECORDED: Final = "footprint.recorded"
STAGE: Final = "footprint.stage"
WATCHER: Final = "footprint.watcher"
WATCHER_EVENT: Final = "footprint.watcher.event"
WINDOW_ACTION: Final = "footprint.window.action"
WINDOW_CAP: Final = "footprint.window.cap"
WINDOW_MESSAGES: Final = "footprint.window.messages"
WINDOW_OVERFLOW: Final = "footprint.window.overflow_by"
WINDOW_PROJECTED: Final = "footprint.window.projected"
WINDOW_REASON: Final = "footprint.window.reason"
WINDOW_SLOT: Final = "footprint.window.slot"
WINDOW_UNIT: Final = "footprint.window.unit"

NAMES: Final[dict[str, str]] = {
    word: name for word, name in dict(vars()).items() if word.isupper() and word != "SCHEMA_URL"
}
"""Every attribute by the word it has here."""

# Metrics of the conventions; durations are seconds.
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - tokens of a model

# Own metrics; durations and ages are seconds.
APPROVAL_LATENCY: Final = "footprint.approval.latency"
APPROVALS_OLDEST: Final = "footprint.approvals.oldest_age"
APPROVALS_PENDING: Final = "footprint.approvals.pending"
DECISIONS: Final = "footprint.decisions"
MIDDLEWARE_DURATION: Final = "footprint.middleware.duration"
MIDDLEWARE_ERRORS: Final = "footprint.middleware.errors"
RECORDER_DROPPED: Final = "footprint.recorder.dropped"
RECORDER_ERRORS: Final = "footprint.recorder.errors"
RECORDER_QUEUE: Final = "footprint.recorder.queue"
REDACTION_COUNT: Final = "footprint.redactions"
RUN_DURATION: Final = "footprint.run.duration"
RUN_ITERATIONS: Final = "footprint.run.iterations"
RUNS: Final = "footprint.runs"
TOOL_DURATION: Final = "footprint.tool.duration"
TOOLS: Final = "footprint.tools"

METRICS: Final[dict[str, str]] = {
    word: name
    for word, name in dict(vars()).items()
    if word.isupper() and isinstance(name, str) and word != "SCHEMA_URL" and word not in NAMES
}
"""Every metric by the word it has here."""

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
DECISION: Final = "middleware.decision"

SPANS: Final = (INVOKE_AGENT, CHAT, EXECUTE_TOOL, DECISION)
"""The first word of every span; behind it stands the agent, the model, the tool or the rule."""

TOOLS_CALL: Final = "tools/call"
"""The request a tool of an MCP server is called with, for `MCP_METHOD`."""

GUARDRAIL: Final = "GUARDRAIL"
"""The kind of a decision's span, for `SPAN_KIND`."""

REDACTION: Final = "footprint.redaction"
"""The note about a decision with redacted fields. Other notes have the name of their event."""
