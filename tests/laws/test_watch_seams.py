"""A moment at which something decides is always told of, by one of the events its seam names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from footprint_core import (
    LOOP_MOMENTS,
    LoopMoment,
    MessageDeniedError,
    act_key_for,
    after_tool,
    allow,
    ask,
    before_tool,
    deny,
    on_message,
    seam_for,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from footprint_core.events import BudgetPressure, ContextEvicted, DecisionFiled, Event
from footprint_core.facts import Usage
from footprint_core.providers import Completed, Scripted, call, reply
from story import Seen, describe, run

PAGE = "lorem ipsum dolor " * 40
OVER = Usage(input=1000, output=5)


def look(q: str) -> str:
    return f"{q} {PAGE}"


def raises(_: object) -> Any:
    raise ValueError


def fold(summary: str) -> Any:
    summarizer = Scripted([reply(text=summary)] * 3)
    return summarize_oldest(threshold_tokens=100, keep_recent_turns=1, summarizer=summarizer, model="s")


HOOKS: dict[str, Any] = {
    "allows": lambda _: allow(),
    "denies": lambda _: deny("no"),
    "asks": lambda _: ask("Really?"),
    "raises": raises,
    "answers nonsense": lambda _: 3,
}
MAKES: dict[LoopMoment, Any] = {
    "input": on_message,
    "output": on_message,
    "before-tool": before_tool,
    "after-tool": after_tool,
}
WINDOWS: dict[str, Any] = {
    "slides": lambda: sliding_window(keep_recent_turns=1),
    "counts tokens": lambda: token_budget(threshold_tokens=100, keep_recent_turns=1),
    "counts tokens and drops nothing": lambda: token_budget(threshold_tokens=100, keep_recent_turns=9),
    "folds": lambda: fold("short"),
    "folds into nothing smaller": lambda: fold(PAGE * 9),
}


def deciding() -> list[Any]:
    """Every moment with everything that can decide there."""
    ruled = [(moment, name) for moment in MAKES for name in HOOKS]
    return [*ruled, *(("window", name) for name in WINDOWS)]


def told(replies: Sequence[Completed], moment: LoopMoment, decides: Any) -> list[Event]:
    """The events of a turn in which something decides at a moment."""
    seen = Seen()
    builder = describe(replies, look, watch=[seen], keep_last_tool_results=0)[0]
    act: Any = {act_key_for(moment): decides if moment == "window" else [decides]}
    with suppress(MessageDeniedError):
        run(builder.act(**act).build().run("go"))
    return seen.events


@pytest.mark.parametrize(("moment", "name"), deciding())
def test_what_decides_at_a_moment_is_told_of_by_what_its_seam_names(moment: LoopMoment, name: str) -> None:
    decides = WINDOWS[name]() if moment == "window" else MAKES[moment]("rule")(HOOKS[name])
    said = [reply(calls=[call(f"c{i}", "look", {"q": "x"})], usage=OVER) for i in range(3)]
    events = told([*said, reply(text="done", usage=OVER)], moment, decides)
    reports = [event for event in events if isinstance(event, seam_for(moment).reports)]
    assert reports
    assert {event.moment for event in reports if isinstance(event, DecisionFiled)} <= {
        # A message rule is a link at both moments of a message.
        moment,
        *({"input", "output"} if moment in {"input", "output"} else ()),
    }
    if moment == "window":
        assert {type(event) for event in reports} <= {ContextEvicted, BudgetPressure}
    else:
        assert any(event.moment == moment for event in reports if isinstance(event, DecisionFiled))


def test_every_moment_has_a_seam_and_each_names_what_is_told() -> None:
    seams = [seam_for(moment) for moment in LOOP_MOMENTS]
    assert [(seam.moment, seam.key, seam.door, seam.hook) for seam in seams] == [
        ("input", "input", "message_middleware", "on_message"),
        ("before-tool", "before_tool", "tool_middleware", "on_tool_call"),
        ("after-tool", "after_tool", "tool_middleware", "on_tool_result"),
        ("window", "window", "window", "plan"),
        ("output", "output", "message_middleware", "on_message"),
    ]
    assert all(seam.reports for seam in seams)
    assert {seam.moment: seam.reports for seam in seams if seam.reports != (DecisionFiled,)} == {
        "window": (ContextEvicted, BudgetPressure)
    }
