"""Watchers are told everything, in order, and can harm nobody."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Any, get_args

import msgspec
import pytest

from footprint_core import (
    BuilderError,
    ReentrantCallError,
    Scope,
    after_tool,
    allow,
    before_tool,
    deny,
    on_message,
    sliding_window,
)
from footprint_core.events import (
    EVENTS,
    AgentConfigured,
    ContextEvicted,
    ContextInjected,
    DecisionFiled,
    Event,
    ObserverError,
    SlotComposed,
    TurnEnded,
)
from footprint_core.facts import TraceRef
from footprint_core.providers import call, reply
from footprint_core.watch.listener import Runs
from story import Seen, answered, describe, run

REPLIES = [reply(calls=[call("1", "look", {"q": "x"})]), reply(text="done")]


def look(q: str) -> str:
    return q * 2


class Fragile(Seen):
    """A watcher that raises on everything."""

    def on_event(self, event: Event, /) -> None:
        super().on_event(event)
        raise RuntimeError("a secret")


def test_a_watcher_that_raises_is_reported_once_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    fragile, seen = Fragile("fragile"), Seen("seen")
    builder, _ = describe(REPLIES, look, watch=[fragile, seen])
    agent = builder.build()
    assert answered(run(agent.run("go"))).text == "done"
    reports = seen.of(ObserverError)
    assert [(r.watcher, r.error_class, r.event, r.count) for r in reports] == [
        ("fragile", "RuntimeError", "agent.run_configured", 1)
    ]
    assert seen.types[:2] == ["agent.run_configured", "observer.error"]
    assert reports[0].sequence == seen.events[0].sequence
    assert not fragile.of(ObserverError)
    assert [e for e in seen.events if not isinstance(e, ObserverError)] == fragile.events
    health = agent.health().watchers
    assert (health[0].watcher, health[0].failures) == ("fragile", len(fragile.events))
    assert health[1].failures == 0
    assert "a secret" not in caplog.text
    assert len(caplog.records) == 1


def test_nothing_follows_the_end_of_a_segment_not_even_a_report() -> None:
    class LastStraw(Seen):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if self.types[-1] == "agent.turn_end":
                raise RuntimeError

    seen = Seen()
    builder, _ = describe(REPLIES, look, watch=[seen, LastStraw("straw")])
    run(builder.build().run("go"))
    assert seen.types[-1] == "agent.turn_end"


def test_a_watcher_cannot_call_the_agent_it_watches() -> None:
    caught: list[BaseException] = []

    class Calls(Seen):
        agent: Any = None

        def on_event(self, event: Event, /) -> None:
            work = self.agent.session().run("again")
            try:
                work.send(None)
            except ReentrantCallError as error:
                caught.append(error)

    watcher = Calls()
    builder, _ = describe([reply(text="ok")], watch=[watcher])
    watcher.agent = builder.build()
    run(watcher.agent.run("go"))
    assert caught


def test_watching_changes_no_request_no_row_and_no_answer() -> None:
    act: Any = {"before_tool": [before_tool("no")(lambda _: deny("no"))]}
    bare, bare_model = describe(REPLIES, look, act=act)
    watched, watched_model = describe(REPLIES, look, act=act, watch=[Seen("a"), Fragile("b")])
    one, two = answered(run(bare.build().run("go"))), answered(run(watched.build().run("go")))
    assert one.text == two.text
    assert [(r.middleware, r.outcome, r.position) for r in one.decisions] == [
        (r.middleware, r.outcome, r.position) for r in two.decisions
    ]
    assert bare_model.requests == watched_model.requests


def test_each_of_the_five_moments_tells_that_it_decided() -> None:
    seen = Seen()
    act: Any = {
        "input": [on_message("in")(lambda _: allow())],
        "before_tool": [before_tool("before")(lambda _: allow())],
        "after_tool": [after_tool("after")(lambda _: allow())],
        "window": sliding_window(keep_recent_turns=1),
        "output": [on_message("out")(lambda _: allow())],
    }
    replies = [*REPLIES, reply(text="again"), reply(text="and again")]
    agent = describe(replies, look, act=act, watch=[seen], keep_last_tool_results=0)[0].build()

    async def story() -> None:
        await agent.run("one")
        await agent.follow_up("two")
        await agent.follow_up("three")

    run(story())
    told = {event.moment for event in seen.of(DecisionFiled)}
    assert told == {"input", "before-tool", "after-tool", "output"}
    assert seen.of(ContextEvicted)


def test_sequences_are_positions_and_times_never_step_back() -> None:
    seen = Seen()
    builder, _ = describe(REPLIES, look, watch=[seen])
    run(builder.build().run("go"))
    assert [e.sequence for e in seen.events] == sorted(e.sequence for e in seen.events)
    assert [e.time for e in seen.events] == sorted(e.time for e in seen.events)
    assert {e.segment for e in seen.events} == {1}


def test_every_event_is_in_the_registry_under_its_own_name() -> None:
    for event in get_args(Event):
        assert EVENTS[event.type] is event
        assert event.__struct_config__.tag == event.type


def test_a_correlation_is_asked_once_and_stands_in_the_checkpoint() -> None:
    from footprint_core import AskPause, ask

    class Correlates(Seen):
        asked: list[tuple[str, int]]

        def correlation(self, run_id: str, segment: int, /) -> TraceRef:
            assert self.types == ["agent.run_configured"]
            self.asked = [(run_id, segment)]
            return TraceRef(trace_id="a" * 32, span_id="b" * 16)

    watcher = Correlates()
    act: Any = {"before_tool": [before_tool("asks")(lambda _: ask("may I?"))]}
    builder, _ = describe(REPLIES, look, act=act, watch=[watcher])
    pause = run(builder.build().run("go"))
    assert isinstance(pause, AskPause)
    assert watcher.asked == [(pause.run_id, 1)]
    assert pause.checkpoint["trace"] == ["a" * 32, "b" * 16]


def test_enclosing_is_entered_around_exactly_the_model_call_and_the_tool_body() -> None:
    said: list[str] = []

    class Encloses(Seen):
        def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
            class Around(nullcontext[None]):
                def __enter__(self) -> None:
                    said.append(f"in {scope.kind} {scope.iteration} {scope.call_id}")

                def __exit__(self, *error: object) -> None:
                    said.append("out")

            return Around()

    async def speak(q: str) -> str:
        said.append("body")
        await asyncio.sleep(0)
        return q

    builder, _ = describe(
        [reply(calls=[call("1", "speak", {"q": "x"})]), reply(text="done")], speak, watch=[Encloses()]
    )
    run(builder.build().run("go"))
    assert said == ["in model 1 None", "out", "in tool 1 1", "body", "out", "in model 2 None", "out"]


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, GeneratorExit])
@pytest.mark.parametrize("when", ["made", "entered", "left"])
def test_an_enclosing_that_raises_harms_nothing_and_is_reported_once(
    error: type[BaseException], when: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Around(nullcontext[None]):
        def __enter__(self) -> None:
            if when == "entered":
                raise error

        def __exit__(self, *_: object) -> None:
            if when == "left":
                raise error

    class Breaks(Seen):
        def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
            if when == "made":
                raise error
            return Around()

    breaks, seen = Breaks("breaks"), Seen("seen")
    builder, _ = describe(REPLIES, look, watch=[breaks, seen])
    agent = builder.build()
    assert answered(run(agent.run("go"))).text == "done"
    assert agent.health().watchers[0].failures == 3
    assert [(r.watcher, r.error_class, r.event, r.count) for r in seen.of(ObserverError)] == [
        ("breaks", error.__name__, "enclose", 1)
    ]
    assert not breaks.of(ObserverError)
    assert [r.getMessage() for r in caplog.records] == [
        f"The watcher breaks raised {error.__name__} in enclose."
    ]


def test_a_correlation_that_raises_is_reported_and_the_next_watcher_is_asked() -> None:
    from footprint_core import AskPause, ask

    class Breaks(Seen):
        def correlation(self, run_id: str, segment: int, /) -> TraceRef:
            raise asyncio.CancelledError

    class Gives(Seen):
        def correlation(self, run_id: str, segment: int, /) -> TraceRef:
            return TraceRef(trace_id="a" * 32, span_id="b" * 16)

    gives = Gives("gives")
    act: Any = {"before_tool": [before_tool("asks")(lambda _: ask("may I?"))]}
    builder, _ = describe(REPLIES, look, act=act, watch=[Breaks("breaks"), gives])
    pause = run(builder.build().run("go"))
    assert isinstance(pause, AskPause)
    assert pause.checkpoint["trace"] == ["a" * 32, "b" * 16]
    assert [(r.watcher, r.event) for r in gives.of(ObserverError)] == [("breaks", "correlation")]
    assert gives.types[0] == "agent.run_configured"


def test_what_is_still_to_be_reported_comes_before_the_end_of_a_segment() -> None:
    class Breaks(Seen):
        def correlation(self, run_id: str, segment: int, /) -> TraceRef:
            raise RuntimeError

    async def cancels(_: object) -> Any:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    seen = Seen("seen")
    act: Any = {"input": [on_message("cancels")(cancels)]}
    builder, _ = describe(REPLIES, look, act=act, watch=[Breaks("breaks"), seen])

    async def story() -> None:
        with pytest.raises(asyncio.CancelledError):
            await asyncio.ensure_future(builder.build().run("go"))

    run(story())
    assert seen.types == ["agent.run_configured", "observer.error", "agent.turn_end"]


def test_two_that_fail_at_one_event_are_both_reported_behind_it() -> None:
    first, second, seen = Fragile("first"), Fragile("second"), Seen("seen")
    builder, _ = describe(REPLIES, look, watch=[first, second, seen])
    run(builder.build().run("go"))
    assert seen.types[:3] == ["agent.run_configured", "observer.error", "observer.error"]
    assert [report.watcher for report in seen.of(ObserverError)] == ["first", "second"]
    assert [report.watcher for report in second.of(ObserverError)] == ["first"]
    assert [report.watcher for report in first.of(ObserverError)] == ["second"]


def test_who_fails_first_at_a_report_is_reported_at_its_next_failure() -> None:
    class Cautious(Seen):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if event.type in {"observer.error", "agent.turn_start"}:
                raise RuntimeError

    seen = Seen("seen")
    builder, _ = describe(REPLIES, look, watch=[Fragile("fragile"), Cautious("cautious"), seen])
    run(builder.build().run("go"))
    assert [(r.watcher, r.event, r.count) for r in seen.of(ObserverError)] == [
        ("fragile", "agent.run_configured", 1),
        ("cautious", "agent.turn_start", 2),
    ]


def test_which_runs_a_failure_was_reported_in_is_forgotten_in_the_end() -> None:
    runs = Runs()
    assert runs.first("oldest")
    assert not runs.first("oldest")
    assert all(runs.first(str(number)) for number in range(5000))
    assert not runs.first("4999")
    assert runs.first("oldest")


def test_no_event_carries_a_value() -> None:
    canary = "zanzibar"
    seen = Seen()

    def tool_of(q: str) -> dict[str, str]:
        return {"r": f"{canary} result {q}"}

    act: Any = {"before_tool": [before_tool("why")(lambda _: deny(f"{canary} why"))]}
    replies = [
        reply(text=f"{canary} thought", calls=[call("1", "tool_of", {"q": canary, canary: canary})]),
        reply(calls=[call("2", f"{canary} {canary}!", {})]),
        reply(text=f"{canary} answer"),
    ]
    none: Any = {}
    for rules in (none, act):
        builder, _ = describe(replies, tool_of, act=rules, watch=[seen])
        run(builder.system(f"{canary} system").build().run(f"{canary} message", identity={"name": canary}))
    assert len(seen.events) > 30
    assert canary.encode() not in msgspec.json.encode(seen.events)


def test_a_watcher_whose_id_changes_harms_nothing() -> None:
    class Shifty(Seen):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            self.id += "x"

    shifty = Shifty("shifty")
    builder, _ = describe(REPLIES, look, watch=[shifty])
    agent = builder.build()
    assert answered(run(agent.run("go"))).text == "done"
    assert agent.health().watchers[0].watcher == "shifty"


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, BaseException])
def test_whatever_a_watcher_raises_harms_nothing(error: type[BaseException]) -> None:
    class Throws(Seen):
        def on_event(self, event: Event, /) -> None:
            raise error

    builder, _ = describe(REPLIES, look, watch=[Throws("throws")])
    assert answered(run(builder.build().run("go"))).text == "done"


def test_a_watcher_nobody_could_tell_anything_is_refused() -> None:
    class Awaited(Seen):
        async def on_event(self, event: Event, /) -> None:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
            super().on_event(event)

    class Called:
        async def __call__(self, event: Event) -> None:
            raise AssertionError(event)

    deaf: Any = type("Deaf", (), {"id": "deaf"})()
    told: Any = Seen("told")
    stubborn: Any = Seen("stubborn")
    told.on_event = Called()
    stubborn.on_event = None
    odd: list[Any] = [Awaited("awaited"), type("Class", (Seen,), {"id": "class"}), deaf, told, stubborn]
    agent = describe(REPLIES, look)[0].build()
    for watcher in odd:
        with pytest.raises(BuilderError, match="on_event"):
            describe(REPLIES, look, watch=[watcher])[0].build()
        with pytest.raises(BuilderError, match="on_event"):
            agent.attach(watcher)
    numbered: Any = Seen("")
    numbered.id = 3
    nameless: list[Any] = [Seen(" "), Seen(""), object(), numbered]
    for watcher in nameless:
        with pytest.raises(BuilderError, match="give it a non-blank `id`"):
            describe(REPLIES, look, watch=[watcher])[0].build()
        with pytest.raises(BuilderError, match="give it a non-blank `id`"):
            agent.attach(watcher)
    assert agent.health().watchers == ()


def test_a_correlation_that_is_none_is_ignored() -> None:
    class Lies(Seen):
        def correlation(self, run_id: str, segment: int, /) -> Any:
            return "abc"

    builder, _ = describe(REPLIES, look, watch=[Lies()])
    assert answered(run(builder.build().run("go"))).text == "done"


def test_a_watcher_can_change_an_event_for_nobody() -> None:
    class Meddles(Seen):
        def on_event(self, event: Event, /) -> None:
            rules: Any = getattr(event, "rules", None)
            if rules is not None:
                rules["input"] = ()

    seen = Seen()
    act: Any = {"input": [on_message("rule")(lambda _: allow())]}
    builder, _ = describe([reply(text="ok")], act=act, watch=[Meddles("meddles"), seen])
    agent = builder.build()
    run(agent.run("go"))
    assert [ref.name for ref in seen.of(AgentConfigured)[0].rules["input"]] == ["rule"]
    assert agent.health().watchers[0].failures == 1


def test_a_turn_that_a_watcher_starts_in_a_task_of_its_own_is_not_inside_it() -> None:
    other, _ = describe([reply(text="from the other")])
    started: list[asyncio.Task[Any]] = []

    class Starts(Seen):
        def on_event(self, event: Event, /) -> None:
            if isinstance(event, TurnEnded):
                started.append(asyncio.ensure_future(other.build().run("also")))

    builder, _ = describe([reply(text="ok")], watch=[Starts()])

    async def story() -> None:
        await builder.build().run("go")
        assert answered(await started[0]).text == "from the other"

    run(story())


def test_a_slot_tells_what_it_gained_since_the_last_model_call_and_how_it_stands() -> None:
    seen = Seen()
    builder, _ = describe(REPLIES, look, watch=[seen])
    run(builder.system("sys").build().run("four"))
    assert [(e.slot, e.pieces, e.iteration) for e in seen.of(ContextInjected)] == [
        ("system-prompt", 1, 1),
        ("messages", 1, 1),
        ("tools", 1, 1),
        ("messages", 2, 2),
    ]
    stands = [(e.slot, e.pieces, e.chars) for e in seen.of(SlotComposed) if e.slot != "tools"]
    assert stands == [
        ("system-prompt", 1, 3),
        ("messages", 1, 4),
        ("system-prompt", 1, 3),
        ("messages", 3, 6),
    ]
