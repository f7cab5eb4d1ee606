"""What the events on a span say: points in time, as facts under their names."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from footprint_core.events import (
    ArgsInvalid,
    BudgetPressure,
    BudgetSpent,
    CheckInDecided,
    CheckInRequested,
    ContextEvicted,
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    DecisionFiled,
    FatalError,
    ObserverError,
    OutputRetried,
    OutputUnmet,
    PauseRequested,
    PauseResumed,
    PermissionAnswered,
    PermissionHalted,
)
from footprint_observe import semconv as n
from footprint_observe.recording.names import error_class

from .otel_values import Attributes, clean

Noted: TypeAlias = (
    PauseResumed
    | CheckInDecided
    | PermissionAnswered
    | PermissionHalted
    | ArgsInvalid
    | CheckInRequested
    | PauseRequested
    | CredentialRequested
    | CredentialAcquired
    | CredentialFailed
    | OutputRetried
    | OutputUnmet
    | BudgetSpent
    | FatalError
    | ObserverError
)
"""Events that are points in time; each is an event on the span it is about, under its own name."""


def noted(event: Noted) -> Attributes:
    """What the note about an event says, besides its name and its time."""
    match event:
        case PermissionAnswered():
            return clean(
                {
                    n.PERMISSION_RESULT: event.result,
                    n.PERMISSION_RULE: event.policy_rule_id,
                    n.PERMISSION_CHECKER: event.checker,
                }
            )
        case PermissionHalted():
            return clean({n.PERMISSION_CHECKER: event.checker})
        case ArgsInvalid():
            return clean({n.ARGS_ISSUES: event.issues})
        case CheckInRequested():
            return {}
        case CheckInDecided():
            return {n.CHECK_IN_APPROVED: event.approved}
        case PauseRequested():
            return clean({n.PAUSE_KIND: event.kind, n.MIDDLEWARE: event.middleware})
        case PauseResumed():
            return clean(
                {n.PAUSE_KIND: event.kind, n.PAUSE_ANSWER: event.answer, n.PAUSE_SECONDS: event.paused}
            )
        case CredentialRequested():
            return clean({n.CREDENTIAL_SERVICE: event.service})
        case CredentialAcquired():
            return clean({n.CREDENTIAL_SERVICE: event.service, n.CREDENTIAL_KIND: event.kind})
        case CredentialFailed():
            raised = None if event.error_class is None else error_class(event.error_class)
            return clean({n.CREDENTIAL_SERVICE: event.service, n.ERROR_TYPE: raised})
        case OutputRetried() | OutputUnmet():
            return _noted_of_output(event)
        case _:
            return _noted_of_run(event)


def _noted_of_output(event: OutputRetried | OutputUnmet) -> Attributes:
    if isinstance(event, OutputRetried):
        return clean(
            {
                n.OUTPUT_ATTEMPT: event.attempt,
                n.OUTPUT_RETRIES: event.retries_remaining,
                n.OUTPUT_STAGE: event.stage,
                n.ITERATION: event.iteration,
            }
        )
    return clean(
        {
            n.OUTPUT_ATTEMPT: event.attempts,
            n.OUTPUT_STAGE: event.stage,
            n.OUTPUT_BROKEN_BY: event.broken_by,
            n.ITERATION: event.iteration,
        }
    )


def _noted_of_run(event: BudgetSpent | FatalError | ObserverError) -> Attributes:
    match event:
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
            # Said only when it is not: then the ledger does not have the end that is told here.
            recorded = None if event.recorded else False
            return clean(
                {n.ERROR_TYPE: error_class(event.error_class), n.STAGE: event.stage, n.RECORDED: recorded}
            )
        case ObserverError():
            return clean(
                {
                    n.WATCHER: event.watcher,
                    n.WATCHER_EVENT: event.event,
                    n.ERROR_TYPE: error_class(event.error_class),
                }
            )
        case _:
            assert_never(event)


def of_window(event: ContextEvicted | BudgetPressure, messages: int) -> Attributes:
    """What the note about a window says; `messages` are those that left it together."""
    if isinstance(event, ContextEvicted):
        return clean(
            {
                n.WINDOW_SLOT: event.slot,
                n.WINDOW_REASON: event.reason,
                n.WINDOW_MESSAGES: messages,
                n.ITERATION: event.iteration,
            }
        )
    return clean(
        {
            n.WINDOW_SLOT: event.slot,
            n.WINDOW_UNIT: event.unit,
            n.WINDOW_CAP: event.cap,
            n.WINDOW_PROJECTED: event.projected,
            n.WINDOW_OVERFLOW: event.overflow_by,
            n.WINDOW_ACTION: event.plan_action,
            n.ITERATION: event.iteration,
        }
    )


def redacted(event: DecisionFiled) -> Attributes:
    """What the note about a decision with redacted fields says: how many, and which row."""
    return clean(
        {
            n.MOMENT: event.moment,
            n.MIDDLEWARE: event.middleware,
            n.ROW: event.row,
            n.REDACTIONS: sum((event.redactions or {}).values()),
        }
    )
