"""What watchers are told of a model call."""

from __future__ import annotations

from footprint_core import events as ev
from footprint_core import facts as fa
from footprint_core.projection.place import NONE, At, Kinds, seconds


def replied(fact: fa.ModelReplied, at: At, unwanted: Kinds = NONE) -> tuple[ev.Event, ...]:
    """The reply is complete, and where the loop goes."""
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
        first_chunk=seconds(fact.first_chunk_us),
        stop_reason=fact.stop_reason,
        error_class=None,
        duration=fact.duration_us / 1_000_000,
    )
    if fact.route is None or ev.RouteDecided in unwanted:
        return (ended,)
    chosen = ev.RouteDecided(
        run_id=at[0], segment=at[1], sequence=at[2], time=at[3], iteration=fact.iteration, chosen=fact.route
    )
    return (ended, chosen)


def model_failed(fact: fa.ModelFailed, at: At) -> ev.Event:
    """The call failed."""
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
