"""What watchers are told of those who decide about a call."""

from __future__ import annotations

from footprint_core import events as ev
from footprint_core import facts as fa
from footprint_core.ledger import Marks
from footprint_core.projection.place import At, seconds, shown


def decided(fact: fa.Decided, at: At, marks: Marks) -> ev.Event:
    """A decision row was filed."""
    about_message = fact.moment in {"input", "output"}
    redactions: dict[str, int] = {}
    for _path, strategy in marks:
        redactions[strategy] = redactions.get(strategy, 0) + 1
    return ev.DecisionFiled(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        middleware=fact.middleware,
        moment=fact.moment,
        at="message" if about_message else "tool",
        phase=fact.moment if about_message else None,
        tool_name=None if fact.tool_name is None else shown(fact.tool_name),
        tool_call_id=fact.call_id,
        tool_source=fact.tool_source,
        iteration=fact.iteration,
        outcome=fact.outcome,
        changed=fact.changed,
        shadow=fact.shadow,
        answer=fact.answer,
        error_class=fact.error_class,
        redactions=ev.FrozenDict(redactions) if redactions else None,
        row=at[2],
        duration=seconds(fact.duration_us),
    )


def permission(fact: fa.PermissionChecked, at: At) -> tuple[ev.Event, ...]:
    """A permission checker decided; a halt says so again."""
    target = shown(fact.tool_name)
    checked = ev.PermissionAnswered(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        capability="tool_call",
        target=target,
        result=fact.result,
        policy_rule_id=fact.policy_rule_id,
        checker=fact.checker,
        tool_call_id=fact.call_id,
        iteration=fact.iteration,
    )
    if fact.result != "halt":
        return (checked,)
    halted = ev.PermissionHalted(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        target=target,
        tool_call_id=fact.call_id,
        iteration=fact.iteration,
        checker=fact.checker,
    )
    return (checked, halted)


def check_in_asked(fact: fa.CheckInAsked, at: At) -> ev.Event:
    """A tool's declared consent tripped."""
    return ev.CheckInRequested(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        tool_name=shown(fact.tool_name),
        tool_call_id=fact.call_id,
        iteration=fact.iteration,
    )


def check_in_answered(fact: fa.CheckInAnswered, at: At) -> ev.Event:
    """A person gave or refused it."""
    return ev.CheckInDecided(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        tool_name=shown(fact.tool_name),
        tool_call_id=fact.call_id,
        iteration=fact.iteration,
        approved=fact.approved,
    )


def credential_requested(fact: fa.CredentialRequested, at: At) -> ev.Event:
    """A declared need is being resolved."""
    return ev.CredentialRequested(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        service=fact.service,
        tool_call_id=fact.call_id,
    )


def credential_acquired(fact: fa.CredentialAcquired, at: At) -> ev.Event:
    """It was resolved."""
    return ev.CredentialAcquired(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        service=fact.service,
        kind=fact.credential_kind,
        tool_call_id=fact.call_id,
    )


def credential_failed(fact: fa.CredentialFailed, at: At) -> ev.Event:
    """It was not."""
    return ev.CredentialFailed(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        service=fact.service,
        error_class=fact.error_class,
        tool_call_id=fact.call_id,
    )
