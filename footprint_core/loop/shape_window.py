"""The window moment: a strategy plans what leaves, the engine guards it, the record is filed."""

from __future__ import annotations

import asyncio

import msgspec

from footprint_core import plain
from footprint_core.facts import WindowVisited
from footprint_core.facts.window import likeness
from footprint_core.loop.turn import Turn
from footprint_core.pause.signal import PauseSignal
from footprint_core.providers.port import Completed, whole
from footprint_core.state import RunState
from footprint_core.window.engine import guarded
from footprint_core.window.fold import (
    AskedBefore,
    Summarized,
    SummarizerFailed,
    Summary,
    folded,
    span_of,
    summary_request,
)
from footprint_core.window.plans import planned
from footprint_core.window.record import dropped
from footprint_core.window.strategy import Fold, WindowPlan, WindowStrategy, WindowView

_VISITS_BEFORE_PINS_STAND_DOWN = 2


async def shape_window(turn: Turn, strategy: WindowStrategy) -> None:
    """Ask the strategy once before this model call; a visit that does not engage leaves nothing.

    Raises:
        RunError: The strategy raised or planned nonsense.
        CompactionUnmeasurableError: It counts tokens, and the provider does not.
        LedgerError: The ledger did not take what had to be durable before a summarizer was called.
    """
    turn.stage = "window"
    view = _view(turn)
    plan = planned(strategy, view)
    if plan is None:
        return
    fold = plan.fold
    if fold is None or not plan.remove or guarded(view, plan):
        visit = dropped(strategy.name, view, plan)
    else:
        visit = folded(strategy.name, view, plan, fold, await _summarize(turn, view, plan, fold))
    turn.writer.note(_told_once(visit, turn.state))


def _view(turn: Turn) -> WindowView:
    state, keep = turn.state, turn.spec.keep_last_tool_results
    return WindowView(
        messages=state.messages,
        turn_count=state.turns,
        iteration=state.iteration + 1,
        provider=turn.spec.provider.name,
        last_input_tokens=state.last_input_tokens,
        last_output_tokens=state.last_output_tokens,
        usage_reported=state.input_tokens + state.output_tokens > 0,
        keep_last_tool_results=keep,
        stand_down=keep > 0 and state.held_visits >= _VISITS_BEFORE_PINS_STAND_DOWN,
    )


def _told_once(visit: WindowVisited, state: RunState) -> WindowVisited:
    """The record; one that repeats the one before refers to it, so that its refusals are filed once."""
    if state.last_visit is None or not visit.refusals or state.last_visit[1] != likeness(visit):
        return visit
    return msgspec.structs.replace(visit, refusals=(), refusals_more=0, same_as=state.last_visit[0])


async def _summarize(turn: Turn, view: WindowView, plan: WindowPlan, fold: Fold) -> Summarized:
    """Ask the summarizer, unless the answer is known; what it raises takes no run down."""
    first, stop = span_of(view, plan)
    if (first, stop) in turn.state.refused_spans:
        return AskedBefore()
    await turn.writer.commit()
    await turn.writer.cancellation.heed()
    try:
        completed = await _completed(fold, view, first, stop)
    except (Exception, PauseSignal, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and turn.writer.cancellation.here:
            raise
        return SummarizerFailed(error_class=type(error).__name__)
    return Summary(text=plain.detach(completed.text), usage=completed.usage)


async def _completed(fold: Fold, view: WindowView, first: int, stop: int) -> Completed:
    completed: Completed | None = None
    async for piece in fold.provider.reply(summary_request(fold, view.messages[first:stop])):
        if isinstance(piece, Completed):
            completed = piece
    completed = whole(completed, "summarizer")
    if not completed.text.strip():
        # Folded into nothing, the messages would be gone without a word of them.
        raise ValueError("The summarizer gave no text.")
    return completed
