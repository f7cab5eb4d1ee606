"""The loop: the model is called until it gives an answer, a person is asked, or the budget ends."""

from __future__ import annotations

import msgspec

from footprint_core.facts import BudgetExhausted, EarlyStop, IterationEnded, ModelReplied
from footprint_core.loop.call_model import call_model
from footprint_core.loop.dispatch import dispatch
from footprint_core.loop.give_answer import give_answer
from footprint_core.loop.shape_window import shape_window
from footprint_core.loop.take_message import take_message
from footprint_core.loop.turn import Ending, Turn

_WRAP_UP = (
    "[The budget of this turn is used up, so no more tools can be called. Answer now with what you have, "
    "and say what is still open.]"
)


async def run_message(turn: Turn, text: str, turn_index: int) -> Ending:
    """One turn, from the message on."""
    denied = await take_message(turn, text, turn_index)
    del text
    return await converse(turn) if denied is None else denied


async def converse(turn: Turn, *, asking: int | None = None, replied: ModelReplied | None = None) -> Ending:
    """Call the model and dispatch what it asks for, until there is an ending.

    Args:
        turn: The segment.
        asking: The iteration whose request was about to go out when another process died.
        replied: The reply that one got, and did not decide about.
    """
    while True:
        if replied is None:
            if asking is None and turn.spec.window is not None:
                await turn.writer.cancellation.heed()
                await shape_window(turn, turn.spec.window)
            iteration = turn.state.iteration + 1 if asking is None else asking
            replied = await call_model(turn, iteration, offer_tools=not turn.state.wrapped_up)
            asking = None
        if replied.route == "tool-calls":
            stopped = await dispatch(turn)
            if stopped is not None:
                return stopped
        elif replied.route == "wrap-up":
            _stop_early(turn, replied, wrapped_up=True)
        else:
            if replied.call_count and turn.stopped_early is None:
                _stop_early(turn, replied, wrapped_up=False)
            ending = await give_answer(turn)
            if ending is not None:
                return ending
        replied = None


def _stop_early(turn: Turn, replied: ModelReplied, *, wrapped_up: bool) -> None:
    """The budget ended while the model still asked for tools; the calls are not dispatched."""
    turn.stopped_early = EarlyStop(
        reason="max-iterations",
        iteration=replied.iteration,
        pending_tool_calls=replied.call_count,
        wrapped_up=wrapped_up,
    )
    turn.writer.note(
        BudgetExhausted(
            iteration=replied.iteration,
            limit=turn.spec.max_iterations,
            pending_tool_calls=replied.call_count,
            action="wrapped-up" if wrapped_up else "cut-short",
            instruction=_WRAP_UP if wrapped_up else msgspec.UNSET,
        )
    )
    if wrapped_up:
        turn.writer.note(IterationEnded(iteration=replied.iteration, call_count=0))
