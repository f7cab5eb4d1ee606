"""A call is taken up, decided about, and answered."""

from __future__ import annotations

from typing import ClassVar, Literal

from footprint_core.decisions import AnswerKind, Verdict
from footprint_core.events.base import EventBase
from footprint_core.facts import CallStatus, PermissionResult
from footprint_core.moments import LoopMoment
from footprint_core.plain import JsonType


class ToolCallStarted(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.tool_start"
):
    """A call is taken up, before anything decides about it."""

    type: ClassVar[str] = "stream.tool_start"
    tool_name: str
    tool_call_id: str
    tool_source: str | None = None
    iteration: int
    parallel_count: int | None = None


class PermissionAnswered(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="permission.check"
):
    """A permission checker decided about a call."""

    type: ClassVar[str] = "permission.check"
    capability: Literal["tool_call"]
    target: str
    result: PermissionResult
    policy_rule_id: str | None = None
    checker: str
    tool_call_id: str
    iteration: int


class PermissionHalted(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="permission.halt"
):
    """A permission checker ended the run."""

    type: ClassVar[str] = "permission.halt"
    target: str
    tool_call_id: str
    iteration: int
    checker: str


class DecisionFiled(EventBase, frozen=True, kw_only=True, tag_field="type", tag="middleware.decision"):
    """A decision row was filed; `row` is its position in the run."""

    type: ClassVar[str] = "middleware.decision"
    middleware: str
    moment: LoopMoment
    at: Literal["tool", "message"]
    phase: LoopMoment | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_source: str | None = None
    iteration: int
    outcome: Verdict
    changed: bool
    shadow: bool = False
    answer: AnswerKind
    error_class: str | None = None
    redactions: dict[str, int] | None = None
    row: int
    duration: float | None = None


class ArgsInvalid(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="validation.args_invalid"
):
    """The arguments were rejected."""

    type: ClassVar[str] = "validation.args_invalid"
    tool_name: str
    tool_call_id: str
    iteration: int
    issues: int


class CheckInRequested(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="checkin.request"
):
    """A tool's declared consent tripped."""

    type: ClassVar[str] = "checkin.request"
    tool_name: str
    tool_call_id: str
    iteration: int


class CheckInDecided(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="checkin.decision"
):
    """A person gave or refused the consent a tool declares."""

    type: ClassVar[str] = "checkin.decision"
    tool_name: str
    tool_call_id: str
    iteration: int
    approved: bool


class CredentialRequested(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="credential.requested"
):
    """A declared need is being resolved."""

    type: ClassVar[str] = "credential.requested"
    service: str
    tool_call_id: str


class CredentialAcquired(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="credential.acquired"
):
    """It was resolved."""

    type: ClassVar[str] = "credential.acquired"
    service: str
    kind: str
    tool_call_id: str


class CredentialFailed(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="credential.failed"
):
    """It was not."""

    type: ClassVar[str] = "credential.failed"
    service: str
    error_class: str | None = None
    tool_call_id: str


class ToolCallEnded(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="stream.tool_end"):
    """A call is answered; `duration` is the body's, absent when nothing ran."""

    type: ClassVar[str] = "stream.tool_end"
    tool_name: str
    tool_call_id: str
    tool_source: str | None = None
    tool_type: str
    iteration: int
    status: CallStatus
    executed: bool
    decided_by_rule: str | None = None
    args_changed: bool
    args_known_keys: int
    args_unknown_keys: int
    result_type: JsonType | Literal["opaque"]
    result_bytes: int
    error_class: str | None = None
    duration: float | None = None
