"""A token budget counts what the provider reported, and guesses nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from footprint_core import (
    AskPause,
    BuilderError,
    CompactionUnmeasurableError,
    MemoryLedger,
    UserMessage,
    ask,
    before_tool,
    check_in_approved,
    token_budget,
)
from footprint_core.events import BudgetPressure, Event, ModelCallStarted
from footprint_core.facts import TokenPressure, Usage, WindowVisited
from footprint_core.providers import Completed, call, reply
from story import Seen, answered, describe, run

PAGE = "lorem ipsum dolor " * 80


def read(page: int) -> str:
    return f"{page} {PAGE}"


def reading(*tokens: int | None) -> list[Completed]:
    """One call of `read` per number of tokens read, then an answer."""
    calls = [
        reply(
            calls=[call(f"w{i}", "read", {"page": i})],
            usage=None if read is None else Usage(input=read, output=0 if read == 0 else 5),
        )
        for i, read in enumerate(tokens)
    ]
    return [*calls, reply(text="done")]


def visits_of(ledger: MemoryLedger, run_id: str | None) -> list[WindowVisited]:
    assert run_id is not None
    return [e.fact for e in ledger.entries(run_id) if isinstance(e.fact, WindowVisited)]


def story(replies: Sequence[Completed], *, keep: int = 1) -> tuple[Any, list[WindowVisited], Seen]:
    seen, ledger = Seen(), MemoryLedger()
    builder, model = describe(replies, read, watch=[seen], ledger=ledger)
    agent = builder.window(token_budget(threshold_tokens=1000, keep_recent_turns=keep)).build()
    outcome = answered(run(agent.run("go")))
    return model, visits_of(ledger, outcome.run_id), seen


def test_over_the_threshold_the_oldest_span_leaves_and_the_record_says_how_far_over() -> None:
    model, (visit,), seen = story(reading(200, 1000, 1001))
    assert visit.iteration == 4
    assert visit.removed == (1, 2, 3, 4)
    assert [(r.reason, r.turn_index) for r in visit.refusals] == [
        ("current-request", 0),
        ("inside-keep-window", 3),
    ]
    assert visit.figures == {
        "keep_recent_turns": 1,
        "measured_tokens": 1001,
        "threshold_tokens": 1000,
        "over_budget": True,
    }
    assert visit.pressure == TokenPressure(cap=1000, projected=1001, action="evict")
    (pressed,) = seen.of(BudgetPressure)
    assert (pressed.cap, pressed.projected, pressed.overflow_by, pressed.plan_action, pressed.unit) == (
        1000,
        1001,
        1,
        "evict",
        "tokens",
    )
    notice = model.requests[3].messages[1]
    assert isinstance(notice, UserMessage)
    assert notice.kind == "notice"
    assert "token-budget" in notice.text


def test_the_pressure_is_told_behind_what_left_and_ahead_of_the_call() -> None:
    _, _, seen = story(reading(200, 900, 1500))

    def kept(event: Event) -> bool:
        return event.type.startswith(("context.evicted", "context.budget")) or isinstance(
            event, ModelCallStarted
        )

    types = [e.type for e in seen.events if kept(e)]
    assert types[3:] == ["context.evicted"] * 4 + ["context.budget_pressure", "stream.llm_start"]


def test_a_window_that_cannot_shrink_says_so_and_the_run_goes_on() -> None:
    _, (visit,), seen = story(reading(5000))
    assert (visit.removed, visit.figures["over_budget"]) == ((), True)
    assert [e.plan_action for e in seen.of(BudgetPressure)] == ["none"]


def test_a_reading_of_an_earlier_turn_does_not_count() -> None:
    ledger = MemoryLedger()
    big = Usage(input=9000, output=5)
    builder, _ = describe([reply(text=PAGE, usage=big), reply(text="b", usage=big)], ledger=ledger)
    agent = builder.window(token_budget(threshold_tokens=1, keep_recent_turns=1)).build()

    async def two() -> str:
        await agent.run("a")
        return answered(await agent.follow_up("b")).run_id

    assert visits_of(ledger, run(two())) == []


@pytest.mark.parametrize("replies", [reading(None), reading(0), reading(200, 0)])
def test_a_provider_that_counts_nothing_ends_the_run_by_name(replies: list[Completed]) -> None:
    builder, model = describe(replies, read)
    agent = builder.window(token_budget(threshold_tokens=1000)).build()
    with pytest.raises(CompactionUnmeasurableError, match="scripted") as caught:
        run(agent.run("go"))
    assert caught.value.provider == "scripted"
    assert caught.value.run_id == agent.last_run_id
    assert len(model.requests) == len(replies) - 1


def test_a_call_that_read_nothing_and_wrote_something_was_counted() -> None:
    odd = reply(calls=[call("w", "read", {"page": 1})], usage=Usage(input=0, output=5))
    _, visits, _ = story([odd, reply(text="done")])
    assert visits == []


def test_without_a_second_call_nothing_is_measured() -> None:
    builder, _ = describe([reply(text="hi", usage=None)])
    assert answered(run(builder.window(token_budget(threshold_tokens=1)).build().run("go"))).text == "hi"


def test_a_reading_older_than_one_boundary_makes_the_strategy_stand_down() -> None:
    model, visits, seen = story(reading(1500, None, None, 1500))
    assert [v.iteration for v in visits] == [2, 5]
    assert visits[1].removed_messages > 0
    assert len(seen.of(BudgetPressure)) == 2
    assert len(model.requests) == 5


def test_the_reading_outlives_a_pause() -> None:
    ledger = MemoryLedger()

    @before_tool("gate")
    def gate(context: Any) -> Any:
        return ask("sure?") if context.args["page"] == 2 else None

    builder, _ = describe(reading(10, 10, 1500), read, ledger=ledger, act={"before_tool": [gate]})
    agent = builder.window(token_budget(threshold_tokens=1000, keep_recent_turns=1)).build()

    async def two() -> None:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        checkpoint = json.loads(json.dumps(pause.checkpoint))
        answered(await agent.resume(checkpoint, check_in_approved(by="dana")))

    run(two())
    (visit,) = visits_of(ledger, agent.last_run_id)
    assert (visit.iteration, visit.figures["measured_tokens"]) == (4, 1500)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "2", None])
def test_its_numbers_are_checked_when_it_is_made(wrong: Any) -> None:
    with pytest.raises(BuilderError, match="threshold_tokens"):
        token_budget(threshold_tokens=wrong)
    with pytest.raises(BuilderError, match="keep_recent_turns"):
        token_budget(threshold_tokens=1, keep_recent_turns=wrong)
    assert token_budget(threshold_tokens=1).keep_recent_turns == 6


def test_a_second_strategy_is_refused_by_every_pair_of_doors() -> None:
    first, second = token_budget(threshold_tokens=1), token_budget(threshold_tokens=2)
    doors: dict[str, Any] = {
        ".window()": lambda b, w: b.window(w),
        ".act(window=...)": lambda b, w: b.act(window=w),
    }
    pairs = [(a, b) for a in doors for b in doors if (a, b) != (".act(window=...)",) * 2]
    for earlier, later in pairs:
        builder = doors[earlier](describe([])[0], first)
        with pytest.raises(BuilderError) as caught:
            doors[later](builder, second)
        assert "'token-budget'" in str(caught.value)
        assert earlier in str(caught.value)
