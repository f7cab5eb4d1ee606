"""What an iteration tells does not grow with the history behind it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from footprint_core import after_tool, allow, before_tool, on_message, sliding_window
from footprint_core.events import Event
from footprint_core.providers import call, reply
from permits import Checker
from story import Seen, answered, describe, run

MANY = 40
_NUMBER = re.compile(rb"\d+(\.\d+)?(e-?\d+)?")


def look(q: str) -> str:
    return q * 20


def shape(events: Sequence[Event]) -> list[bytes]:
    """The bytes of events, with every number and the run's id taken for one."""
    texts = [msgspec.json.encode(event).replace(event.run_id.encode(), b"run") for event in events]
    return [_NUMBER.sub(b"#", text) for text in texts]


def by_iteration(seen: Seen) -> list[list[Event]]:
    """The events of each model call and of what it asked for, in order."""
    found: dict[int, list[Event]] = defaultdict(list)
    number = 0
    for event in seen.events:
        number = getattr(event, "iteration", number)
        found[number].append(event)
    return list(found.values())


def governed(seen: Seen, replies: list[Any], **options: Any) -> Any:
    act: Any = {
        "input": [on_message("in")(lambda _: allow())],
        "before_tool": [before_tool("before")(lambda _: allow())],
        "after_tool": [after_tool("after")(lambda _: allow("less", why="long"))],
    }
    builder = describe(replies, look, act=act, watch=[seen], keep_last_tool_results=0, **options)[0]
    return builder.permission(Checker())


@pytest.mark.parametrize("window", [None, 3])
def test_an_iteration_tells_the_same_however_many_came_before_it(window: int | None) -> None:
    seen = Seen()
    replies = [reply(calls=[call(f"c{i}", "look", {"q": "x"})]) for i in range(MANY)]
    builder = governed(seen, [*replies, reply(text="done")], max_iterations=MANY + 1)
    if window is not None:
        builder.window(sliding_window(keep_recent_turns=window))
    answered(run(builder.build().run("go")))
    told = by_iteration(seen)
    assert len(told) == MANY + 2
    shapes = [shape(events) for events in told]
    # The first composes every slot; with a window, the notice is there from one iteration on.
    assert shapes[8] == shapes[9] == shapes[MANY // 2] == shapes[MANY - 1]
    sizes = [len(msgspec.json.encode(events)) for events in told]
    # A number may have more digits, and nothing else may be longer.
    assert sizes[MANY - 1] - sizes[8] <= 4 * len(told[8]) + 12


def test_a_turn_tells_the_same_however_many_came_before_it() -> None:
    seen = Seen()
    said = [reply(calls=[call("c", "look", {"q": "x"})]), reply(text="done")]
    agent = governed(seen, said * MANY).build()

    async def story() -> list[list[Event]]:
        turns = []
        say = agent.run
        for _ in range(MANY):
            seen.events.clear()
            answered(await say("go"))
            turns.append(list(seen.events))
            say = agent.follow_up
        return turns

    turns = run(story())
    assert {len(events) for events in turns} == {len(turns[0])}
    assert shape(turns[1]) == shape(turns[MANY // 2]) == shape(turns[-1])
