"""What may leave the window: the guards no strategy can pass, and the span that is taken."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from footprint_core.facts import Refusal, RefusalReason
from footprint_core.messages import AssistantMessage, UserMessage
from footprint_core.window.strategy import WindowPlan, WindowTurn, WindowView


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The turns that may leave, oldest first, those met on the way that may not, and what is pinned."""

    remove: tuple[int, ...]
    refusals: tuple[Refusal, ...]
    pinned: tuple[str, ...]
    yielded: int


def oldest_span(view: WindowView, *, keep_recent_turns: int, folding: bool = False) -> Span:
    """The first removable turn outside the recent ones, and the removable turns that follow it.

    A refusing turn in front is stepped over; one in the middle ends the span. Where the span would be
    folded, one that is nothing but an earlier summary stays as it is.
    """
    turns = view.turns
    old = max(0, len(turns) - keep_recent_turns)
    request = current_request(view)
    held, yielded = pins(view, old, request)
    remove: list[int] = []
    refusals: list[Refusal] = []
    for index in range(old):
        reason = guard(view, index, request) or ("last-tool-result" if index in held else None)
        if reason is None:
            remove.append(index)
            continue
        refusals.append(refusal(reason, index, turns))
        if remove:
            break
    if folding and len(remove) == 1 and _is_summary(view, remove[0]):
        refusals.append(refusal("only-existing-summary", remove[0], turns))
        remove.clear()
    refusals.extend(refusal("inside-keep-window", index, turns) for index in range(old, len(turns)))
    names = tuple(name for names in held.values() for name in names)
    return Span(remove=tuple(remove), refusals=tuple(refusals), pinned=names, yielded=yielded)


def refusal(reason: RefusalReason, index: int, turns: Sequence[WindowTurn]) -> Refusal:
    """A turn that does not leave."""
    return Refusal(reason=reason, turn_index=index, message_index=turns[index].first)


def current_request(view: WindowView) -> int | None:
    """The turn that holds the message being answered; notices, summaries and instructions are none."""
    for index in range(len(view.turns) - 1, -1, -1):
        message = view.opens(view.turns[index])
        if isinstance(message, UserMessage) and message.kind == "request":
            return index
    return None


def guard(view: WindowView, index: int, request: int | None) -> RefusalReason | None:
    """Why a turn never leaves, or None."""
    if index == request:
        return "current-request"
    turn = view.turns[index]
    message = view.opens(turn)
    if isinstance(message, AssistantMessage) and len(message.calls) > turn.stop - turn.first - 1:
        return "unresolved-tool-call"
    return None


def guarded(view: WindowView, plan: WindowPlan) -> tuple[Refusal, ...]:
    """The turns of a plan that never leave; with one of them, none of it does."""
    request = current_request(view)
    return tuple(
        refusal(reason, index, view.turns)
        for index in plan.remove
        if (reason := guard(view, index, request)) is not None
    )


def pins(view: WindowView, old: int, request: int | None) -> tuple[dict[int, tuple[str, ...]], int]:
    """The turns that are pinned, newest first, each with its tools, and how many more asked for it.

    A turn asks when it holds the latest result of a tool, came behind the current request and is none of
    the recent ones, which stay anyway.
    """
    if view.stand_down or view.keep_last_tool_results <= 0:
        return {}, 0
    latest: dict[str, int] = {}
    for index in range(0 if request is None else request + 1, len(view.turns)):
        for result in view.results(view.turns[index]):
            latest[result.tool_name] = index
    by_turn: dict[int, tuple[str, ...]] = {}
    for name, index in latest.items():
        if index < old:
            by_turn[index] = (*by_turn.get(index, ()), name)
    newest = sorted(by_turn, reverse=True)
    held = newest[: view.keep_last_tool_results]
    return {index: by_turn[index] for index in held}, len(newest) - len(held)


def _is_summary(view: WindowView, index: int) -> bool:
    message = view.opens(view.turns[index])
    return isinstance(message, UserMessage) and message.kind == "summary"
