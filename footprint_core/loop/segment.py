"""A segment from its first fact to its last: configured, run, and ended once, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias, assert_never

import msgspec

from footprint_core.commit import Writer
from footprint_core.errors import LedgerError, ProviderError, RunError
from footprint_core.facts import RunConfigured, RunOutcome, SegmentEnded, TraceRef
from footprint_core.loop.pause import MadePause, Origin, make_pause, open_pause
from footprint_core.loop.turn import Answered, DeniedMessage, Ending, Halted, PausedRun, Question, Turn
from footprint_core.plain import Json
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState

Closed: TypeAlias = Answered | DeniedMessage | Halted | PausedRun
"""How a segment is over, for its caller."""


async def run_segment(
    turn: Turn, opening: RunConfigured, steps: Callable[[Turn], Awaitable[Ending]], *, origin: Origin
) -> Closed:
    """Run the steps of a segment and make its end durable before anybody hears of it.

    Raises:
        LedgerError: An append failed; nothing acted on it.
        BaseException: What the steps raised, after the segment's end was filed.
    """
    began = turn.writer.now()
    try:
        turn.writer.note(opening)
        await turn.writer.commit()
        turn.writer.correlate()
        ending = await steps(turn)
        await turn.writer.cancellation.heed()
        closing = make_pause(turn, ending, origin) if isinstance(ending, Question) else ending
    except BaseException as error:
        await _fail(turn, error, began)
        _name(error, turn)
        raise
    try:
        return await _close(turn, closing, began)
    except BaseException as error:
        # The end is noted, and there is one; only a ledger that did not take it leaves something to tell.
        if turn.writer.broken:
            turn.writer.signal_end(_failed(turn, error, began))
        _name(error, turn)
        raise


def new_turn(
    spec: AgentSpec,
    state: RunState,
    run_id: str,
    segment: int,
    position: int,
    identity: Json,
    *,
    inline: bool = False,
    served: bool = False,
) -> Turn:
    """A segment that is about to begin, behind the last position of its run; see `Turn`."""
    audience = spec.bus.audience()
    writer = Writer(
        ledger=spec.ledger,
        audience=audience,
        state=state,
        clock=spec.clock(),
        run_id=run_id,
        segment=segment,
        position=position,
    )
    return Turn(
        spec=spec,
        state=state,
        writer=writer,
        audience=audience,
        identity=identity,
        inline=inline,
        served=served,
    )


def configured(
    turn: Turn, origin: Origin, *, turn_index: int, resumed_from: TraceRef | None = None
) -> RunConfigured:
    """The first fact of a segment."""
    spec = turn.spec
    return RunConfigured(
        agent_id=spec.agent_id,
        agent_name=spec.name,
        provider=spec.provider.name,
        model=spec.model,
        rules=dict(spec.rules),
        tools=spec.offers.names,
        turn_index=turn_index,
        streaming=bool(getattr(spec.provider, "streaming", False)),
        conversation_id=origin.conversation_id,
        window=None if spec.window is None else spec.window.name,
        follows=origin.follows,
        resumed=turn.writer.segment > 1,
        resumed_from=resumed_from,
        identity=msgspec.UNSET if turn.identity is None else turn.identity,
        system=spec.system or msgspec.UNSET,
    )


async def _close(turn: Turn, ending: Answered | DeniedMessage | Halted | MadePause, began: int) -> Closed:
    turn.stage = "end"
    match ending:
        case Answered():
            turn.writer.note(_ended(turn, "answered", began, text=ending.text))
        case DeniedMessage():
            turn.writer.note(_ended(turn, "denied", began))
        case Halted():
            turn.writer.note(_ended(turn, "halted", began))
        case MadePause():
            return await open_pause(turn, ending, _ended(turn, "paused", began))
        case _:
            assert_never(ending)
    try:
        await turn.writer.commit()
    finally:
        turn.answered = isinstance(ending, Answered) and not turn.writer.broken
    return ending


def _name(error: BaseException, turn: Turn) -> None:
    if isinstance(error, LedgerError | RunError):
        error.run_id, error.segment = turn.writer.run_id, turn.writer.segment


async def _fail(turn: Turn, error: BaseException, began: int) -> None:
    """File how a segment ended that was interrupted; a ledger that takes nothing leaves only signals."""
    if not turn.writer.broken:
        stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit)
        turn.writer.note(_ended(turn, "cancelled", began) if stopped else _failed(turn, error, began))
        try:
            await turn.writer.commit()
        except LedgerError as refused:
            error = refused
        else:
            return
    turn.writer.signal_end(_failed(turn, error, began))


def _failed(turn: Turn, error: BaseException, began: int) -> SegmentEnded:
    # The class of a provider's error is more use than that of ours around it. No other error is asked for
    # one: an attribute of a foreign error can hold anything.
    kind = error.error_class if isinstance(error, ProviderError) else type(error).__name__
    return msgspec.structs.replace(_ended(turn, "failed", began), error_class=kind, stage=turn.stage)


def _ended(turn: Turn, outcome: RunOutcome, began: int, *, text: str | None = None) -> SegmentEnded:
    state = turn.state
    return SegmentEnded(
        outcome=outcome,
        iterations=state.iteration,
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
        duration_us=turn.writer.now() - began,
        stopped_early=turn.stopped_early,
        text=msgspec.UNSET if text is None else text,
    )
