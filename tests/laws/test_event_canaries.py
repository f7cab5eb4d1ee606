"""One word is planted in every value there is; no event, span or printed line has it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, get_args

import msgspec
import pytest
from msgspec.structs import replace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from footprint_core import Recorder
from footprint_core.events import EVENTS, Event
from footprint_core.events.base import EventBase
from footprint_core.facts import Fact
from planted import WORD, World
from planted_stories import STORIES, all_of_them, played
from recorders.console import Console
from recorders.otel_spans import OtelSpans
from story import Seen, run

AUTHORED = {"WindowVisited.notice", "BudgetExhausted.instruction", "PauseOpened.salt", "PauseOpened.digest"}
"""Values that the product writes itself, of nothing anybody said."""


def leaking(events: Sequence[EventBase]) -> list[str]:
    """The events whose bytes hold the word."""
    return [type(event).__name__ for event in events if WORD.encode() in msgspec.json.encode(event)]


@pytest.mark.parametrize("name", STORIES)
def test_a_word_planted_in_every_value_is_in_no_event(name: str) -> None:
    world = World()
    run(STORIES[name](world))
    assert world.seen.events[-1].type == "agent.turn_end"
    assert leaking(world.seen.events) == []


def test_the_word_was_planted_in_every_value_a_fact_can_hold() -> None:
    world = played()
    every = {f"{kind.__name__}.{value}" for kind in get_args(Fact) for value in kind.values}
    planted = {
        f"{type(fact).__name__}.{value}"
        for fact in world.facts
        for value in fact.values
        if WORD in str(getattr(fact, value))
    }
    assert every - planted == AUTHORED


def test_every_event_was_told_and_every_way_a_segment_a_call_and_a_rule_can_come_out() -> None:
    events: list[Any] = list(played().seen.events)
    assert {event.type for event in events} == set(EVENTS)
    ended = [event for event in events if event.type == "agent.turn_end"]
    assert {event.outcome for event in ended} == {
        *("answered", "denied", "paused", "halted", "failed", "cancelled", "abandoned")
    }
    answered = [event for event in events if event.type == "stream.tool_end"]
    assert {event.status for event in answered} == {
        *("ran", "failed", "denied", "invalid", "unknown", "blocked", "cancelled")
    }
    decided = [event for event in events if event.type == "middleware.decision"]
    assert {event.answer for event in decided} == {*("given", "raised", "malformed", "timed-out", "person")}
    assert {event.kind for event in events if event.type == "pause.resume"} == {"ask", "check-in", "human"}


class Blurted(EventBase, frozen=True, kw_only=True, tag_field="type", tag="rule.blurted"):
    """An event that tells why."""

    why: str


def test_an_event_that_held_the_word_would_be_found() -> None:
    events = played().seen.events
    leak = Blurted(run_id="r", segment=1, sequence=1, time=0, why=f"because of {WORD}")
    assert leaking([*events, leak]) == ["Blurted"]
    tried = 0
    for event in {type(event): event for event in events}.values():
        texts = [name for name in event.__struct_fields__ if isinstance(getattr(event, name), str)]
        for name in texts:
            tried += 1
            assert leaking([replace(event, **{name: f"a {WORD}"})]) == [type(event).__name__]
    assert tried > len(EVENTS) * 2


def test_recorders_take_every_event_and_ship_the_word_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    exporter, file = InMemorySpanExporter(), io.StringIO()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    kinds: tuple[Any, ...] = ("spans", "notable", "events")
    spans = [OtelSpans(tracer_provider=provider, decisions=kind, id=kind) for kind in kinds]
    console, last = Console(file=file), Seen("last")
    recorders: list[Recorder] = [*spans, console]
    world = World(*recorders, last)
    run(all_of_them(world))
    assert last.events == world.seen.events
    assert [event.watcher for event in _of(world.seen.events, "observer.error")] == [
        "watched.<locals>.complains on *"
    ]
    for recorder in recorders:
        assert recorder.flush(10.0)
        recorder.close(10.0)
    assert (console.dropped, [one.dropped for one in spans]) == (0, [0, 0, 0])
    assert (console.notices, [one.notices for one in spans]) == ((), [()] * 3)
    shipped = exporter.get_finished_spans()
    segments = len(_of(world.seen.events, "agent.run_configured"))
    assert sum(span.name.startswith("invoke_agent") for span in shipped) == 3 * segments
    assert WORD not in "".join(span.to_json() for span in shipped)
    lines = file.getvalue().splitlines()
    assert len(lines) > 3 * segments
    assert WORD not in file.getvalue()
    assert WORD not in caplog.text


def _of(events: Sequence[Event], name: str) -> list[Any]:
    return [event for event in events if event.type == name]
