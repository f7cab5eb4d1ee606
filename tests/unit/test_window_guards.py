"""What no strategy can let go, what is pinned, and what stands in the place of what left."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    AssistantMessage,
    MemoryLedger,
    Messages,
    ToolCall,
    ToolMessage,
    UserMessage,
    WindowPlan,
    WindowView,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.facts import Refusal, WindowVisited
from footprint_core.providers import Scripted, call, reply
from footprint_core.window.record import dropped
from story import answered, describe, run

PAGE = "lorem ipsum dolor " * 80


def read(page: int) -> str:
    return f"{page} {PAGE}"


def tap(n: int) -> str:
    return "ok"


def _view(*messages: Any) -> WindowView:
    return WindowView(
        messages=Messages(messages),
        turn_count=sum(not isinstance(m, ToolMessage) for m in messages),
        iteration=2,
        provider="p",
        last_input_tokens=None,
        last_output_tokens=None,
        usage_reported=False,
        keep_last_tool_results=0,
        stand_down=False,
    )


def _walk(tools: list[str], *, pins: int, keep: int = 1) -> tuple[Any, list[WindowVisited]]:
    ledger = MemoryLedger()

    def whats_here(page: int) -> str:
        return f"here {page}"

    def other(page: int) -> str:
        return f"other {page}"

    replies = [reply(calls=[call(f"c{i}", name, {"page": i})]) for i, name in enumerate(tools)]
    builder, model = describe(
        [*replies, reply(text="done")], read, whats_here, other, ledger=ledger, keep_last_tool_results=pins
    )
    outcome = answered(run(builder.window(sliding_window(keep_recent_turns=keep)).build().run("walk")))
    visits = [e.fact for e in ledger.entries(outcome.run_id) if isinstance(e.fact, WindowVisited)]
    return model, visits


def test_the_latest_result_of_a_tool_is_pinned() -> None:
    ledger = MemoryLedger()

    def whats_here(n: int) -> str:
        return f"ids {PAGE}"

    replies = [
        reply(calls=[call("h1", "whats_here", {"n": 1})]),
        *[reply(calls=[call(f"w{i}", "read", {"page": i})]) for i in (1, 2, 3)],
        reply(text="done"),
    ]
    builder, model = describe(replies, whats_here, read, ledger=ledger, keep_last_tool_results=1)
    agent = builder.window(sliding_window(keep_recent_turns=1)).build()
    outcome = answered(run(agent.run("walk")))
    visits = [e.fact for e in ledger.entries(outcome.run_id) if isinstance(e.fact, WindowVisited)]
    assert [(v.removed_messages, v.pinned, v.yielded) for v in visits] == [
        (0, (), 0),
        (0, ("whats_here",), 0),
        (2, ("whats_here",), 0),
        (2, ("whats_here",), 0),
    ]
    assert [v.dropped_observations for v in visits][2:] == [("read",), ("read",)]
    assert [m.tool_name for m in model.requests[-1].messages if isinstance(m, ToolMessage)] == [
        "whats_here",
        "read",
    ]


def test_a_turn_with_an_unanswered_call_never_leaves() -> None:
    calls = (ToolCall(id="1", name="a", args_json="{}"), ToolCall(id="2", name="b", args_json="{}"))
    view = _view(
        UserMessage(text="old"),
        AssistantMessage(text="", calls=calls),
        ToolMessage(call_id="1", tool_name="a", text=PAGE),
        UserMessage(text="now"),
    )
    visit = dropped("own", view, WindowPlan(remove=(0, 1)))
    assert visit.removed == ()
    assert visit.refusals == (Refusal(reason="unresolved-tool-call", turn_index=1, message_index=1),)
    # The same, with the call answered.
    view = _view(*view.messages[:3], ToolMessage(call_id="2", tool_name="b", text=""), view.messages[3])
    assert dropped("own", view, WindowPlan(remove=(0, 1))).removed == (0, 1, 2, 3)


def test_a_removal_is_given_up_when_only_a_longer_notice_could_open_the_window() -> None:
    view = _view(
        UserMessage(text="instructed", kind="instruction"),
        AssistantMessage(text="a"),
        UserMessage(text="now"),
    )
    plan = WindowPlan(
        remove=(0,), refusals=(Refusal(reason="inside-keep-window", turn_index=2, message_index=2),)
    )
    given_up = dropped("own", view, plan)
    assert given_up.removed == ()
    assert [r.reason for r in given_up.refusals] == ["replacement-not-smaller", "inside-keep-window"]
    # What is left opens with a user message, so nothing is needed in its place.
    gone = dropped("own", view, WindowPlan(remove=(0, 1)))
    assert (gone.removed, gone.notice_after) == ((0, 1), None)


def test_there_is_never_more_than_one_notice() -> None:
    view = _view(
        UserMessage(text=PAGE), UserMessage(text="[notice]", kind="notice"), AssistantMessage(text="a"),
        UserMessage(text="now"),
    )  # fmt: skip
    visit = dropped("own", view, WindowPlan(remove=(0,)))
    assert (visit.removed, visit.removed_messages, visit.notice_after) == ((0, 1), 2, 0)
    assert "2 earlier messages" in str(visit.notice)


def test_the_refusal_that_ends_a_span_is_listed() -> None:
    whats_here, visits = _walk(["read", "whats_here", "read", "read"], pins=1)
    assert whats_here
    assert [(r.reason, r.turn_index) for r in visits[2].refusals] == [
        ("current-request", 0),
        ("last-tool-result", 2),
        ("inside-keep-window", 3),
    ]
    assert visits[2].removed == (1, 2)


def test_pins_stand_down_for_one_visit_when_two_in_a_row_removed_nothing_because_of_them() -> None:
    _, visits = _walk(["whats_here", "other", "read", "read", "read"], pins=2)
    assert [(v.removed_messages, v.pinned, v.yielded, v.stand_down) for v in visits] == [
        (0, (), 0, False),
        (0, ("whats_here",), 0, False),
        (0, ("other", "whats_here"), 0, False),
        (6, (), 0, True),
        (3, (), 0, False),
    ]


def test_a_pin_beyond_the_limit_yields_and_the_newest_are_kept() -> None:
    _, visits = _walk(["whats_here", "other", "read"], pins=1)
    assert [(v.pinned, v.yielded) for v in visits] == [((), 0), (("whats_here",), 0), (("other",), 1)]
    assert visits[-1].removed == (1, 2)


def test_a_batch_is_one_pin_and_a_new_request_releases_what_came_before() -> None:
    ledger = MemoryLedger()

    def a(n: int) -> str:
        return PAGE

    def b(n: int) -> str:
        return PAGE

    both = [call("1", "a", {"n": 1}), call("2", "b", {"n": 1})]
    replies = [
        reply(calls=[call("0", "read", {"page": 0})]),
        reply(calls=both),
        reply(calls=[call("3", "tap", {"n": 1})]),
        reply(text="done"),
        reply(text="again"),
    ]
    builder, _ = describe(replies, a, b, tap, read, ledger=ledger, keep_last_tool_results=2)
    agent = builder.window(sliding_window(keep_recent_turns=1)).build()

    async def story() -> tuple[str, str]:
        first = answered(await agent.run("go"))
        return first.run_id, answered(await agent.follow_up("and now")).run_id

    first, second = run(story())
    visits = [e.fact for e in ledger.entries(first) if isinstance(e.fact, WindowVisited)]
    assert visits[-1].pinned == ("a", "b", "read")
    assert visits[-1].removed == ()
    (later,) = (e.fact for e in ledger.entries(second) if isinstance(e.fact, WindowVisited))
    assert later.pinned == ()
    assert later.dropped_observations == ("read", "a", "b", "tap")


def _strategies() -> list[Any]:
    summarizer = Scripted([reply(text="short")] * 99)
    return [
        sliding_window(keep_recent_turns=2),
        token_budget(threshold_tokens=5, keep_recent_turns=1),
        summarize_oldest(threshold_tokens=5, keep_recent_turns=1, summarizer=summarizer, model="small"),
    ]


@pytest.mark.parametrize("pins", [0, 1, 2])
@pytest.mark.parametrize("strategy", _strategies(), ids=lambda strategy: strategy.name)
def test_no_request_holds_a_result_without_its_call_or_misses_what_is_asked(strategy: Any, pins: int) -> None:
    def batch(turn: int, size: int) -> Any:
        names = ("read", "tap")
        return reply(
            calls=[call(f"{turn}-{i}", names[i % 2], {("page", "n")[i % 2]: i}) for i in range(size)]
        )

    sizes = [1, 3, 2, 1, 4, 1, 1, 2]
    script = [batch(turn, size) for turn, size in enumerate(sizes)]
    builder, model = describe(
        [*script, reply(text="a"), *script, reply(text="b")], read, tap, keep_last_tool_results=pins
    )
    agent = builder.window(strategy).build()

    async def story() -> None:
        await agent.run("first")
        await agent.follow_up("second")

    run(story())
    for number, request in enumerate(model.requests):
        said = [m for m in request.messages if isinstance(m, UserMessage)]
        assert [m.text for m in said if m.kind == "request"][-1] == ("first", "second")[number > len(sizes)]
        assert sum(m.kind == "notice" for m in said) <= 1
        assert request.messages[0].role == "user"
        waiting: list[str] = []
        for message in request.messages:
            if isinstance(message, ToolMessage):
                assert message.call_id == waiting.pop(0)
                continue
            assert not waiting
            waiting = [c.id for c in message.calls] if isinstance(message, AssistantMessage) else []
        assert not waiting
    assert min(len(r.messages) for r in model.requests[5:]) < 12


@pytest.mark.parametrize("strategy", _strategies(), ids=lambda strategy: strategy.name)
def test_a_strategy_that_does_not_engage_looks_at_no_message(strategy: Any) -> None:
    unread: Any = None
    view = WindowView(
        messages=unread,
        turn_count=2,
        iteration=2,
        provider="p",
        last_input_tokens=5,
        last_output_tokens=1,
        usage_reported=True,
        keep_last_tool_results=2,
        stand_down=False,
    )
    assert strategy.plan(view) is None
