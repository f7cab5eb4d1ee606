"""What watchers are told: one closed union of frozen values that hold facts, never a value.

Every event carries where it comes from (`run_id`, `segment`, `sequence`) and when the fact was noted
(`time`, microseconds since the Unix epoch, UTC). Durations are seconds. A field that does not apply is
None, and absent where the event is written out. Names a model chose are shown only when they are 1 to 64
of a harmless alphabet.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

from footprint_core.events.base import FrozenDict, Slot
from footprint_core.events.calls import (
    ArgsInvalid,
    CheckInDecided,
    CheckInRequested,
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    DecisionFiled,
    PermissionAnswered,
    PermissionHalted,
    ToolCallEnded,
    ToolCallStarted,
)
from footprint_core.events.context import (
    BudgetPressure,
    ContextEvicted,
    ContextInjected,
    SlotComposed,
    ToolsOffered,
)
from footprint_core.events.model import (
    IterationStarted,
    ModelCallEnded,
    ModelCallStarted,
    TokenStreamed,
    TokenUsage,
)
from footprint_core.events.pauses import PauseRequested, PauseResumed
from footprint_core.events.run import (
    AgentConfigured,
    BudgetSpent,
    FatalError,
    IterationFinished,
    ObserverError,
    OutputRetried,
    OutputUnmet,
    RouteDecided,
    TurnEnded,
    TurnStarted,
)

Event: TypeAlias = (
    AgentConfigured
    | PauseResumed
    | CheckInDecided
    | DecisionFiled
    | TurnStarted
    | ContextEvicted
    | BudgetPressure
    | ContextInjected
    | SlotComposed
    | ToolsOffered
    | IterationStarted
    | ModelCallStarted
    | TokenStreamed
    | ModelCallEnded
    | RouteDecided
    | ToolCallStarted
    | PermissionAnswered
    | PermissionHalted
    | ArgsInvalid
    | CheckInRequested
    | PauseRequested
    | CredentialRequested
    | CredentialAcquired
    | CredentialFailed
    | ToolCallEnded
    | IterationFinished
    | OutputRetried
    | OutputUnmet
    | BudgetSpent
    | FatalError
    | ObserverError
    | TurnEnded
)
"""Everything a watcher can be told, in the order of a turn."""

Signal: TypeAlias = TokenStreamed | ObserverError | FatalError | TurnEnded
"""What is published at once, without a row behind it."""

EVENTS: dict[str, type[Event]] = {event.type: event for event in get_args(Event)}
"""Every event by its name."""

__all__ = [
    "EVENTS",
    "AgentConfigured",
    "ArgsInvalid",
    "BudgetPressure",
    "BudgetSpent",
    "CheckInDecided",
    "CheckInRequested",
    "ContextEvicted",
    "ContextInjected",
    "CredentialAcquired",
    "CredentialFailed",
    "CredentialRequested",
    "DecisionFiled",
    "Event",
    "FatalError",
    "FrozenDict",
    "IterationFinished",
    "IterationStarted",
    "ModelCallEnded",
    "ModelCallStarted",
    "ObserverError",
    "OutputRetried",
    "OutputUnmet",
    "PauseRequested",
    "PauseResumed",
    "PermissionAnswered",
    "PermissionHalted",
    "RouteDecided",
    "Signal",
    "Slot",
    "SlotComposed",
    "TokenStreamed",
    "TokenUsage",
    "ToolCallEnded",
    "ToolCallStarted",
    "ToolsOffered",
    "TurnEnded",
    "TurnStarted",
]
