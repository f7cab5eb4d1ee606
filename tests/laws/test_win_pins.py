"""The latest result of a tool is kept, up to a number, and lets go when it alone holds the window."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import Agent, BuilderError, ToolMessage, sliding_window
from footprint_core.providers import Completed, Scripted, reply
from windows import Plans, Told, asks


def said(*tools: str) -> list[Completed]:
    """One call of each tool, in turn, then an answer."""
    return [*(asks(number, name) for number, name in enumerate(tools, 1)), reply(text="done")]


def results(told: Told) -> list[str]:
    """The results of the last request, by tool and page."""
    return [
        f"{m.tool_name} {m.call_id.split('-')[0]}"
        for m in told.model.requests[-1].messages
        if isinstance(m, ToolMessage)
    ]


def sliding(*tools: str, pins: Any, keep: int = 1) -> Told:
    return Told(said(*tools), sliding_window(keep_recent_turns=keep), pins=pins).go()


def test_two_tools_are_pinned_unless_it_is_said() -> None:
    builder = Agent.create(provider=Scripted([]), model="m", name="n")
    assert builder.spec().keep_last_tool_results == 2


def test_the_latest_result_of_so_many_tools_is_kept_outside_the_recent_turns() -> None:
    keeping = sliding_window(keep_recent_turns=1)

    def kept(pins: int) -> Told:
        late = Plans(lambda view: keeping.plan(view) if view.turn_count == 7 else None)
        return Told(said("read", "read", "peek", "tap", "tap", "read"), late, pins=pins).go()

    # Earlier results of a tool that was asked again are pinned by none, and the newest come first.
    assert {pins: results(kept(pins)) for pins in (0, 1, 2)} == {
        0: ["read 6"],
        1: ["tap 5", "read 6"],
        2: ["peek 3", "tap 4", "tap 5", "read 6"],
    }
    assert [kept(pins).visits[0].pinned for pins in (0, 1, 2)] == [(), ("tap",), ("tap", "peek")]


def test_what_asked_for_a_pin_beyond_the_number_yields_and_is_counted() -> None:
    told = sliding("peek", "tap", "read", "read", pins=1)
    assert [(visit.pinned, visit.yielded) for visit in told.visits] == [
        ((), 0),
        (("peek",), 0),
        (("tap",), 1),
        (("tap",), 0),
    ]


@pytest.mark.parametrize("off", [False, 0])
def test_switched_off_nothing_is_pinned_and_nothing_said_of_it(off: Any) -> None:
    told = sliding("peek", "tap", "read", "read", pins=off)
    assert {(visit.pinned, visit.yielded, visit.stand_down) for visit in told.visits} == {((), 0, False)}
    assert "last-tool-result" not in {one.reason for visit in told.visits for one in visit.refusals}
    assert results(told) == ["read 4"]


@pytest.mark.parametrize("wrong", [-1, True, 1.5, "2", None])
def test_a_number_of_pins_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(BuilderError, match="keep_last_tool_results"):
        Agent.create(provider=Scripted([]), model="m", name="n", keep_last_tool_results=wrong)


def test_results_of_an_earlier_request_and_recent_ones_ask_for_no_pin() -> None:
    replies = [*said("peek", "tap"), *said("read", "read")]
    told = Told(replies, sliding_window(keep_recent_turns=2), pins=2).go("first", "second")
    assert told.visits[-1].pinned == ()
    assert results(told) == ["read 1", "read 2"]


def test_behind_two_visits_that_pins_alone_kept_from_removing_they_stand_down_for_one() -> None:
    told = sliding("peek", "tap", "read", "read", "read", pins=2)
    assert [(v.iteration, v.removed_messages > 0, v.pinned, v.stand_down) for v in told.visits] == [
        (2, False, (), False),
        (3, False, ("peek",), False),
        (4, False, ("tap", "peek"), False),
        (5, True, (), True),
        (6, True, (), False),
    ]
    assert "last-tool-result" not in {one.reason for one in told.visits[3].refusals}
    # It held for one visit: what is latest now is pinned again when it asks.
    again = sliding("peek", "tap", "read", "peek", "read", "read", pins=2)
    assert [v.stand_down for v in again.visits] == [False, False, False, True, False, False]
    assert again.visits[-1].pinned == ("peek",)


def test_a_visit_that_removed_something_or_named_another_reason_does_not_count_for_it() -> None:
    # Held, moved, held, held: only the last two are in a row.
    told = sliding("peek", "read", "read", "tap", "tap", pins=2)
    held = [not v.removed and "last-tool-result" in {one.reason for one in v.refusals} for v in told.visits]
    assert any(v.removed for v in told.visits)
    for number, visit in enumerate(told.visits):
        assert visit.stand_down == (number >= 2 and held[number - 2] and held[number - 1])
    # Nothing removed, and no pin in the way: the request alone refuses.
    idle = Told(said("tap", "tap", "tap", "tap"), sliding_window(keep_recent_turns=4), pins=2).go()
    assert not any(v.stand_down for v in idle.visits)


def test_a_strategy_is_shown_whether_pins_stand_down() -> None:
    shown: list[tuple[int, bool]] = []
    keeping = sliding_window(keep_recent_turns=1)

    def plans(view: Any) -> Any:
        shown.append((view.iteration, view.stand_down))
        return keeping.plan(view)

    Told(said("peek", "tap", "read", "read", "read"), Plans(plans), pins=2).go()
    assert [iteration for iteration, down in shown if down] == [5]
