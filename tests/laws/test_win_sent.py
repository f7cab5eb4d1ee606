"""A window edits what is sent, once before each model call, and nothing that is on record."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from footprint_core import (
    LOOP_MOMENTS,
    ActOptions,
    ToolMessage,
    WindowPlan,
    WindowView,
    after_tool,
    allow,
    before_tool,
    on_message,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.events import (
    ContextEvicted,
    IterationStarted,
    ModelCallStarted,
    SlotComposed,
    ToolsOffered,
)
from footprint_core.facts import WindowVisited
from footprint_core.providers import Scripted, call, reply
from ruled import wire
from story import answered, describe, facts_of, run
from windows import PAGE, Plans, Told, asks, drops, kinds, reading, texts


def test_the_entries_and_rows_of_turns_that_left_stay_as_they_were() -> None:
    copies: list[tuple[str, list[bytes]]] = []

    def keeps(view: WindowView) -> WindowPlan | None:
        run_id = told.agent.last_run_id
        assert run_id is not None
        copies.append((run_id, [msgspec.json.encode(e.fact) for e in told.ledger.entries(run_id)]))
        return WindowPlan(remove=(1,)) if view.turn_count > 2 else None

    told = Told([*reading(3), *reading(2, tool="peek")], Plans(keeps))
    told.go("first", "second")
    assert sum(visit.removed_messages for visit in told.visits) > 6
    for run_id, copied in copies:
        now = [msgspec.json.encode(entry.fact) for entry in told.ledger.entries(run_id)]
        assert now[: len(copied)] == copied
    # What the model no longer reads is in the ledger.
    assert "page 1" not in texts(told.model.requests[-1])
    assert any(b"page 1" in line for line in copies[-1][1] + copies[3][1])


def test_the_rows_are_those_of_the_same_run_without_a_window() -> None:
    def rows(window: Any) -> list[dict[str, Any]]:
        act: ActOptions = {
            "input": [on_message("in")(lambda _: allow())],
            "before_tool": [before_tool("before")(lambda asked: allow(dict(asked.args), why="seen"))],
            "after_tool": [after_tool("after")(lambda ended: allow([ended.result], why="wrapped"))],
        }
        told = Told(reading(4), window, act=act).go()
        return [{**facts_of(row), "position": 0} for row in told.ledger.decisions(told.runs[0])]

    plain = rows(None)
    assert len(plain) == 10
    assert rows(sliding_window(keep_recent_turns=1)) == plain
    # A window files no decision of its own, though it stands among the moments.
    assert "window" in LOOP_MOMENTS
    assert "window" not in {row["moment"] for row in plain}


def test_a_strategy_is_asked_once_an_iteration_ahead_of_the_context_and_the_call() -> None:
    marks: list[tuple[int, int]] = []
    asked = Plans(lambda view: marks.append((view.iteration, len(told.seen.events))))
    told: Told = Told(reading(2), asked)
    told.go()
    assert [iteration for iteration, _ in marks] == [1, 2, 3]
    for iteration, mark in marks:
        composing = (SlotComposed, IterationStarted, ModelCallStarted, ToolsOffered)
        for index, event in enumerate(told.seen.events):
            if isinstance(event, composing):
                assert (index >= mark) == (event.iteration >= iteration), event.type


class Never:
    """A schema nothing matches."""

    instruction = ""

    def check(self, value: Any, /) -> object:
        raise ValueError("never")


def test_a_retry_and_a_closing_call_are_iterations_like_any_other() -> None:
    asked = Plans()
    Told([asks(1, "tap"), asks(2, "tap"), reply(text="closed")], asked, max_iterations=2).go()
    assert [view.iteration for view in asked.shown] == [1, 2, 3]
    asked = Plans()
    builder, _ = describe([reply(text="no"), reply(text="no")])
    answered(run(builder.window(asked).output_schema(Never(), retries=1).build().run("go")))
    assert [view.iteration for view in asked.shown] == [1, 2]


def test_without_a_strategy_there_is_no_visit_and_the_request_is_the_same_byte_for_byte() -> None:
    said = [*reading(3), *reading(1)]
    without = Told(said).go("first", "second")
    idle = Told(said, Plans()).go("first", "second")
    assert without.visits == idle.visits == []
    assert [wire(request) for request in without.model.requests] == [
        wire(request) for request in idle.model.requests
    ]
    for told in (without, idle):
        assert not told.seen.of(ContextEvicted)
        assert "context.budget_pressure" not in told.seen.types
    kinds_of = [
        [type(e.fact).__name__ for run_id in told.runs for e in told.ledger.entries(run_id)]
        for told in (without, idle)
    ]
    assert kinds_of[0] == kinds_of[1]
    assert WindowVisited.__name__ not in kinds_of[0]


def test_a_turn_is_one_message_of_a_user_or_the_model_with_the_results_that_answer_it() -> None:
    asked = Plans()
    Told([asks(1, "read", "tap", "peek"), asks(2, "tap"), reply(text="done"), reply(text="bye")], asked).go(
        "a", "b"
    )
    spans = [[(turn.first, turn.stop) for turn in view.turns] for view in asked.shown]
    assert spans == [
        [(0, 1)],
        [(0, 1), (1, 5)],
        [(0, 1), (1, 5), (5, 7)],
        [(0, 1), (1, 5), (5, 7), (7, 8), (8, 9)],
    ]
    last = asked.shown[-1]
    assert [view.turn_count for view in asked.shown] == [len(view.turns) for view in asked.shown]
    assert [last.opens(turn).role for turn in last.turns] == [
        "user",
        "assistant",
        "assistant",
        "assistant",
        "user",
    ]
    assert [len(last.results(turn)) for turn in last.turns] == [0, 3, 1, 0, 0]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_batch_of_results_is_one_turn_and_leaves_whole(size: int) -> None:
    told = Told(
        [asks(1, *["read"] * size), asks(2, "tap"), reply(text="done")], sliding_window(keep_recent_turns=1)
    )
    told.go()
    (visit,) = [visit for visit in told.visits if visit.removed]
    assert visit.removed == tuple(range(1, 2 + size))
    assert [m.tool_name for m in told.model.requests[-1].messages if isinstance(m, ToolMessage)] == ["tap"]


def test_each_message_that_left_is_told_once_ahead_of_the_context_of_its_iteration() -> None:
    told = Told([asks(1, "read", "peek"), asks(2, "read"), reply(text="done")], drops(1, 2, turns=3)).go()
    evicted = told.seen.of(ContextEvicted)
    assert [(e.iteration, e.slot, e.reason) for e in evicted] == [(3, "messages", "budget")] * 3
    order = [
        e.type
        for e in told.seen.events
        if isinstance(e, ContextEvicted) or (isinstance(e, SlotComposed) and e.iteration == 3)
    ]
    assert order == ["context.evicted"] * 3 + ["context.slot_composed"] * 3
    # The context is composed of what is left.
    (composed,) = [e for e in told.seen.of(SlotComposed) if (e.iteration, e.slot) == (3, "messages")]
    assert composed.pieces == len(told.model.requests[2].messages) == 4
    assert composed.chars == len(texts(told.model.requests[2])) - 3
    assert PAGE not in repr(told.seen.events)


def _strategies() -> dict[str, Any]:
    return {
        "sliding": lambda: sliding_window(keep_recent_turns=2),
        "budget": lambda: token_budget(threshold_tokens=9, keep_recent_turns=1),
        "summary": lambda: summarize_oldest(
            threshold_tokens=9,
            keep_recent_turns=1,
            summarizer=Scripted([reply(text="short")] * 9),
            model="small",
        ),
        "own": lambda: drops(1, 3, turns=4),
    }


@pytest.mark.parametrize("make", _strategies().values(), ids=_strategies())
@pytest.mark.parametrize("pins", [0, 2])
def test_the_same_script_twice_gives_equal_entries_and_equal_requests(make: Any, pins: int) -> None:
    said = [asks(1, "read", "tap"), *reading(4), *reading(3, tool="peek")]
    first, second = (Told(said, make(), pins=pins).go("a", "b") for _ in range(2))
    assert first.visits == second.visits
    assert any(visit.removed for visit in first.visits)
    assert [wire(one) for one in first.model.requests] == [wire(one) for one in second.model.requests]
    assert len(kinds(first.model)) < 2 * len(said)


def test_calls_and_results_are_sent_together_or_not_at_all() -> None:
    told = Told(
        [asks(1, "read", "tap"), reply(calls=[call("x", "gone", {})]), *reading(3)], drops(1, 2, turns=3)
    )
    told.go()
    for request in told.model.requests:
        asked = [c.id for m in request.messages if m.role == "assistant" for c in getattr(m, "calls", ())]
        assert [m.call_id for m in request.messages if isinstance(m, ToolMessage)] == asked
