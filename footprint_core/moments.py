"""The five moments of the loop, and the key of `.act()` that belongs to each."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never, get_args

from footprint_core.errors import UnknownMomentError

LoopMoment: TypeAlias = Literal["input", "before-tool", "after-tool", "window", "output"]
"""A place in the loop where something can be decided."""

ActKey: TypeAlias = Literal["input", "before_tool", "after_tool", "window", "output"]
"""The keyword of `.act()` for a moment."""

LOOP_MOMENTS: tuple[LoopMoment, ...] = get_args(LoopMoment)
"""Every moment, in the order one turn reaches them. The only list of moments in the product."""


def act_key_for(moment: LoopMoment) -> ActKey:
    """The `.act()` keyword of a moment: the moment's name with `_` for `-`.

    Raises:
        UnknownMomentError: The word is not a moment.
    """
    if moment not in LOOP_MOMENTS:
        raise UnknownMomentError(known=LOOP_MOMENTS)
    match moment:
        case "input":
            return "input"
        case "before-tool":
            return "before_tool"
        case "after-tool":
            return "after_tool"
        case "window":
            return "window"
        case "output":
            return "output"
        case _:
            assert_never(moment)


ACT_KEYS: tuple[ActKey, ...] = tuple(act_key_for(moment) for moment in LOOP_MOMENTS)
"""Every keyword of `.act()`, in the order of the moments."""
