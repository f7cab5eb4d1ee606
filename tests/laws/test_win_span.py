"""Which turns leave, which refuse to and why, whatever a strategy plans."""

from __future__ import annotations

from typing import Any, Literal, get_args

import pytest

from footprint_core import (
    AssistantMessage,
    Fold,
    UserMessage,
    WindowPlan,
    WindowView,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.events import ContextEvicted
from footprint_core.facts import Refusal, RefusalReason
from footprint_core.providers import Scripted, reply
from footprint_core.window.engine import oldest_span
from footprint_core.window.record import dropped
from windows import PAGE, Plans, Told, asks, called, kinds, reading, view_of

Refused = tuple[str, int, int]


def told_of(refusals: tuple[Refusal, ...]) -> list[Refused]:
    return [(one.reason, one.turn_index, one.message_index) for one in refusals]


def test_the_span_steps_over_what_refuses_in_front_and_ends_where_one_refuses_behind() -> None:
    said = [
        asks(1, "peek"),
        asks(2, "read", "read"),
        asks(3, "read"),
        asks(4, "tap"),
        asks(5, "read"),
        asks(6, "read"),
        reply(text="done"),
    ]
    sliding = sliding_window(keep_recent_turns=1)
    late = Plans(lambda view: sliding.plan(view) if view.turn_count == 7 else None, name="late")
    told = Told(said, late, pins=2).go()
    (visit,) = told.visits
    # The request and the pinned turn 1 are stepped over; turn 4 ends the span, so that turn 5 stays.
    assert visit.removed == (3, 4, 5, 6, 7)
    assert told_of(visit.refusals) == [
        ("current-request", 0, 0),
        ("last-tool-result", 1, 1),
        ("last-tool-result", 4, 8),
        ("inside-keep-window", 6, 12),
    ]
    assert [m.text[:6] for m in told.model.requests[-1].messages if m.role == "tool"] == [
        "peek 1",
        "ok",
        "page 5",
        "page 6",
    ]


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
def test_every_recent_turn_is_a_refusal_of_its_own_behind_the_others(keep: int) -> None:
    told = Told(reading(4), sliding_window(keep_recent_turns=keep)).go()
    for visit in told.visits:
        if visit.same_as is None:
            reasons = [one.reason for one in visit.refusals]
            assert reasons[-keep:] == ["inside-keep-window"] * keep
            assert reasons.count("inside-keep-window") == keep


def test_the_reasons_are_a_closed_set() -> None:
    assert get_args(RefusalReason) == (
        "system-envelope",
        "current-request",
        "unresolved-tool-call",
        "paused-tool",
        "pending-check-in",
        "inside-keep-window",
        "last-tool-result",
        "only-existing-summary",
        "summarizer-failed",
        "replacement-not-smaller",
    )


@pytest.mark.parametrize("reason", get_args(RefusalReason))
def test_a_strategy_of_ones_own_names_reasons_of_that_set(reason: Any) -> None:
    refused = Refusal(reason=reason, turn_index=0, message_index=0)
    told = Told([reply(text="done")], Plans(lambda _: WindowPlan(remove=(), refusals=(refused,)))).go()
    assert told.visits[0].refusals == (refused,)


def test_of_several_reasons_the_first_is_named() -> None:
    # The latest result of its tool, in a turn with a call nobody answered.
    pinned = called("read", "tap", answered=1)
    view = view_of(UserMessage(text="now"), *pinned, AssistantMessage(text="a"), pins=2)
    span = oldest_span(view, keep_recent_turns=1)
    assert told_of(span.refusals)[:2] == [("current-request", 0, 0), ("unresolved-tool-call", 1, 1)]
    assert span.pinned == ("read",)
    view = view_of(UserMessage(text="now"), *called("read"), AssistantMessage(text="a"), pins=2)
    assert told_of(oldest_span(view, keep_recent_turns=1).refusals)[1] == ("last-tool-result", 1, 1)
    # Inside the recent turns, that alone is the reason.
    assert {one.reason for one in oldest_span(view, keep_recent_turns=3).refusals} == {"inside-keep-window"}


Kind = Literal["notice", "summary", "instruction"]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_what_the_product_says_in_a_users_place_is_not_the_request(kind: Kind) -> None:
    view = view_of(
        UserMessage(text=PAGE),
        AssistantMessage(text="a"),
        UserMessage(text="now"),
        UserMessage(text=PAGE, kind=kind),
        AssistantMessage(text="b"),
    )
    held = dropped("own", view, WindowPlan(remove=(2, 3)))
    assert (held.removed, told_of(held.refusals)) == ((), [("current-request", 2, 2)])
    assert 3 in dropped("own", view, WindowPlan(remove=(3,))).removed
    # The request that was answered before is one no longer.
    assert 0 in dropped("own", view, WindowPlan(remove=(0, 1))).removed


def _strategies() -> dict[str, Any]:
    return {
        "sliding": lambda: sliding_window(keep_recent_turns=1),
        "budget": lambda: token_budget(threshold_tokens=9, keep_recent_turns=1),
        "summary": lambda: summarize_oldest(
            threshold_tokens=9,
            keep_recent_turns=1,
            summarizer=Scripted([reply(text="short")] * 20),
            model="small",
        ),
        "greedy": lambda: Plans(lambda view: WindowPlan(remove=tuple(range(view.turn_count)))),
        "almost": lambda: Plans(lambda view: WindowPlan(remove=tuple(range(1, view.turn_count)))),
    }


@pytest.mark.parametrize("make", _strategies().values(), ids=_strategies())
def test_the_message_being_answered_is_in_every_request(make: Any) -> None:
    said = [*reading(5), *reading(4, tool="peek"), reply(text="bye")]
    told = Told(said, make(), max_iterations=20).go("first", "second", "third")
    for number, request in enumerate(told.model.requests):
        asked = ("first", "second", "third")[(number > 5) + (number > 10)]
        requests = [m.text for m in request.messages if isinstance(m, UserMessage) and m.kind == "request"]
        assert requests[-1] == asked
        assert request.messages[0].role == "user"


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_a_turn_with_an_unanswered_call_stays_and_so_does_all_of_the_plan(answered: int) -> None:
    batch = called("read", "read", "tap", answered=answered)
    view = view_of(UserMessage(text="old"), AssistantMessage(text=PAGE), *batch, UserMessage(text="now"))
    visit = dropped("own", view, WindowPlan(remove=(0, 1, 2)))
    assert (visit.removed, told_of(visit.refusals)) == ((), [("unresolved-tool-call", 2, 2)])
    assert oldest_span(view, keep_recent_turns=1).remove == (0, 1)
    whole = view_of(
        UserMessage(text="old"), AssistantMessage(text=PAGE), *called("read", "tap"), UserMessage(text="now")
    )
    assert dropped("own", whole, WindowPlan(remove=(0, 1, 2))).removed == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("remove", [(0,), (0, 1), (0, 1, 2)])
def test_a_plan_that_would_drop_the_request_is_refused_by_name_and_removes_nothing(
    remove: tuple[int, ...],
) -> None:
    told = Told(
        reading(3), Plans(lambda view: WindowPlan(remove=remove) if view.turn_count > 2 else None)
    ).go()
    for visit in told.visits:
        assert (visit.strategy, visit.removed, visit.removed_messages) == ("own", (), 0)
        if visit.same_as is None:
            assert told_of(visit.refusals)[0] == ("current-request", 0, 0)
    assert kinds(told.model) == ["request", *["assistant", "tool"] * 3]
    assert not told.seen.of(ContextEvicted)


def test_a_fold_that_would_drop_the_request_asks_no_summarizer() -> None:
    summarizer = Scripted([])
    fold = Fold(provider=summarizer, model="small", instruction="shorten")

    def folds(view: WindowView) -> WindowPlan | None:
        return WindowPlan(remove=(0, 1), fold=fold) if view.turn_count > 2 else None

    told = Told(reading(2), Plans(folds)).go()
    assert summarizer.requests == []
    assert [one.reason for one in told.visits[0].refusals] == ["current-request"]
    assert kinds(told.model) == ["request", "assistant", "tool", "assistant", "tool"]


def test_the_tools_whose_results_left_are_named_once_in_order_of_first_appearance() -> None:
    said = [asks(1, "tap", "peek", "tap"), asks(2, "read", "peek"), asks(3, "tap"), reply(text="done")]
    told = Told(said, Plans(lambda view: WindowPlan(remove=(1, 2)) if view.turn_count == 4 else None)).go()
    (visit,) = told.visits
    assert visit.removed_messages == 7
    assert visit.dropped_observations == ("tap", "peek", "read")


def test_a_visit_whose_messages_are_no_results_names_none() -> None:
    said = [reply(text=f"a1 {PAGE}"), reply(text="a2")]
    told = Told(said, sliding_window(keep_recent_turns=1)).go(f"q1 {PAGE}", "q2")
    (visit,) = told.visits
    assert (visit.removed_messages, visit.dropped_observations) == (2, ())
