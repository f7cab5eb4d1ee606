"""When each strategy engages, what it has to be told, and what a strategy may answer."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    BuilderError,
    RunError,
    WindowPlan,
    WindowStrategy,
    WindowView,
    allow,
    ask,
    deny,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.facts import Usage
from footprint_core.providers import Scripted, reply
from windows import Plans, Told, kinds, reading

WRONG = [0, -1, True, False, 1.0, 2.5, "3", None, [3]]


@pytest.mark.parametrize("keep", [1, 2, 3, 6])
def test_a_sliding_window_engages_above_its_number_of_turns(keep: int) -> None:
    told = Told(reading(5), sliding_window(keep_recent_turns=keep)).go()
    # One turn at the first call, one more with each page.
    assert [visit.iteration for visit in told.visits] == [n for n in range(1, 7) if n > keep]


def test_how_many_turns_it_keeps_has_to_be_said() -> None:
    factory: Any = sliding_window
    with pytest.raises(TypeError, match="keep_recent_turns"):
        factory()
    with pytest.raises(TypeError):
        factory(3)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_number_that_is_none_is_refused_by_the_factory(wrong: Any) -> None:
    makes: list[Any] = [
        lambda: sliding_window(keep_recent_turns=wrong),
        lambda: token_budget(threshold_tokens=wrong),
        lambda: token_budget(threshold_tokens=1, keep_recent_turns=wrong),
        lambda: summarize_oldest(threshold_tokens=wrong, summarizer=Scripted([]), model="m"),
        lambda: summarize_oldest(
            threshold_tokens=1, keep_recent_turns=wrong, summarizer=Scripted([]), model="m"
        ),
    ]
    for make in makes:
        with pytest.raises(BuilderError, match="whole number of at least 1"):
            make()


def _token_strategies(tokens: int, keep: int) -> dict[str, Any]:
    return {
        "budget": token_budget(threshold_tokens=tokens, keep_recent_turns=keep),
        "summary": summarize_oldest(
            threshold_tokens=tokens,
            keep_recent_turns=keep,
            summarizer=Scripted([reply(text="short")] * 9),
            model="small",
        ),
    }


@pytest.mark.parametrize("name", ["budget", "summary"])
@pytest.mark.parametrize(("read", "engages"), [(999, False), (1000, False), (1001, True), (10**9, True)])
def test_a_token_strategy_engages_when_the_last_call_read_more_than_its_threshold(
    name: str, read: int, engages: bool
) -> None:
    told = Told(reading(2, tokens=read), _token_strategies(1000, 1)[name]).go()
    assert [visit.iteration for visit in told.visits] == ([2, 3] if engages else [])
    for visit in told.visits:
        assert visit.figures["measured_tokens"] == read
        assert visit.figures["threshold_tokens"] == 1000
        assert visit.figures["over_budget"] is True
    # What was written does not count.
    wrote = [reply(calls=one.tool_calls, usage=Usage(input=10, output=10**6)) for one in reading(2)[:2]]
    assert Told([*wrote, reply(text="done")], _token_strategies(1000, 1)[name]).go().visits == []


def test_six_recent_turns_are_kept_by_a_token_strategy_unless_it_is_said() -> None:
    assert token_budget(threshold_tokens=1).keep_recent_turns == 6
    assert summarize_oldest(threshold_tokens=1, summarizer=Scripted([]), model="m").keep_recent_turns == 6
    told = Told(reading(8, tokens=99), token_budget(threshold_tokens=1)).go()
    # The request and seven pages before one page leaves.
    assert next(visit.iteration for visit in told.visits if visit.removed) == 8


def test_a_summary_stands_where_the_removed_turns_stood() -> None:
    told = Told(reading(3, tokens=1001), _token_strategies(1000, 1)["summary"]).go()
    assert [kinds(told.model, n) for n in range(4)] == [
        ["request"],
        ["request", "assistant", "tool"],
        ["request", "summary", "assistant", "tool"],
        ["request", "summary", "assistant", "tool"],
    ]
    assert [visit.removed_messages for visit in told.visits] == [0, 2, 3]


@pytest.mark.parametrize("missing", ["summarizer", "model", "threshold_tokens"])
def test_a_summarizer_and_its_model_have_to_be_said(missing: str) -> None:
    factory: Any = summarize_oldest
    given = {"threshold_tokens": 1, "summarizer": Scripted([]), "model": "small"}
    with pytest.raises(TypeError, match=missing):
        factory(**{name: value for name, value in given.items() if name != missing})


@pytest.mark.parametrize("answer", [allow(), deny("no"), ask("may I?"), allow({"remove": (0,)}, why="x")])
def test_a_strategy_answers_with_no_verb(answer: Any) -> None:
    told = Told(reading(1), Plans(lambda _: answer))
    with pytest.raises(RunError, match=f"own planned {type(answer).__name__}"):
        told.go()
    assert told.model.requests == []
    assert told.agent.last_run_id is not None
    assert told.ledger.decisions(told.agent.last_run_id) == ()


def test_a_strategy_of_ones_own_plans_and_the_record_says_what_it_planned() -> None:
    class EveryOther:
        """Lets the second turn go at every other call."""

        name = "every-other"

        def plan(self, view: WindowView, /) -> WindowPlan | None:
            if view.iteration % 2:
                return None
            remove = (1,) if view.turn_count > 1 else ()
            return WindowPlan(remove=remove, figures={"seen": view.turn_count})

    strategy: WindowStrategy = EveryOther()
    told = Told(reading(4), strategy).go()
    assert [(v.strategy, v.iteration, v.removed, v.figures) for v in told.visits] == [
        ("every-other", 2, (1, 2), {"seen": 2}),
        # Turn 1 is the notice of the first time by then.
        ("every-other", 4, (1,), {"seen": 4}),
    ]
