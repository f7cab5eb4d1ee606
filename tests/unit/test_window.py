"""The sliding window edits what is sent, and only that."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    AssistantMessage,
    MemoryLedger,
    RunError,
    ToolMessage,
    UserMessage,
    WindowPlan,
    WindowView,
    sliding_window,
)
from footprint_core.events import ContextEvicted
from footprint_core.facts import WindowVisited
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

PAGE = "lorem ipsum dolor " * 80


def read(page: int) -> str:
    return f"{page} {PAGE}"


def tap(n: int) -> str:
    return "ok"


def _story(
    tool: Any, count: int, keep: int, *, pins: int = 0, names: Any = None
) -> tuple[Any, Any, Any, Seen]:
    seen, ledger = Seen(), MemoryLedger()
    key = "page" if tool is read else "n"
    calls = [reply(calls=[call(f"w{i}", tool.__name__, {key: i})]) for i in range(1, count + 1)]
    builder, model = describe(
        [*calls, reply(text="done")],
        tool,
        watch=[seen],
        ledger=ledger,
        keep_last_tool_results=pins,
    )
    agent = builder.window(sliding_window(keep_recent_turns=keep)).build()
    outcome = answered(run(agent.run("read it all")))
    visits = [e.fact for e in ledger.entries(outcome.run_id) if isinstance(e.fact, WindowVisited)]
    return model, visits, agent, seen


def _shape(request: Any) -> list[str]:
    return [
        f"{m.role}:{m.kind}" if isinstance(m, UserMessage) and m.kind != "request" else m.role
        for m in request.messages
    ]


def test_the_oldest_span_leaves_and_a_notice_says_so() -> None:
    model, visits, _, seen = _story(read, 4, 2)
    assert [_shape(r) for r in model.requests] == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
        ["user", "user:notice", "assistant", "tool", "assistant", "tool"],
        ["user", "user:notice", "assistant", "tool", "assistant", "tool"],
    ]
    notice = model.requests[3].messages[1].text
    assert "2" in notice
    assert "sliding-window" in notice
    assert "read" in notice
    assert "lorem" not in notice
    assert [
        (
            v.iteration,
            v.removed_messages,
            [(r.reason, r.turn_index, r.message_index) for r in v.refusals],
            v.figures,
        )
        for v in visits
    ] == [
        (
            3,
            0,
            [("current-request", 0, 0), ("inside-keep-window", 1, 1), ("inside-keep-window", 2, 3)],
            {"keep_recent_turns": 2, "turns_before": 3, "turns_after": 3},
        ),
        (
            4,
            2,
            [("current-request", 0, 0), ("inside-keep-window", 2, 3), ("inside-keep-window", 3, 5)],
            {"keep_recent_turns": 2, "turns_before": 4, "turns_after": 4},
        ),
        (
            5,
            3,
            [("current-request", 0, 0), ("inside-keep-window", 3, 4), ("inside-keep-window", 4, 6)],
            {"keep_recent_turns": 2, "turns_before": 5, "turns_after": 4},
        ),
    ]
    assert len(seen.of(ContextEvicted)) == 5


def test_within_the_depth_there_is_no_visit() -> None:
    model, visits, _, seen = _story(read, 2, 10)
    assert visits == []
    assert not seen.of(ContextEvicted)
    assert len(model.requests[-1].messages) == 5


def test_a_span_smaller_than_a_notice_leaves_without_one() -> None:
    model, visits, _, _ = _story(tap, 3, 1)
    assert [_shape(r) for r in model.requests][2:] == [["user", "assistant", "tool"]] * 2
    assert [v.removed_messages for v in visits] == [0, 2, 2]


def test_the_latest_result_of_a_tool_is_pinned_and_pins_stand_down_when_only_they_hold() -> None:
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


def test_over_a_conversation_only_the_request_being_answered_is_kept() -> None:
    builder, model = describe([reply(text=f"a1 {PAGE}"), reply(text=f"a2 {PAGE}"), reply(text="short")])
    agent = builder.window(sliding_window(keep_recent_turns=1)).build()

    async def story() -> None:
        await agent.run(f"q1 {PAGE}")
        await agent.follow_up("q2")
        await agent.follow_up("q3")

    run(story())
    assert [_shape(r) for r in model.requests[1:]] == [["user:notice", "user"]] * 2
    assert [r.messages[-1].text for r in model.requests] == [f"q1 {PAGE}", "q2", "q3"]
    assert "3" in model.requests[2].messages[0].text


@pytest.mark.parametrize("remove", [(0,), (0, 1), (2,)])
def test_a_custom_strategy_cannot_break_the_guards(remove: tuple[int, ...]) -> None:
    class Greedy:
        name = "greedy"

        def plan(self, view: WindowView, /) -> WindowPlan | None:
            return WindowPlan(remove=remove) if view.turn_count > 2 else None

    ledger = MemoryLedger()
    calls = [reply(calls=[call(f"w{i}", "read", {"page": i})]) for i in (1, 2)]
    builder, model = describe([*calls, reply(text="done")], read, ledger=ledger)
    outcome = answered(run(builder.window(Greedy()).build().run("go")))
    visits = [e.fact for e in ledger.entries(outcome.run_id) if isinstance(e.fact, WindowVisited)]
    request = model.requests[-1].messages
    if 0 in remove:
        assert visits[0].removed == ()
        assert visits[0].refusals[0].reason == "current-request"
        assert len(request) == 5
    assert request[0].text == "go"
    calls_sent = [c.id for m in request if isinstance(m, AssistantMessage) for c in m.calls]
    assert [m.call_id for m in request if isinstance(m, ToolMessage)] == calls_sent


class Plans:
    """A strategy of somebody's own."""

    name = "own"

    def __init__(self, plan: Any) -> None:
        self._plan = plan

    def plan(self, view: WindowView, /) -> Any:
        return self._plan(view)


def _raises(_: Any) -> Any:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (lambda _: WindowPlan(remove=(-1,)), "no span"),
        (lambda _: WindowPlan(remove=(7,)), "no span"),
        (lambda _: WindowPlan(remove=(0, 2)), "no span"),
        (lambda _: 5, "planned int"),
        (_raises, "raised ZeroDivisionError"),
    ],
)
def test_a_strategy_that_plans_nonsense_is_named_and_removes_nothing(plan: Any, said: str) -> None:
    builder, model = describe([reply(text="ok")])
    with pytest.raises(RunError, match=f"own.*{said}"):
        run(builder.window(Plans(plan)).build().run("go"))
    assert not model.requests
