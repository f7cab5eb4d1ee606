"""The window moment: a strategy plans what leaves, the engine guards it, the record is filed."""

from __future__ import annotations

from typing import cast

from footprint_core.errors import RunError
from footprint_core.loop.turn import Turn
from footprint_core.window.engine import visited
from footprint_core.window.strategy import WindowPlan, WindowView

_VISITS_BEFORE_PINS_STAND_DOWN = 2


def shape_window(turn: Turn) -> None:
    """Ask the strategy once before this model call; a visit that does not engage leaves nothing."""
    strategy = turn.spec.window
    if strategy is None:
        return
    turn.stage = "window"
    state = turn.state
    view = WindowView(
        messages=state.messages,
        turn_count=state.turns,
        iteration=state.iteration + 1,
        last_input_tokens=state.last_input_tokens,
        keep_last_tool_results=turn.spec.keep_last_tool_results,
        stand_down=state.held_visits >= _VISITS_BEFORE_PINS_STAND_DOWN,
    )
    try:
        plan = cast("object", strategy.plan(view))
    except Exception as error:
        raise RunError(
            f"The window strategy {strategy.name} raised {type(error).__name__}; mend it."
        ) from error
    if plan is None:
        return
    if not isinstance(plan, WindowPlan):
        raise RunError(
            f"The window strategy {strategy.name} planned {type(plan).__name__}; return a WindowPlan or None."
        )
    turn.writer.note(visited(strategy.name, view, plan))
