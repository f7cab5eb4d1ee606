"""A segment from its first fact to its last: configured, run, and ended once, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from footprint_core.errors import LedgerError, RunError
from footprint_core.facts import RunConfigured, RunOutcome, SegmentEnded
from footprint_core.loop.pause import Origin, PausedRun, open_pause
from footprint_core.loop.turn import Answered, DeniedMessage, Ending, Question, Turn


async def run_segment(
    turn: Turn, opening: RunConfigured, steps: Callable[[Turn], Awaitable[Ending]], *, origin: Origin
) -> Answered | DeniedMessage | PausedRun:
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
        return await _close(turn, ending, began, origin)
    except BaseException as error:
        await _fail(turn, error, began)
        if isinstance(error, LedgerError | RunError):
            error.run_id, error.segment = turn.writer.run_id, turn.writer.segment
        raise


async def _close(
    turn: Turn, ending: Ending, began: int, origin: Origin
) -> Answered | DeniedMessage | PausedRun:
    turn.stage = "end"
    match ending:
        case Answered():
            turn.writer.note(_ended(turn, "answered", began, text=ending.text))
        case DeniedMessage():
            turn.writer.note(_ended(turn, "denied", began))
        case Question():
            return await open_pause(turn, ending, lambda: _ended(turn, "paused", began), origin)
    await turn.writer.commit()
    return ending


async def _fail(turn: Turn, error: BaseException, began: int) -> None:
    """File how a segment ended that was interrupted; a ledger that takes nothing leaves only signals."""
    stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt | SystemExit)
    outcome: Literal["cancelled", "failed"] = "cancelled" if stopped else "failed"
    end = _ended(turn, outcome, began)
    if not stopped:
        kind = getattr(error, "error_class", type(error).__name__)
        end = msgspec.structs.replace(end, error_class=kind, stage=turn.stage)
    if not turn.writer.broken:
        turn.writer.note(end)
        try:
            await turn.writer.commit()
        except LedgerError:
            pass
        else:
            return
    turn.writer.signal_end(
        msgspec.structs.replace(end, error_class=end.error_class or "LedgerError", stage=turn.stage)
    )


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
