"""An answer counts by when it was given: one behind its limit is none, however busy the loop was."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from footprint_core import ToolCallContext, allow, ask, before_tool, deny
from footprint_core.providers import call, reply
from story import answered, describe, run


def _busy(seconds: float) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass


def _play(rule: Any, beside: Any = None) -> tuple[list[int], Any]:
    ran: list[int] = []

    async def act(n: int) -> int:
        ran.append(n)
        return n

    builder, _ = describe(
        [reply(calls=[call("c", "act", {"n": 1})]), reply(text="ok")], act, act={"before_tool": [rule]}
    )

    async def go() -> Any:
        task = None if beside is None else asyncio.ensure_future(beside())
        out = await builder.build().run("go")
        if task is not None:
            await task
        return out

    return ran, answered(run(go())).decisions[0]


def test_an_async_rule_that_keeps_the_loop_busy_past_its_limit_is_late() -> None:
    @before_tool("blocks", timeout=0.05)
    async def blocks(call: ToolCallContext) -> Any:
        _busy(0.2)
        return allow()

    ran, row = _play(blocks)
    assert (row.outcome, row.answer, ran) == ("deny", "timed-out", [])


def test_a_plain_rule_that_ends_behind_its_limit_is_late_though_the_loop_hears_of_both_at_once() -> None:
    asked = threading.Event()

    @before_tool("slow", timeout=0.1)
    def slow(call: ToolCallContext) -> Any:
        asked.set()
        _busy(0.2)
        return allow()

    async def beside() -> None:
        await asyncio.to_thread(asked.wait, 5)
        _busy(0.4)

    ran, row = _play(slow, beside)
    assert (row.outcome, row.answer, ran) == ("deny", "timed-out", [])


def test_a_rule_that_answered_in_time_counts_though_the_loop_heard_of_it_late() -> None:
    asked = threading.Event()

    @before_tool("quick", timeout=0.1)
    def quick(call: ToolCallContext) -> Any:
        asked.set()
        return allow(why="in time")

    async def beside() -> None:
        await asyncio.to_thread(asked.wait, 5)
        _busy(0.3)

    ran, row = _play(quick, beside)
    assert (row.outcome, row.why, ran) == ("allow", "in time", [1])


class Raises(str):
    """A text whose methods raise."""

    __slots__ = ()

    def strip(self, *_: object) -> str:
        raise ValueError("canary")


@pytest.mark.parametrize("make", [deny, ask, lambda text: allow(why=text)])
def test_a_text_that_raises_when_it_is_looked_at_is_a_rule_that_raised(make: Any) -> None:
    text = Raises("a reason")

    @before_tool("odd")
    def odd(call: ToolCallContext) -> Any:
        try:
            return make(text)
        except ValueError:
            # The verb looked first: an arm made without its verb gets past it.
            arm = type(make("plain"))
            return arm(**{{"Deny": "reason", "Ask": "question"}.get(arm.__name__, "why"): text})

    ran, row = _play(odd)
    assert (row.outcome, row.answer, row.error_class, ran) == ("deny", "raised", "ValueError", [])
