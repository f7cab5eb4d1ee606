"""What may leave the window, and what is left in its place. No strategy can pass these guards.

Refusal reasons are a closed set: `system-envelope`, `current-request`, `unresolved-tool-call`,
`paused-tool`, `pending-check-in`, `inside-keep-window`, `last-tool-result`, `only-existing-summary`,
`summarizer-failed`, `replacement-not-smaller`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from footprint_core.errors import RunError
from footprint_core.facts import Refusal, WindowVisited
from footprint_core.messages import AssistantMessage, UserMessage
from footprint_core.window.strategy import WindowPlan, WindowTurn, WindowView

_MOST_REFUSALS = 32


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The turns that may leave, oldest first, and those met on the way that may not."""

    remove: tuple[int, ...]
    refusals: tuple[Refusal, ...]
    pinned: tuple[str, ...]
    yielded: int


def oldest_span(view: WindowView, *, keep_recent_turns: int) -> Span:
    """The first removable turn outside the recent ones, and the removable turns that follow it.

    A refusing turn in front is stepped over; one in the middle ends the span.
    """
    turns = view.turns
    old = max(0, len(turns) - keep_recent_turns)
    request = current_request(view)
    held, yielded = ({}, 0) if view.stand_down else pinned(view, old)
    remove: list[int] = []
    refusals: list[Refusal] = []
    met: list[str] = []
    for index in range(old):
        reason = _guard(view, index, request) or ("last-tool-result" if index in held else None)
        if reason is None:
            remove.append(index)
        elif remove:
            break
        else:
            refusals.append(_refusal(reason, index, turns))
            met.extend(held.get(index, ()) if reason == "last-tool-result" else ())
    refusals.extend(_refusal("inside-keep-window", index, turns) for index in range(old, len(turns)))
    return Span(remove=tuple(remove), refusals=tuple(refusals), pinned=tuple(met), yielded=yielded)


def _refusal(reason: str, index: int, turns: Sequence[WindowTurn]) -> Refusal:
    return Refusal(reason=reason, turn_index=index, message_index=turns[index].first)


def current_request(view: WindowView) -> int | None:
    """The turn that holds the message being answered; notices and instructions are no requests."""
    for index in range(len(view.turns) - 1, -1, -1):
        message = view.opens(view.turns[index])
        if isinstance(message, UserMessage) and message.kind == "request":
            return index
    return None


def _guard(view: WindowView, index: int, request: int | None) -> str | None:
    """Why a turn never leaves, or None."""
    if index == request:
        return "current-request"
    turn = view.turns[index]
    message = view.opens(turn)
    if isinstance(message, AssistantMessage) and len(message.calls) > turn.stop - turn.first - 1:
        return "unresolved-tool-call"
    return None


def pinned(view: WindowView, old: int) -> tuple[dict[int, list[str]], int]:
    """Turns outside the recent ones that hold the latest result of a tool, and how many more there were."""
    latest: dict[str, int] = {}
    for index, turn in enumerate(view.turns):
        for result in view.results(turn):
            latest[result.tool_name] = index
    outside = sorted(
        ((index, name) for name, index in latest.items() if index < old), key=lambda pair: -pair[0]
    )
    held: dict[int, list[str]] = {}
    for index, name in outside[: view.keep_last_tool_results]:
        held.setdefault(index, []).append(name)
    return held, max(0, len(outside) - view.keep_last_tool_results)


def visited(strategy: str, view: WindowView, plan: WindowPlan) -> WindowVisited:
    """The record of a visit: the plan as far as the guards let it.

    A plan that would drop the current request, or part a call from its result, removes nothing.
    """
    request = current_request(view)
    turns = view.turns
    if not _is_span(plan.remove, len(turns)):
        raise RunError(
            f"The window strategy {strategy} planned to remove turns that are no span of the window; plan "
            "ascending indices without gaps."
        )
    broken = [
        _refusal(reason, index, turns)
        for index in plan.remove
        if (reason := _guard(view, index, request)) is not None
    ]
    if broken:
        return _record(strategy, view, plan, (), refusals=(*broken, *plan.refusals))
    messages = tuple(i for index in plan.remove for i in range(turns[index].first, turns[index].stop))
    if not messages:
        return _record(strategy, view, plan, (), refusals=plan.refusals)
    left = [turn for index, turn in enumerate(turns) if index not in set(plan.remove)]
    opens_with_user = bool(left) and isinstance(view.opens(left[0]), UserMessage)
    notice = _notice(strategy, view, plan, messages, request)
    if notice is None and not opens_with_user:
        refusal = _refusal("replacement-not-smaller", plan.remove[0], turns)
        return _record(strategy, view, plan, (), refusals=(*plan.refusals, refusal))
    return _record(strategy, view, plan, messages, refusals=plan.refusals, notice=notice)


def _is_span(remove: tuple[int, ...], turns: int) -> bool:
    """Whether indices name turns that are there and follow one another."""
    if not remove:
        return True
    return (
        remove == tuple(range(remove[0], remove[0] + len(remove))) and remove[0] >= 0 and remove[-1] < turns
    )


def _notice(
    strategy: str, view: WindowView, plan: WindowPlan, gone: tuple[int, ...], request: int | None
) -> str | None:
    """What tells the model that messages left, when the removal reaches the front and it is worth it."""
    before = range(plan.remove[0])
    kept_request = request is not None and request in before
    if any(index != request for index in before):
        return None
    names = ", ".join(_observations(view, gone)) or "none"
    opening = "The request above is kept. " if kept_request else ""
    text = (
        f"[{opening}{len(gone)} earlier messages of this conversation were left out here by {strategy} to "
        f"keep it short. Tools whose results left: {names}. Call a tool again if you need its result.]"
    )
    return text if len(text) < sum(len(view.messages[i].text) for i in gone) else None


def _observations(view: WindowView, gone: Sequence[int]) -> tuple[str, ...]:
    names = (getattr(view.messages[i], "tool_name", None) for i in gone)
    return tuple(dict.fromkeys(name for name in names if name))


def _record(
    strategy: str,
    view: WindowView,
    plan: WindowPlan,
    gone: tuple[int, ...],
    *,
    refusals: tuple[Refusal, ...],
    notice: str | None = None,
) -> WindowVisited:
    removed_turns = len(plan.remove) if gone else 0
    after = view.turn_count - removed_turns + (notice is not None)
    return WindowVisited(
        iteration=view.iteration,
        strategy=strategy,
        removed=gone,
        removed_messages=len(gone),
        refusals=refusals[:_MOST_REFUSALS],
        refusals_more=max(0, len(refusals) - _MOST_REFUSALS),
        dropped_observations=_observations(view, gone),
        pinned=plan.pinned,
        yielded=plan.yielded,
        stand_down=view.stand_down,
        figures={**plan.figures, "turns_before": view.turn_count, "turns_after": after},
        notice_after=gone[-1] if notice is not None else None,
        notice=msgspec.UNSET if notice is None else notice,
    )
