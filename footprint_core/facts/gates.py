"""What decides about a call, a message or an answer: rules, permission, credentials, consent, a schema."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from footprint_core.decisions import AnswerKind, Verdict
from footprint_core.facts.words import PermissionResult, SchemaOutcome, SchemaStage
from footprint_core.moments import LoopMoment
from footprint_core.plain import Json


class Decided(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="decision"):
    """One rule, or one person, decided once. Fields as on `decisions.Decision`.

    `imported` holds what another ledger had redacted, when a checkpoint carried the row here.
    """

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
    imported: tuple[tuple[str, str], ...] | None = None
    why: Json = msgspec.UNSET
    before: Json = msgspec.UNSET
    after: Json = msgspec.UNSET
    detail: Json = msgspec.UNSET
    decided_by: Json = msgspec.UNSET


class PermissionChecked(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="permission.checked"
):
    """A permission checker decided about a call; `error_class` is of what it raised."""

    values: ClassVar[tuple[str, ...]] = ("rationale", "reason")
    iteration: int
    call_id: str
    tool_name: str
    checker: str
    result: PermissionResult
    tool_source: str | None = None
    policy_rule_id: str | None = None
    error_class: str | None = None
    rationale: Json = msgspec.UNSET
    reason: Json = msgspec.UNSET


class CheckInAsked(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="check-in.asked"
):
    """A tool's declared consent tripped; `evidence` is what the tool shows the person."""

    values: ClassVar[tuple[str, ...]] = ("evidence",)
    iteration: int
    call_id: str
    tool_name: str
    tool_source: str | None = None
    evidence: Json = msgspec.UNSET


class CheckInAnswered(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="check-in.answered"
):
    """A person gave or refused the consent a tool declares."""

    values: ClassVar[tuple[str, ...]] = ("decided_by", "note")
    iteration: int
    call_id: str
    tool_name: str
    approved: bool
    tool_source: str | None = None
    decided_by: Json = msgspec.UNSET
    note: Json = msgspec.UNSET


class CredentialRequested(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="credential.requested"
):
    """A declared need is about to be resolved."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    call_id: str
    tool_name: str
    service: str


class CredentialAcquired(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="credential.acquired"
):
    """It was resolved; the secret is nowhere but in the tool's context."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    call_id: str
    tool_name: str
    service: str
    credential_kind: str


class CredentialFailed(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="credential.failed"
):
    """It was not; `error_class` is of what the provider raised, and absent when there is no provider."""

    values: ClassVar[tuple[str, ...]] = ()
    iteration: int
    call_id: str
    tool_name: str
    service: str
    error_class: str | None = None


class OutputJudged(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="output.judged"
):
    """An answer was judged by its schema.

    `text` and `correction` are put back into the conversation by a retry; `error` is the validator's.
    """

    values: ClassVar[tuple[str, ...]] = ("text", "correction", "error")
    attempt: int
    iteration: int
    outcome: SchemaOutcome
    retries_remaining: int
    stage: SchemaStage | None = None
    broken_by: str | None = None
    text: Json = msgspec.UNSET
    correction: Json = msgspec.UNSET
    error: Json = msgspec.UNSET
