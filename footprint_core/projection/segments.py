"""What watchers are told of a segment, and of the answer it ends with."""

from __future__ import annotations

from footprint_core import events as ev
from footprint_core import facts as fa
from footprint_core.projection.place import At


def configured(fact: fa.RunConfigured, at: At) -> ev.Event:
    """The posture that is active."""
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


def turn_started(fact: fa.MessageTaken, at: At) -> ev.Event:
    """A turn begins."""
    return ev.TurnStarted(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        turn_index=fact.turn_index,
        message_chars=fact.message_chars,
    )


def iteration_ended(fact: fa.IterationEnded, at: At) -> ev.Event:
    """An iteration is over."""
    return ev.IterationFinished(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        iteration=fact.iteration,
        tool_call_count=fact.call_count,
    )


def route_taken(fact: fa.RouteTaken, at: At) -> ev.Event:
    """Where the loop went after an answer with a schema."""
    return ev.RouteDecided(
        run_id=at[0], segment=at[1], sequence=at[2], time=at[3], iteration=fact.iteration, chosen=fact.chosen
    )


def output_judged(fact: fa.OutputJudged, at: At) -> tuple[ev.Event, ...]:
    """An answer that does not match its schema is asked for again, or returned as it is."""
    if fact.stage is None:
        return ()
    if fact.outcome == "retried":
        retried = ev.OutputRetried(
            run_id=at[0],
            segment=at[1],
            sequence=at[2],
            time=at[3],
            attempt=fact.attempt,
            retries_remaining=fact.retries_remaining,
            iteration=fact.iteration,
            stage=fact.stage,
        )
        return (retried,)
    unmet = ev.OutputUnmet(
        run_id=at[0],
        segment=at[1],
        sequence=at[2],
        time=at[3],
        attempts=fact.attempt,
        iteration=fact.iteration,
        stage=fact.stage,
        broken_by=fact.broken_by,
    )
    return (unmet,)


def budget_exhausted(fact: fa.BudgetExhausted, at: At) -> ev.Event:
    """The iteration budget ended."""
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


def ended(fact: fa.SegmentEnded, at: At) -> tuple[ev.Event, ...]:
    """A segment is over; a failed one says so first."""
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
