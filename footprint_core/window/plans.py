"""A plan as it may be used: a strategy of one's own can return anything."""

from __future__ import annotations

import inspect
from typing import cast

import msgspec

from footprint_core.errors import CompactionUnmeasurableError, RunError
from footprint_core.facts import Refusal, TokenPressure
from footprint_core.facts.window import Figure
from footprint_core.pause.signal import PauseSignal
from footprint_core.window.strategy import Fold, WindowPlan, WindowStrategy, WindowView


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of a plan, its fold aside."""

    remove: tuple[int, ...]
    refusals: tuple[Refusal, ...]
    pinned: tuple[str, ...]
    yielded: int
    figures: dict[str, Figure]
    pressure: TokenPressure | None


_FIELDS = _Plan.__struct_fields__


def planned(strategy: WindowStrategy, view: WindowView) -> WindowPlan | None:
    """What a strategy plans; None when it does not engage.

    Raises:
        RunError: It raised, or what it planned cannot be used.
        CompactionUnmeasurableError: It counts tokens, and the provider does not.
    """
    try:
        plan = cast("object", strategy.plan(view))
    except CompactionUnmeasurableError:
        raise
    except (Exception, PauseSignal) as error:
        raise RunError(
            f"The window strategy {strategy.name} raised {type(error).__name__}; mend it."
        ) from error
    if plan is None:
        return None
    if inspect.iscoroutine(plan):
        plan.close()
        raise RunError(
            f"The window strategy {strategy.name} has an async plan method; plan(view) returns at once."
        )
    if not isinstance(plan, WindowPlan):
        raise RunError(
            f"The window strategy {strategy.name} planned {type(plan).__name__}; return a WindowPlan or None."
        )
    plan = _in_shape(strategy.name, plan)
    if not _is_span(plan.remove, view.turn_count):
        raise RunError(
            f"The window strategy {strategy.name} planned to remove turns that are no span of the window; "
            "plan ascending indices without gaps."
        )
    return plan


def _in_shape(name: str, plan: WindowPlan) -> WindowPlan:
    """The plan again: the values of a struct are checked where it is read from data, not where it is made."""
    try:
        given = {field: msgspec.to_builtins(getattr(plan, field)) for field in _FIELDS}
        held = msgspec.convert(given, type=_Plan)
    except (Exception, PauseSignal) as error:
        raise RunError(
            f"The window strategy {name} planned something a WindowPlan cannot hold; look at its fields."
        ) from error
    if not isinstance(cast("object", plan.fold), Fold | None):
        raise RunError(f"The window strategy {name} planned a fold that is none; pass a Fold.")
    return WindowPlan(**{field: getattr(held, field) for field in _FIELDS}, fold=plan.fold)


def _is_span(remove: tuple[int, ...], turns: int) -> bool:
    """Whether indices name turns that are there and follow one another."""
    if not remove:
        return True
    return (
        remove == tuple(range(remove[0], remove[0] + len(remove))) and remove[0] >= 0 and remove[-1] < turns
    )
