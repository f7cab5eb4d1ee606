"""Whatever a window strategy plans, a call keeps its result and the message being answered stays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import Asked, World, replies, turns
from footprint_core import Answer, RunError, WindowPlan, WindowView, sliding_window, token_budget
from footprint_core.messages import AssistantMessage, Messages, ToolMessage, UserMessage


class Reckless:
    """Plans to drop whatever it is told to, request or not."""

    name = "reckless"

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._spans = spans

    def plan(self, view: WindowView, /) -> WindowPlan | None:
        first, length = self._spans[view.iteration % len(self._spans)]
        first = min(first, view.turn_count - 1)
        return WindowPlan(remove=tuple(range(first, min(first + length, view.turn_count))))


def whole(messages: Messages, request: str) -> None:
    """Refuse a request in which a call and its result are parted, or that has lost what it is about."""
    waiting: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert waiting, "a result without its call"
            assert (message.call_id, message.tool_name) == waiting.pop(0)
            continue
        assert not waiting, "a call without its result"
        if isinstance(message, AssistantMessage):
            waiting = [(call.id, call.name) for call in message.calls]
    assert not waiting
    assert isinstance(messages[0], UserMessage)
    assert request in [message.text for message in messages if isinstance(message, UserMessage)]


async def play(conversation: list[list[list[Asked]]], window: Any) -> None:
    world = World()
    said = [one for turn in conversation for one in replies(turn)]
    agent, model = world.agent(said, window=window)
    answers = 0
    for number, _ in enumerate(conversation):
        before = len(model.requests)
        say = agent.run if number == 0 else agent.follow_up
        assert isinstance(await say(f"request {number}"), Answer)
        answers += 1
        for request in model.requests[before:]:
            whole(request.messages, f"request {number}")
    assert answers == len(conversation)


conversations = st.lists(turns, min_size=1, max_size=3)


@settings(max_examples=80)
@given(conversations, st.integers(1, 4))
def test_a_sliding_window_parts_no_call_from_its_result(
    conversation: list[list[list[Asked]]], keep: int
) -> None:
    asyncio.run(play(conversation, sliding_window(keep_recent_turns=keep)))


@settings(max_examples=40)
@given(conversations, st.integers(1, 3))
def test_a_token_budget_parts_no_call_from_its_result(
    conversation: list[list[list[Asked]]], keep: int
) -> None:
    asyncio.run(play(conversation, token_budget(threshold_tokens=5, keep_recent_turns=keep)))


@settings(max_examples=80)
@given(conversations, st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=5))
def test_a_strategy_that_would_drop_anything_parts_no_call_from_its_result(
    conversation: list[list[list[Asked]]], spans: list[tuple[int, int]]
) -> None:
    asyncio.run(play(conversation, Reckless(spans)))


@given(st.tuples(st.integers(-3, 9), st.integers(-3, 9)).filter(lambda pair: pair[1] - pair[0] != 1))
def test_a_plan_that_is_no_span_of_the_window_ends_the_run_by_name(pair: tuple[int, int]) -> None:
    class Odd:
        name = "odd"

        def plan(self, view: WindowView, /) -> WindowPlan | None:
            return WindowPlan(remove=pair)

    with pytest.raises(RunError, match="odd"):
        asyncio.run(play([[[Asked("echo", 1)]]], Odd()))
