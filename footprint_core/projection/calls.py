"""What watchers are told of a call, and of a question about it."""

from __future__ import annotations

from footprint_core import events as ev
from footprint_core import facts as fa
from footprint_core.projection.place import At, seconds, shown


def call_taken(fact: fa.CallTaken, at: At) -> ev.Event:
    """A call is taken up."""
    return ev.ToolCallStarted(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        tool_name=shown(fact.tool_name),
        tool_call_id=fact.call_id,
        tool_source=fact.tool_source,
        iteration=fact.iteration,
        parallel_count=fact.parallel_count,
    )


def answered(fact: fa.CallAnswered, at: At) -> tuple[ev.Event, ...]:
    """A call is answered; rejected arguments are told first."""
    name = shown(fact.tool_name)
    ended = ev.ToolCallEnded(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        tool_name=name,
        tool_call_id=fact.call_id,
        tool_source=fact.tool_source,
        tool_type=fact.tool_type,
        iteration=fact.iteration,
        status=fact.status,
        executed=fact.executed,
        decided_by_rule=fact.decided_by_rule,
        args_changed=fact.args_changed,
        args_known_keys=fact.args_known_keys,
        args_unknown_keys=fact.args_unknown_keys,
        result_type=fact.result_type,
        result_bytes=fact.result_bytes,
        error_class=fact.error_class,
        duration=seconds(fact.duration_us),
    )
    if fact.issues is None:
        return (ended,)
    invalid = ev.ArgsInvalid(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        tool_name=name,
        tool_call_id=fact.call_id,
        iteration=fact.iteration,
        issues=fact.issues,
    )
    return (invalid, ended)


def pause_opened(fact: fa.PauseOpened, at: At) -> ev.Event:
    """The run is about to pause."""
    return ev.PauseRequested(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        pause_id=fact.pause_id,
        kind=fact.pause_kind,
        middleware=fact.middleware,
        tool_name=shown(fact.tool_name),
        tool_call_id=fact.call_id,
        iteration=fact.iteration,
    )


def pause_answered(fact: fa.PauseAnswered, at: At) -> ev.Event:
    """A person answered."""
    return ev.PauseResumed(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        pause_id=fact.pause_id,
        kind=fact.pause_kind,
        answer=fact.answer,
        tool_name=shown(fact.tool_name),
        tool_call_id=fact.call_id,
        paused=fact.paused_us / 1_000_000,
    )
