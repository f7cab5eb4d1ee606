"""What watchers are told of a fact: exhaustive, one arm a fact, and never a value.

A fact added to the union without an arm here fails type checking, by name. Silent facts are written out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import assert_never

from footprint_core import events as ev
from footprint_core import facts as fa
from footprint_core.composition import At, composed, evicted
from footprint_core.ledger import Entry, Marks

_HARMLESS = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)


@lru_cache(maxsize=1024)
def shown(name: str) -> str:
    """A tool's name as an event may show it: a model can choose it, and hide content in it."""
    return name if _HARMLESS.fullmatch(name) else "(invalid)"


def events_for(entry: Entry, *, run_id: str, segment: int, marks: Marks = ()) -> tuple[ev.Event, ...]:
    """The events of a committed fact, in the order they are delivered; none, one or several."""
    at = (run_id, segment, entry.position, entry.time)
    fact = entry.fact
    match fact:
        case fa.RunConfigured():
            return (_configured(fact, at),)
        case fa.MessageTaken():
            return (_turn_started(fact, at),)
        case fa.Decided():
            return (_decided(fact, at, marks),)
        case fa.WindowVisited():
            return evicted(fact, at)
        case fa.ModelAsked():
            return composed(fact, at)
        case fa.ModelReplied():
            return _replied(fact, at)
        case fa.ModelFailed():
            return (_model_failed(fact, at),)
        case fa.CallTaken():
            return (_call_taken(fact, at),)
        case fa.ToolIntended() | fa.ToolFinished():
            return ()
        case fa.CallAnswered():
            return _answered(fact, at)
        case fa.PauseOpened():
            return (_pause_opened(fact, at),)
        case fa.PauseAnswered():
            return (_pause_answered(fact, at),)
        case fa.IterationEnded():
            return (_iteration_ended(fact, at),)
        case fa.BudgetExhausted():
            return (_budget_exhausted(fact, at),)
        case fa.SegmentEnded():
            return _ended(fact, at)
        case _:
            assert_never(fact)


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1_000_000


def _configured(fact: fa.RunConfigured, at: At) -> ev.Event:
    return ev.AgentConfigured(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        agent_id=fact.agent_id,
        agent_name=fact.agent_name,
        conversation_id=fact.conversation_id,
        provider=fact.provider,
        model=fact.model,
        window=fact.window,
        rules=ev.FrozenDict(fact.rules),
        tools=fact.tools,
        streaming=fact.streaming,
        resumed=fact.resumed,
        resumed_from=fact.resumed_from,
    )


def _turn_started(fact: fa.MessageTaken, at: At) -> ev.Event:
    return ev.TurnStarted(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        turn_index=fact.turn_index,
        message_chars=fact.message_chars,
    )


def _decided(fact: fa.Decided, at: At, marks: Marks) -> ev.Event:
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
        version=fact.version,
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
        duration=_seconds(fact.duration_us),
    )


def _replied(fact: fa.ModelReplied, at: At) -> tuple[ev.Event, ...]:
    usage = fact.usage
    ended = ev.ModelCallEnded(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        iteration=fact.iteration,
        tool_call_count=fact.call_count,
        usage=None if usage is None else ev.TokenUsage(input=usage.input, output=usage.output),
        cache_read=None if usage is None else usage.cache_read,
        cache_write=None if usage is None else usage.cache_write,
        response_model=fact.response_model,
        response_id=fact.response_id,
        first_chunk=_seconds(fact.first_chunk_us),
        stop_reason=fact.stop_reason,
        error_class=None,
        duration=fact.duration_us / 1_000_000,
    )
    if fact.route is None:
        return (ended,)
    chosen = ev.RouteDecided(
        run_id=at[0], segment=at[1], sequence=at[2], time=at[3], iteration=fact.iteration, chosen=fact.route
    )
    return (ended, chosen)


def _model_failed(fact: fa.ModelFailed, at: At) -> ev.Event:
    return ev.ModelCallEnded(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        iteration=fact.iteration,
        tool_call_count=0,
        usage=None,
        cache_read=None,
        cache_write=None,
        response_model=None,
        response_id=None,
        first_chunk=None,
        stop_reason=None,
        error_class=fact.error_class,
        duration=fact.duration_us / 1_000_000,
    )


def _call_taken(fact: fa.CallTaken, at: At) -> ev.Event:
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


def _answered(fact: fa.CallAnswered, at: At) -> tuple[ev.Event, ...]:
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
        duration=_seconds(fact.duration_us),
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


def _pause_opened(fact: fa.PauseOpened, at: At) -> ev.Event:
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


def _pause_answered(fact: fa.PauseAnswered, at: At) -> ev.Event:
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


def _iteration_ended(fact: fa.IterationEnded, at: At) -> ev.Event:
    return ev.IterationFinished(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        iteration=fact.iteration,
        tool_call_count=fact.call_count,
    )


def _budget_exhausted(fact: fa.BudgetExhausted, at: At) -> ev.Event:
    return ev.BudgetSpent(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        reason="max-iterations",
        iteration=fact.iteration,
        limit=fact.limit,
        pending_tool_calls=fact.pending_tool_calls,
        action=fact.action,
    )


def _ended(fact: fa.SegmentEnded, at: At) -> tuple[ev.Event, ...]:
    ended = turn_ended(fact, at)
    if fact.error_class is None:
        return (ended,)
    return (fatal(fact, at), ended)


def turn_ended(fact: fa.SegmentEnded, at: At, *, recorded: bool = True) -> ev.TurnEnded:
    """The last event of a segment."""
    return ev.TurnEnded(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        outcome=fact.outcome,
        iteration_count=fact.iterations,
        total_input_tokens=fact.input_tokens,
        total_output_tokens=fact.output_tokens,
        duration=fact.duration_us / 1_000_000,
        stopped_early=fact.stopped_early,
        recorded=recorded,
    )


def fatal(fact: fa.SegmentEnded, at: At, *, recorded: bool = True) -> ev.FatalError:
    """What is told before the end of a segment that failed."""
    return ev.FatalError(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        error_class=fact.error_class or "unknown",
        stage=fact.stage or "unknown",
        recorded=recorded,
    )
