"""The record of a visit, and the notice that stands in the place of what left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from footprint_core.facts import Refusal, TokenPressure, WindowVisited
from footprint_core.facts.window import Figure
from footprint_core.messages import TOOL_NAME, UserMessage
from footprint_core.window.engine import current_request, guarded, refusal
from footprint_core.window.strategy import WindowPlan, WindowView

_MOST_REFUSALS = 32


def dropped(strategy: str, view: WindowView, plan: WindowPlan) -> WindowVisited:
    """A visit that lets turns go, as far as the guards allow it.

    A plan that would drop the current request, or part a call from its result, removes nothing.
    """
    if broken := guarded(view, plan):
        return visit(strategy, view, plan, refusals=(*broken, *plan.refusals))
    gone = messages_of(view, plan)
    if not gone:
        return visit(strategy, view, plan)
    with_notice = _with_the_notice_before(view, gone)
    notice = _notice(strategy, view, plan, with_notice)
    if notice is not None:
        gone = with_notice
    elif not _opens_with_user(view, plan):
        given_up = refusal("replacement-not-smaller", plan.remove[0], view.turns)
        return visit(strategy, view, plan, refusals=(given_up, *plan.refusals))
    return visit(strategy, view, plan, gone=gone, notice=notice)


def visit(
    strategy: str,
    view: WindowView,
    plan: WindowPlan,
    *,
    gone: tuple[int, ...] = (),
    refusals: tuple[Refusal, ...] | None = None,
    notice: str | None = None,
    summary: str | None = None,
    figures: Mapping[str, Figure] | None = None,
    refused_span: tuple[int, int] | None = None,
    error_class: str | None = None,
) -> WindowVisited:
    """A record.

    Args:
        strategy: The strategy's name.
        view: What it was shown.
        plan: What it planned.
        gone: Indices of the messages that left.
        refusals: What could not leave; what the plan says, when it is not given.
        notice: What stands in their place, for a drop.
        summary: What stands there, for a fold.
        figures: Numbers beside the plan's own.
        refused_span: First and stop index of the messages whose summary was not smaller.
        error_class: What a summarizer raised.
    """
    refused = plan.refusals if refusals is None else refusals
    # The place is taken behind the planned span: a notice that was absorbed may lie further on.
    placed = notice is not None or summary is not None
    return WindowVisited(
        iteration=view.iteration,
        strategy=strategy,
        removed=gone,
        removed_messages=len(gone),
        refusals=refused[:_MOST_REFUSALS],
        refusals_more=max(0, len(refused) - _MOST_REFUSALS),
        dropped_observations=_observations(view, gone),
        pinned=plan.pinned,
        yielded=plan.yielded,
        stand_down=view.stand_down,
        figures=_figures(view, plan, gone, placed=placed) | dict(figures or {}),
        notice_after=view.turns[plan.remove[-1]].stop - 1 if placed else None,
        pressure=_pressure(plan, gone),
        refused_span=refused_span,
        error_class=error_class,
        notice=msgspec.UNSET if notice is None else notice,
        summary=msgspec.UNSET if summary is None else summary,
    )


def messages_of(view: WindowView, plan: WindowPlan) -> tuple[int, ...]:
    """Indices of the messages of the planned turns."""
    turns = view.turns
    return tuple(i for index in plan.remove for i in range(turns[index].first, turns[index].stop))


def chars_of(view: WindowView, gone: Sequence[int]) -> int:
    """Characters of the texts of messages."""
    return sum(len(view.messages[i].text) for i in gone)


def _figures(view: WindowView, plan: WindowPlan, gone: tuple[int, ...], *, placed: bool) -> dict[str, Figure]:
    figures = dict(plan.figures)
    if "turns_before" in figures:
        left = sum(view.messages[i].role != "tool" for i in gone)
        figures["turns_after"] = view.turn_count - left + placed
    return figures


def _pressure(plan: WindowPlan, gone: tuple[int, ...]) -> TokenPressure | None:
    if plan.pressure is None or gone:
        return plan.pressure
    return msgspec.structs.replace(plan.pressure, action="none")


def _opens_with_user(view: WindowView, plan: WindowPlan) -> bool:
    """Whether what is left begins with a user message, as providers demand."""
    first = 0 if plan.remove[0] > 0 else plan.remove[-1] + 1
    return first < len(view.turns) and isinstance(view.opens(view.turns[first]), UserMessage)


def _notice(strategy: str, view: WindowView, plan: WindowPlan, gone: tuple[int, ...]) -> str | None:
    """What tells the model that messages left, when the removal reaches the front and it is worth it."""
    before = range(plan.remove[0])
    request = current_request(view)
    if any(index != request for index in before):
        return None
    opening = "The request above is kept. " if before else ""
    # A model can ask for a tool that does not exist, by a name that is a sentence.
    spoken = [name for name in _observations(view, gone) if TOOL_NAME.fullmatch(name)]
    text = (
        f"[{opening}{len(gone)} earlier messages of this conversation were left out here by {strategy} to "
        f"keep it short. Tools whose results left: {', '.join(spoken) or 'none'}. Call a tool again if you "
        "need its result.]"
    )
    return text if len(text) < chars_of(view, gone) else None


def _with_the_notice_before(view: WindowView, gone: tuple[int, ...]) -> tuple[int, ...]:
    """The messages that leave and an earlier notice outside of them, so that there is only ever one."""
    earlier = {
        turn.first
        for turn in view.turns
        if isinstance(message := view.opens(turn), UserMessage) and message.kind == "notice"
    }
    return gone if earlier <= set(gone) else tuple(sorted(earlier.union(gone)))


def _observations(view: WindowView, gone: Sequence[int]) -> tuple[str, ...]:
    names = (getattr(view.messages[i], "tool_name", None) for i in gone)
    return tuple(dict.fromkeys(name for name in names if name))
