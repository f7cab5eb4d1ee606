"""Everything a run can commit: one closed union of small frozen values.

A fact may hold values, named in its `values`; they go to the ledger, redacted when written, and
nowhere else. All its other fields are facts that anybody may see. `state` folds facts, `projection`
turns them into events.

None of them is tracked by the garbage collector: their fields hold plain data, text and tuples of such
values, so none can be part of a cycle, and a long run keeps thousands of them.
"""

from __future__ import annotations

from typing import TypeAlias

from footprint_core.facts.calls import CallAnswered, CallTaken, ToolFinished, ToolIntended, ToolPaused
from footprint_core.facts.gates import (
    CheckInAnswered,
    CheckInAsked,
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    Decided,
    OutputJudged,
    PermissionChecked,
)
from footprint_core.facts.model import ModelAsked, ModelFailed, ModelReplied
from footprint_core.facts.pauses import PauseAnswered, PauseClosed, PauseOpened
from footprint_core.facts.run import (
    BudgetExhausted,
    IterationEnded,
    MessageTaken,
    RouteTaken,
    RunAbandoned,
    RunConfigured,
    RunRecovered,
    SegmentEnded,
)
from footprint_core.facts.window import WindowVisited
from footprint_core.facts.words import (
    CallStatus,
    EarlyStop,
    PauseKind,
    PermissionResult,
    PlanAction,
    Refusal,
    RefusalReason,
    Route,
    RuleRef,
    RunOutcome,
    SchemaOutcome,
    SchemaStage,
    StopReason,
    TokenPressure,
    TraceRef,
    Usage,
)

Fact: TypeAlias = (
    RunConfigured
    | MessageTaken
    | Decided
    | WindowVisited
    | ModelAsked
    | ModelReplied
    | ModelFailed
    | CallTaken
    | PermissionChecked
    | CheckInAsked
    | CheckInAnswered
    | CredentialRequested
    | CredentialAcquired
    | CredentialFailed
    | ToolIntended
    | ToolPaused
    | ToolFinished
    | CallAnswered
    | PauseOpened
    | PauseAnswered
    | PauseClosed
    | IterationEnded
    | RouteTaken
    | OutputJudged
    | BudgetExhausted
    | SegmentEnded
    | RunRecovered
    | RunAbandoned
)
"""Everything a run can commit."""

__all__ = [
    "BudgetExhausted",
    "CallAnswered",
    "CallStatus",
    "CallTaken",
    "CheckInAnswered",
    "CheckInAsked",
    "CredentialAcquired",
    "CredentialFailed",
    "CredentialRequested",
    "Decided",
    "EarlyStop",
    "Fact",
    "IterationEnded",
    "MessageTaken",
    "ModelAsked",
    "ModelFailed",
    "ModelReplied",
    "OutputJudged",
    "PauseAnswered",
    "PauseClosed",
    "PauseKind",
    "PauseOpened",
    "PermissionChecked",
    "PermissionResult",
    "PlanAction",
    "Refusal",
    "RefusalReason",
    "Route",
    "RouteTaken",
    "RuleRef",
    "RunAbandoned",
    "RunConfigured",
    "RunOutcome",
    "RunRecovered",
    "SchemaOutcome",
    "SchemaStage",
    "SegmentEnded",
    "StopReason",
    "TokenPressure",
    "ToolFinished",
    "ToolIntended",
    "ToolPaused",
    "TraceRef",
    "Usage",
    "WindowVisited",
]
