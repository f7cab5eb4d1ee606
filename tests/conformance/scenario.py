"""A scenario as it may be played: everything a file says but what is expected.

Keys that are not known here are refused: a key that is skipped in silence would play another scenario.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from conformance.values import Json


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """How every part of a scenario is read."""


class Predicate(Spec, frozen=True, kw_only=True):
    """A condition: `path`, `op` and `value`, or one of the three that are made of others."""

    path: str | None = None
    op: Literal["exists", "absent", "eq", "ne", "gt", "gte", "lt", "lte", "contains", "matches"] | None = None
    value: Json = None
    all: tuple[Predicate, ...] | None = None
    any: tuple[Predicate, ...] | None = None
    negated: Predicate | None = msgspec.field(default=None, name="not")


class Pass(Spec, frozen=True, kw_only=True, tag_field="verb", tag="allow"):
    pass


class Refuse(Spec, frozen=True, kw_only=True, tag_field="verb", tag="deny"):
    reason: str


class Question(Spec, frozen=True, kw_only=True, tag_field="verb", tag="ask"):
    question: str
    detail: Json = None


class Raise(Spec, frozen=True, kw_only=True, tag_field="verb", tag="throw"):
    message: str


class Replace(Spec, frozen=True, kw_only=True, tag_field="verb", tag="replace"):
    value: Json


class Same(Spec, frozen=True, kw_only=True, tag_field="verb", tag="same"):
    pass


class SetField(Spec, frozen=True, kw_only=True, tag_field="verb", tag="set"):
    field: str
    value: Json


class DropField(Spec, frozen=True, kw_only=True, tag_field="verb", tag="drop"):
    field: str


class Wrap(Spec, frozen=True, kw_only=True, tag_field="verb", tag="wrap"):
    key: str


class Append(Spec, frozen=True, kw_only=True, tag_field="verb", tag="append"):
    text: str


class Mask(Spec, frozen=True, kw_only=True, tag_field="verb", tag="mask"):
    pattern: str
    replacement: str = msgspec.field(name="with")


class AskOnce(Spec, frozen=True, kw_only=True, tag_field="verb", tag="ask-once"):
    question: str
    key_by: Literal["call", "tool"]


Verb: TypeAlias = (
    Pass | Refuse | Question | Raise | Replace | Same | SetField | DropField | Wrap | Append | Mask | AskOnce
)


class Clause(Spec, frozen=True, kw_only=True):
    do: Verb
    when: Predicate | None = None
    phase: Literal["input", "output"] | None = None
    why: str | None = None


class RuleSpec(Spec, frozen=True, kw_only=True):
    """A rule has exactly the hooks that are named; its name may be a wrong one on purpose."""

    name: Json = None
    on_call: tuple[Clause, ...] | None = None
    on_result: tuple[Clause, ...] | None = None
    on_message: tuple[Clause, ...] | None = None


class ToolSpec(Spec, frozen=True, kw_only=True):
    kind: Literal["echo", "fixed", "sequence", "throw", "count", "ask-human"]
    name: str
    input_schema: dict[str, Json] = msgspec.field(default_factory=lambda: {"type": "object"})
    needs: str | None = None
    check_in: Literal["always"] | None = None
    ask_when: Predicate | None = None
    asks: Json = None
    returns: Json = None
    message: str = ""


class ToolSource(Spec, frozen=True, kw_only=True):
    server: str
    tools: tuple[ToolSpec, ...]


class PermissionRule(Spec, frozen=True, kw_only=True):
    tool: str
    decide: Literal["allow", "gate_open", "deny", "halt", "throw"]
    when: Predicate | None = None
    rationale: str | None = None
    tell_model: str | None = None
    rule_id: str | None = None
    reason: str | None = None
    message: str = ""


class PermissionDefaults(Spec, frozen=True, kw_only=True):
    rationale: str | None = None
    tell_model: str | None = None
    rule_id: str | None = None
    reason: str | None = None


class PermissionSpec(Spec, frozen=True, kw_only=True):
    rules: tuple[PermissionRule, ...]
    name: str = "policy"
    default: Literal["allow", "gate_open", "deny", "halt"] = "allow"
    defaults: PermissionDefaults = PermissionDefaults()


class OutputSchemaSpec(Spec, frozen=True, kw_only=True):
    required: dict[str, Literal["number", "string", "boolean"]]
    retries: Json = 0


class ReportedUsage(Spec, frozen=True, kw_only=True):
    input: int
    output: int


class Summary(Spec, frozen=True, kw_only=True):
    """What the summarizer says, or the error it raises."""

    text: str | None = None
    error: str | None = None
    usage: ReportedUsage = ReportedUsage(input=20, output=8)


class Sliding(Spec, frozen=True, kw_only=True, tag_field="strategy", tag="sliding_window"):
    keep_recent_turns: Json = None


class Budget(Spec, frozen=True, kw_only=True, tag_field="strategy", tag="token_budget"):
    threshold_tokens: Json = None
    keep_recent_turns: Json = UNSET


class Summarize(Spec, frozen=True, kw_only=True, tag_field="strategy", tag="summarize_oldest"):
    summaries: tuple[Summary, ...]
    threshold_tokens: Json = None
    keep_recent_turns: Json = UNSET


Window: TypeAlias = Sliding | Budget | Summarize


class Wiring(Spec, frozen=True, kw_only=True):
    """One step of a description; what stands under `act` may be wrong on purpose."""

    act: dict[str, Json] | None = None
    message: tuple[str, ...] | None = None
    tool: tuple[str, ...] | None = None
    window: Window | None = None
    watch: tuple[str, ...] | None = None


class Observer(Spec, frozen=True, kw_only=True):
    id: Json = None


class AgentSpec(Spec, frozen=True, kw_only=True):
    system: str | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_sources: tuple[ToolSource, ...] = ()
    wiring: tuple[Wiring, ...] = ()
    max_iterations: Json = 10
    wrap_up_at_max_iterations: bool = False
    keep_last_tool_results: Json = False
    permission: PermissionSpec | None = None
    credentials: dict[str, str] | None = None
    output_schema: OutputSchemaSpec | None = None
    observers: dict[str, Observer] = {}


class Served(Spec, frozen=True, kw_only=True):
    tools: tuple[ToolSpec, ...] = ()
    name: str = "served"
    tool_sources: tuple[ToolSource, ...] = ()
    tool_middleware: tuple[str, ...] = ()
    credentials: dict[str, str] | None = None


class Wanted(Spec, frozen=True, kw_only=True):
    """A call the model asks for."""

    id: str
    name: str
    args: dict[str, Json]


class Reply(Spec, frozen=True, kw_only=True):
    text: str = ""
    tool_calls: tuple[Wanted, ...] = ()
    usage: ReportedUsage | None = ReportedUsage(input=10, output=5)
    tokens: tuple[str, ...] | None = None


class Person(Spec, frozen=True, kw_only=True):
    by: str
    note: str | None = None


class Given(Spec, frozen=True, kw_only=True):
    """What a pause is answered with: one of the four."""

    approve: Person | None = None
    decline: Person | None = None
    value: Json | UnsetType = UNSET
    nothing: Literal[True] | None = None


class Build(Spec, frozen=True, kw_only=True, tag_field="do", tag="build"):
    pass


class Run(Spec, frozen=True, kw_only=True, tag_field="do", tag="run"):
    message: Json


class FollowUp(Spec, frozen=True, kw_only=True, tag_field="do", tag="followUp"):
    message: Json


class Resume(Spec, frozen=True, kw_only=True, tag_field="do", tag="resume"):
    given: Given = msgspec.field(name="with")
    remember: bool = False


class AbandonPause(Spec, frozen=True, kw_only=True, tag_field="do", tag="abandonPause"):
    pass


class FreshAgent(Spec, frozen=True, kw_only=True, tag_field="do", tag="freshAgent"):
    pass


class Serve(Spec, frozen=True, kw_only=True, tag_field="do", tag="serve"):
    pass


class ServeCall(Spec, frozen=True, kw_only=True, tag_field="do", tag="serveCall"):
    tool: str
    args: dict[str, Json] = {}


Action: TypeAlias = Build | Run | FollowUp | Resume | AbandonPause | FreshAgent | Serve | ServeCall


class Scenario(Spec, frozen=True, kw_only=True):
    script: tuple[Action, ...]
    rules: dict[str, RuleSpec] = {}
    agent: AgentSpec = AgentSpec()
    served: Served = Served()
    model: tuple[Reply, ...] = ()
