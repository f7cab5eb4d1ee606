"""A hook answers at once or later; whatever awaitable it returns is awaited once."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import pytest

from footprint_core import allow, deny
from ruled import REPLACEMENTS, RULED, VALUES, Played, RuledMoment, act_at, play, rule_at


class Later:
    """An awaitable of another make, which counts how often it is awaited."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.awaited = 0

    def __await__(self) -> Generator[Any, None, object]:
        self.awaited += 1
        yield from asyncio.sleep(0).__await__()
        return self.answer


async def _coroutine(answer: object) -> object:
    await asyncio.sleep(0)
    return answer


async def _gives(answer: object, _: Any) -> object:
    return answer


async def _at_once(answer: object) -> object:
    return answer


def _future(answer: object) -> asyncio.Future[object]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    loop.call_soon(future.set_result, answer)
    return future


def _done(answer: object) -> asyncio.Future[object]:
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    future.set_result(answer)
    return future


class Called:
    """An object that is called like a hook and is async."""

    async def __call__(self, answer: object) -> object:
        await asyncio.sleep(0)
        return answer


WAYS: dict[str, Callable[[object], object]] = {
    "at once": lambda answer: answer,
    "a coroutine": _coroutine,
    "a coroutine that never suspends": _at_once,
    "a task": lambda answer: asyncio.ensure_future(_coroutine(answer)),
    "a future": _future,
    "a future that is done": _done,
    "an awaitable of another make": Later,
    "a callable that is async": Called(),
    "a part of a coroutine function": partial(_coroutine),
}


def _row(played: Played, moment: RuledMoment) -> dict[str, Any]:
    (row,) = (row for row in played.rows if row["moment"] == moment)
    return row


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("way", WAYS)
def test_a_hook_may_answer_in_any_way_there_is(moment: RuledMoment, way: str) -> None:
    def answering(answer: object) -> Played:
        return play(act_at(moment, rule_at(moment, lambda _: WAYS[way](answer), "the-rule")))

    row = _row(answering(allow(REPLACEMENTS[moment], why="less")), moment)
    assert (row["outcome"], row["before"], row["after"]) == ("allow", VALUES[moment], REPLACEMENTS[moment])
    refused = answering(deny("not today"))
    assert (refused.acted(moment), refused.refusal(moment)) == (False, "not today")


@pytest.mark.parametrize("moment", RULED)
def test_a_hook_that_is_itself_async_is_awaited(moment: RuledMoment) -> None:
    class Rule:
        name = "async"

        async def on_message(self, message: Any) -> Any:
            return await _coroutine(deny("not today") if message.phase == moment else allow())

        async def on_tool_call(self, _: Any) -> Any:
            return await _coroutine(deny("not today") if moment == "before-tool" else allow())

        async def on_tool_result(self, _: Any) -> Any:
            return await _coroutine(deny("not today") if moment == "after-tool" else allow())

    played = play(act_at(moment, Rule()))
    assert (played.acted(moment), played.refusal(moment)) == (False, "not today")


@pytest.mark.parametrize("moment", RULED)
def test_an_awaitable_is_awaited_once(moment: RuledMoment) -> None:
    later = Later(allow())
    assert play(act_at(moment, rule_at(moment, lambda _: later))).acted(moment)
    assert later.awaited == 1


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("inner", [Later, _coroutine])
def test_what_an_awaitable_gives_is_the_answer_and_is_not_awaited_again(
    moment: RuledMoment, inner: Callable[[object], Any]
) -> None:
    made = inner(allow())
    played = play(act_at(moment, rule_at(moment, partial(_gives, made), "the-rule")))
    assert not played.acted(moment)
    assert type(made).__name__ in played.refusal(moment)
    assert "the-rule" in played.refusal(moment)
    assert getattr(made, "awaited", 0) == 0
    # Python warns of a coroutine nobody awaited when it is collected, and a warning is an error here.
    del made
    gc.collect()


@pytest.mark.parametrize("moment", RULED)
def test_what_an_awaitable_raises_is_a_rule_that_raised(moment: RuledMoment) -> None:
    class Fails:
        def __await__(self) -> Generator[Any, None, object]:
            yield from asyncio.sleep(0).__await__()
            raise ValueError("no such tier")

    played = play(act_at(moment, rule_at(moment, lambda _: Fails(), "the-rule")))
    assert not played.acted(moment)
    assert "no such tier" in played.refusal(moment)
    assert _row(played, moment)["error_class"] == "ValueError"
