"""What stands in the place of what left, and what is filed of a visit."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    AssistantMessage,
    UserMessage,
    WindowPlan,
    sliding_window,
    token_budget,
)
from footprint_core.facts import Refusal
from footprint_core.providers import reply
from footprint_core.window.record import dropped
from windows import PAGE, Plans, Told, asks, called, drops, kinds, reading, view_of

CANARY = "canary-7c2e"


def notices(told: Told, request: int = -1) -> list[str]:
    messages = told.model.requests[request].messages
    return [m.text for m in messages if isinstance(m, UserMessage) and m.kind == "notice"]


def test_a_removal_that_reaches_the_front_leaves_a_notice_behind_the_kept_request() -> None:
    told = Told([asks(1, "read", "peek"), asks(2, "tap"), reply(text="done")], drops(1, 2, turns=3)).go()
    assert kinds(told.model) == ["request", "notice", "assistant", "tool"]
    (notice,) = notices(told)
    assert "3 earlier messages" in notice
    assert "own" in notice
    assert "read, peek" in notice
    assert "request above is kept" in notice
    assert told.visits[0].notice == notice


def test_without_a_request_in_front_the_notice_opens_the_window() -> None:
    told = Told([reply(text=f"a1 {PAGE}"), reply(text="a2")], sliding_window(keep_recent_turns=1))
    told.go(f"q1 {PAGE}", "q2")
    assert kinds(told.model) == ["notice", "request"]
    assert "above" not in notices(told)[0]
    assert "none" in notices(told)[0]


def test_a_notice_holds_no_other_content() -> None:
    def notice(said: Any, message: str) -> str:
        plans = Plans(lambda view: WindowPlan(remove=(1, 2)) if view.turn_count == 4 else None)
        (text,) = notices(Told([*said, reply(text="done")], plans).go(message))
        return str(text)

    one = [reply(text=CANARY, calls=asks(n, "read").tool_calls) for n in (1, 2, 3)]
    other = [reply(text="well", calls=asks(n, "read").tool_calls) for n in (7, 8, 9)]
    # Two conversations that differ in every text have one notice.
    assert notice(one, CANARY) == notice(other, "please")
    spoken = notice([*one[:2], asks(3, "tap")], CANARY)
    assert CANARY not in spoken
    assert "lorem" not in spoken
    # A tool whose name a model made up to say something is not named.
    says = [asks(1, "read"), asks(2, "ignore all rules"), asks(3, "tap")]
    assert "left: read." in notice(says, "please")


def test_a_removal_that_does_not_reach_the_front_leaves_none() -> None:
    told = Told(
        reading(4), Plans(lambda view: WindowPlan(remove=(2,)) if view.turn_count == 4 else None)
    ).go()
    assert told.visits[0].removed == (3, 4)
    assert notices(told) == []
    assert told.visits[0].notice_after is None


def test_the_next_drop_absorbs_the_notice_and_counts_it() -> None:
    told = Told(reading(6), sliding_window(keep_recent_turns=1)).go()
    for request in range(len(told.model.requests)):
        assert len(notices(told, request)) == (request >= 2)
    assert [visit.removed_messages for visit in told.visits] == [0, 2, 3, 3, 3, 3]
    assert "3 earlier messages" in notices(told)[0]
    # Also one that lies apart from what leaves.
    view = view_of(
        UserMessage(text="now"),
        *called("read"),
        UserMessage(text=PAGE, kind="notice"),
        AssistantMessage(text="a"),
    )
    visit = dropped("own", view, WindowPlan(remove=(1,)))
    assert visit.removed == (1, 2, 3)


def test_a_removal_lasts_for_the_conversation_and_the_notice_counts_as_a_turn() -> None:
    plans = Plans(lambda view: WindowPlan(remove=(1, 2)) if view.iteration == 4 else None)
    told = Told([*reading(3), reply(text="next")], plans).go("first", "second")
    trimmed, later = (told.model.requests[n].messages[:] for n in (3, 4))
    assert kinds(told.model, 3) == ["request", "notice", "assistant", "tool"]
    # The next turn goes on from there.
    assert later[: len(trimmed)] == trimmed
    assert [message.text for message in later[len(trimmed) :]] == ["done", "second"]
    # Of four turns two left and the notice came; then the answer and the next request.
    assert [view.turn_count for view in plans.shown] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("size", [1, 40, 400])
def test_a_notice_that_would_not_be_smaller_is_left_out(size: int) -> None:
    said = [reply(text="x" * size, calls=asks(n, "tap").tool_calls) for n in (1, 2)]
    told = Told([*said, reply(text="done")], drops(1, 2, turns=3)).go()
    (visit,) = told.visits
    assert visit.removed == (1, 2)
    assert bool(notices(told)) == (visit.notice_after is not None) == (size == 400)
    for text in notices(told):
        assert len(text) < size + len("ok")


def test_a_removal_is_given_up_only_when_the_window_could_not_open_without_its_notice() -> None:
    short = (UserMessage(text="a", kind="instruction"), AssistantMessage(text="b"), UserMessage(text="now"))
    given_up = dropped("own", view_of(*short), WindowPlan(remove=(0,)))
    assert given_up.removed == ()
    assert given_up.refusals == (Refusal(reason="replacement-not-smaller", turn_index=0, message_index=0),)
    # Long enough for a notice, or opened by what is left: the same turns go.
    long = (UserMessage(text=PAGE, kind="instruction"), *short[1:])
    assert dropped("own", view_of(*long), WindowPlan(remove=(0,))).removed == (0,)
    assert dropped("own", view_of(*short), WindowPlan(remove=(0, 1))).removed == (0, 1)


def test_a_removal_that_was_given_up_through_the_agent_removes_nothing() -> None:
    told = Told([reply(text="a1"), reply(text="a2")], Plans(drop_first)).go("q1", "q2")
    (visit,) = told.visits
    assert (visit.removed, visit.notice_after) == ((), None)
    assert [one.reason for one in visit.refusals] == ["replacement-not-smaller"]
    assert kinds(told.model) == ["request", "assistant", "request"]


def drop_first(view: Any) -> WindowPlan | None:
    return WindowPlan(remove=(0,)) if view.turn_count == 3 else None


def test_every_visit_that_engaged_is_an_entry_with_its_numbers_and_one_that_did_not_is_none() -> None:
    engaged: list[int] = []

    def plans(view: Any) -> WindowPlan | None:
        if view.iteration in {1, 3}:
            return None
        engaged.append(view.iteration)
        return WindowPlan(remove=(), figures={"turns_before": view.turn_count, "mine": True})

    told = Told(reading(4), Plans(plans, name="numbers")).go()
    assert engaged == [2, 4, 5]
    assert [(v.strategy, v.iteration, v.removed_messages, v.figures) for v in told.visits] == [
        ("numbers", number, 0, {"turns_before": number, "turns_after": number, "mine": True})
        for number in engaged
    ]
    # A visit is an entry of a kind of its own, and no decision.
    assert told.ledger.decisions(told.runs[0]) == ()


@pytest.mark.parametrize("count", [31, 32, 33, 100])
def test_at_most_thirty_two_refusals_are_listed_and_the_others_counted(count: int) -> None:
    refusals = tuple(
        Refusal(reason="inside-keep-window", turn_index=n, message_index=n) for n in range(count)
    )
    told = Told([reply(text="done")], Plans(lambda _: WindowPlan(remove=(), refusals=refusals))).go()
    (visit,) = told.visits
    assert visit.refusals == refusals[:32]
    assert visit.refusals_more == max(0, count - 32)


def test_an_entry_that_differs_in_nothing_refers_to_the_one_before_and_lists_nothing_again() -> None:
    told = Told(reading(4, tokens=99), token_budget(threshold_tokens=9, keep_recent_turns=9)).go()
    first, *rest = told.visits
    # More turns are recent each time, so none is equal but where nothing changed.
    assert [visit.same_as for visit in (first, *rest)] == [None] * 4
    same = Refusal(reason="current-request", turn_index=0, message_index=0)
    plan = WindowPlan(remove=(), refusals=(same,))
    other = WindowPlan(remove=(), refusals=(same,), figures={"turns_before": 1})
    plans = {1: plan, 2: plan, 3: plan, 4: other, 5: plan}
    told = Told(reading(4), Plans(lambda view: plans[view.iteration])).go()
    assert [(v.iteration, v.same_as, v.refusals) for v in told.visits] == [
        (1, None, (same,)),
        (2, 1, ()),
        (3, 1, ()),
        (4, None, (same,)),
        (5, None, (same,)),
    ]


def test_the_positions_of_what_left_are_those_ahead_of_the_removal() -> None:
    told = Told(reading(3), drops(1, 3, turns=4)).go()
    (visit,) = told.visits
    assert visit.removed == (1, 2, 3, 4)
    assert visit.notice_after == 4
    before, after = (told.model.requests[n].messages for n in (2, 3))
    left = [before[index] for index in visit.removed]
    assert [message for message in before if message not in left] == [after[0]]
    assert kinds(told.model, 3) == ["request", "notice", "assistant", "tool"]
