"""The seam of each moment: by which key, door and hook it is decided at, and what a watcher is told there."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

import msgspec

from footprint_core import events as ev
from footprint_core.moments import ActKey, LoopMoment, act_key_for

Door: TypeAlias = Literal["message_middleware", "tool_middleware", "window"]
"""The method of the builder that adds one more at a moment."""

Hook: TypeAlias = Literal["on_message", "on_tool_call", "on_tool_result", "plan"]
"""What is called there."""


class Seam(msgspec.Struct, frozen=True, kw_only=True):
    """Where a moment is decided, and what is told when it is reached and decides.

    Attributes:
        moment: The moment.
        key: Its keyword of `.act()`.
        door: The builder's method.
        hook: What is called on what was given.
        reports: Events of which at least one is delivered whenever something decides at the moment.
    """

    moment: LoopMoment
    key: ActKey
    door: Door
    hook: Hook
    reports: tuple[type[ev.Event], ...]


def seam_for(moment: LoopMoment) -> Seam:
    """The seam of a moment; a moment without one does not type-check.

    Raises:
        UnknownMomentError: The word is not a moment.
    """
    key = act_key_for(moment)
    decided = (ev.DecisionFiled,)
    match moment:
        case "input" | "output":
            return Seam(moment=moment, key=key, door="message_middleware", hook="on_message", reports=decided)
        case "before-tool":
            return Seam(moment=moment, key=key, door="tool_middleware", hook="on_tool_call", reports=decided)
        case "after-tool":
            return Seam(
                moment=moment, key=key, door="tool_middleware", hook="on_tool_result", reports=decided
            )
        case "window":
            told = (ev.ContextEvicted, ev.BudgetPressure)
            return Seam(moment=moment, key=key, door="window", hook="plan", reports=told)
        case _:
            assert_never(moment)
