"""Every event with its fields, as a table; `?` marks what is absent where it does not apply."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

TABLE: dict[str, str] = {
    "agent.run_configured": "agent_id:str agent_name:str conversation_id?:str provider:str model:str "
    "window?:str rules:{enum:[{name:str,version?:str}]} tools:[str] streaming:bool resumed:bool "
    "resumed_from?:{trace_id:str,span_id:str}",
    "pause.resume": "pause_id:str kind:enum answer:enum tool_name:str tool_call_id:str paused:duration",
    "checkin.decision": "tool_name:str tool_call_id:str iteration:int approved:bool",
    "middleware.decision": "middleware:str moment:enum at:enum phase?:enum tool_name?:str tool_call_id?:str "
    "tool_source?:str iteration:int outcome:enum changed:bool shadow?:bool answer:enum error_class?:str "
    "redactions?:{str:int} row:int duration?:duration",
    "agent.turn_start": "turn_index:int message_chars:int",
    "context.evicted": "slot:enum reason:enum iteration:int",
    "context.budget_pressure": "slot:enum unit:enum cap:int projected:int overflow_by:int plan_action:enum "
    "iteration:int",
    "context.injected": "slot:enum pieces:int iteration:int",
    "context.slot_composed": "slot:enum iteration:int pieces:int chars:int",
    "tools.offered": "iteration:int offered:[str] count:int",
    "agent.iteration_start": "iteration:int",
    "stream.llm_start": "iteration:int provider:str model:str server?:str messages_count:int tools_count:int",
    "stream.token": "iteration:int token_index:int chars:int",
    "stream.llm_end": "iteration:int tool_call_count:int usage?:{input:int,output:int} cache_read?:int "
    "cache_write?:int response_model?:str response_id?:str first_chunk?:duration stop_reason?:enum "
    "error_class?:str duration:duration",
    "agent.route_decided": "iteration:int chosen:enum",
    "stream.tool_start": "tool_name:str tool_call_id:str tool_source?:str iteration:int parallel_count?:int",
    "permission.check": "capability:enum target:str result:enum policy_rule_id?:str checker:str "
    "tool_call_id:str iteration:int",
    "permission.halt": "target:str tool_call_id:str iteration:int checker:str",
    "validation.args_invalid": "tool_name:str tool_call_id:str iteration:int issues:int",
    "checkin.request": "tool_name:str tool_call_id:str iteration:int",
    "pause.request": "pause_id:str kind:enum middleware?:str tool_name:str tool_call_id:str iteration:int",
    "credential.requested": "service:str tool_call_id:str",
    "credential.acquired": "service:str kind:str tool_call_id:str",
    "credential.failed": "service:str error_class?:str tool_call_id:str",
    "stream.tool_end": "tool_name:str tool_call_id:str tool_source?:str tool_type:str iteration:int "
    "status:enum executed:bool decided_by_rule?:str args_changed:bool args_known_keys:int "
    "args_unknown_keys:int result_type:enum result_bytes:int error_class?:str duration?:duration",
    "agent.iteration_end": "iteration:int tool_call_count:int",
    "agent.output_schema_retry": "attempt:int retries_remaining:int iteration:int stage:enum",
    "agent.output_contract_unmet": "attempts:int iteration:int stage:enum broken_by?:str",
    "agent.budget_exhausted": "reason:enum iteration:int limit:int pending_tool_calls:int action:enum",
    "error.fatal": "error_class:str stage:str recorded?:bool",
    "observer.error": "watcher:str error_class:str event:str count:int",
    "agent.turn_end": "outcome:enum recorded?:bool iteration_count:int total_input_tokens:int "
    "total_output_tokens:int duration:duration stopped_early?:{reason:enum,iteration:int,"
    "pending_tool_calls:int,wrapped_up?:bool}",
}
"""Beside what every event carries. `recorded` stands in both last events of a segment that failed."""

CARRIED = "run_id:str segment:int sequence:int time:int"
"""What every event carries, beside its type."""

_SLOTS = {"system-prompt", "messages", "tools"}
_STAGES = {"json-parse", "schema-validate"}
_RULED = {"input", "before-tool", "after-tool", "window", "output"}
_KINDS = {"ask", "check-in", "human"}

WORDS: dict[str, dict[str, set[str]]] = {
    "pause.resume": {"kind": _KINDS, "answer": {"approved", "declined", "value"}},
    "middleware.decision": {
        "moment": _RULED,
        "phase": _RULED,
        "at": {"tool", "message"},
        "outcome": {"allow", "deny", "ask"},
        "answer": {"given", "raised", "timed-out", "malformed", "person"},
    },
    "context.evicted": {"slot": _SLOTS, "reason": {"budget"}},
    "context.budget_pressure": {
        "slot": _SLOTS,
        "unit": {"tokens"},
        "plan_action": {"evict", "summarize", "none"},
    },
    "context.injected": {"slot": _SLOTS},
    "context.slot_composed": {"slot": _SLOTS},
    "stream.llm_end": {"stop_reason": {"stop", "tool_use", "max_tokens", "refusal", "other"}},
    "agent.route_decided": {"chosen": {"tool-calls", "final", "output-retry", "wrap-up"}},
    "permission.check": {
        "capability": {"tool_call"},
        "result": {"allow", "gate_open", "deny", "halt"},
    },
    "pause.request": {"kind": _KINDS},
    "stream.tool_end": {
        "status": {"ran", "failed", "denied", "invalid", "unknown", "blocked", "cancelled"},
        "result_type": {"object", "array", "string", "number", "boolean", "null", "opaque"},
    },
    "agent.output_schema_retry": {"stage": _STAGES},
    "agent.output_contract_unmet": {"stage": _STAGES},
    "agent.budget_exhausted": {"reason": {"max-iterations"}, "action": {"wrapped-up", "cut-short"}},
    "agent.turn_end": {
        "outcome": {"answered", "denied", "paused", "halted", "failed", "cancelled", "abandoned"}
    },
}
"""The closed set of words of every enum."""


def columns(row: str) -> dict[str, str]:
    """A row of the table, column by column."""
    parts = [part.partition(":") for part in row.split()]
    return {name: kind for name, _, kind in parts}


def fields(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The fields of a class in the spelling of the table; of an event, beside what every event carries."""
    carried = columns(CARRIED)
    found = msgspec.structs.fields(struct)
    return {
        field.name + ("" if field.required else "?"): spelled(field.type)
        for field in found
        if field.name not in carried
    }


def spelled(annotation: Any) -> str:
    """A type in the spelling of the table."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        words = {spelled(one) for one in inner if one is not type(None)}
        assert len(words) == 1, annotation
        return words.pop()
    if origin is Literal:
        return "enum"
    if origin is tuple:
        assert inner[1:] == (...,)
        return f"[{spelled(inner[0])}]"
    if origin is dict:
        return f"{{{spelled(inner[0])}:{spelled(inner[1])}}}"
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return "{" + ",".join(f"{name}:{kind}" for name, kind in fields(annotation).items()) + "}"
    plain: dict[Any, str] = {str: "str", int: "int", bool: "bool", float: "duration"}
    return plain[annotation]


def words(annotation: Any) -> set[str]:
    """The words of the enums in a type."""
    if get_origin(annotation) is Literal:
        return set(get_args(annotation))
    return {word for inner in get_args(annotation) for word in words(inner)}
