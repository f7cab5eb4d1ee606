"""Functions subscribe to events by class, by name, by domain or to all, and end it when they like."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from footprint_core import (
    Agent,
    BuilderError,
    ReentrantCallError,
    Subscription,
    allow,
    ask,
    before_tool,
    check_in_approved,
    commit,
    is_paused,
    on_message,
)
from footprint_core.events import (
    EVENTS,
    DecisionFiled,
    Event,
    FrozenDict,
    ObserverError,
    TokenStreamed,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
)
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from footprint_core.watch import audience
from story import Seen, answered, describe, run

REPLIES = [reply(calls=[call("1", "look", {"q": "x"})]), reply(text="done")]


def look(q: str) -> str:
    return q * 2


def agent_of(replies: list[Completed] = REPLIES, **options: Any) -> Agent:
    """An agent with a rule before its tool."""
    act: Any = {"before_tool": [before_tool("rule")(lambda _: allow())]}
    return describe(replies, look, act=act, **options)[0].build()


def types(events: list[Any]) -> list[str]:
    return [event.type for event in events]


def test_a_function_hears_the_events_of_a_class_of_a_name_of_a_domain_or_all() -> None:
    seen = Seen()
    agent = agent_of(watch=[seen])
    heard: dict[str, list[Any]] = {"class": [], "name": [], "domain": [], "all": []}
    subscriptions = [
        agent.on(DecisionFiled, heard["class"].append),
        agent.on("middleware.decision", heard["name"].append),
        agent.on("stream.*", heard["domain"].append),
        agent.on("*", heard["all"].append),
    ]
    run(agent.run("go"))
    assert all(isinstance(one, Subscription) for one in subscriptions)
    assert heard["class"] == heard["name"] == seen.of(DecisionFiled)
    assert len(heard["class"]) == 1
    assert heard["domain"] == [event for event in seen.events if event.type.startswith("stream.")]
    assert heard["domain"]
    assert heard["all"] == seen.events


def test_every_event_there_is_can_be_subscribed_to() -> None:
    agent = agent_of()
    for name, kind in EVENTS.items():
        for pattern in (name, kind, f"{name.partition('.')[0]}.*"):
            agent.on(cast("Any", pattern), print)()


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [
        ("middleware.decisoin", "'middleware.decision'"),
        ("DecisionFiled", "'middleware.decision'"),
        ("middlware.*", "'middleware.*'"),
        ("stream", "'stream.*'"),
        ("Agent.Turn_End", "'agent.turn_end'"),
        ("", "use the nearest"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(wrong: str, nearest: str) -> None:
    with pytest.raises(BuilderError) as refused:
        agent_of().on(wrong, print)
    assert nearest in str(refused.value)


def test_an_unknown_class_is_refused_with_the_nearest_known_one_and_so_is_anything_else() -> None:
    class TurnEnds:
        type = "agent.turn_end"

    class Own(TurnEnded, frozen=True, kw_only=True, tag_field="type", tag="agent.turn_end"):
        pass

    on: Callable[[object, object], Subscription] = cast("Any", agent_of().on)
    with pytest.raises(BuilderError, match="TurnEnds is no event; use the nearest, TurnEnded,"):
        on(TurnEnds, print)
    for wrong in (Own, int, Event, None, 3, ["*"]):
        with pytest.raises(BuilderError):
            on(wrong, print)


async def awaited(event: Event) -> None:
    raise AssertionError(event)


async def iterated(event: Event) -> AsyncIterator[Event]:
    yield event


def generated(event: Event) -> Iterator[Event]:
    yield event


class Awaited:
    async def __call__(self, event: Event) -> None:
        raise AssertionError(event)

    async def method(self, event: Event) -> None:
        raise AssertionError(event)


@pytest.mark.parametrize(
    "fn",
    [
        awaited,
        partial(awaited),
        partial(partial(awaited)),
        Awaited(),
        Awaited().method,
        partial(Awaited()),
        partial(Awaited().method),
        iterated,
        generated,
        None,
        "print",
    ],
)
def test_what_nobody_would_run_is_refused_when_it_subscribes(fn: Any) -> None:
    agent = agent_of()
    with pytest.raises(BuilderError):
        agent.on("*", fn)
    assert agent.health().subscribers == ()
    assert answered(run(agent.run("go"))).text == "done"


def test_watchers_are_told_first_then_the_exact_then_the_domain_then_the_others() -> None:
    order: list[str] = []

    class Says(Seen):
        def on_event(self, event: Event, /) -> None:
            if isinstance(event, DecisionFiled):
                order.append(self.id)

    def says(word: str) -> Callable[[Any], None]:
        return lambda event: order.append(word) if isinstance(event, DecisionFiled) else None

    agent = agent_of(watch=[Says("built first"), Says("built second")])
    agent.on("*", says("all first"))
    agent.on("middleware.*", says("domain first"))
    agent.on("middleware.decision", says("exact first"))
    agent.on("*", says("all second"))
    agent.on(DecisionFiled, says("exact second"))
    agent.on("middleware.*", says("domain second"))
    agent.on("middleware.decision", says("exact third"))
    agent.attach(Says("attached"))
    run(agent.run("go"))
    assert order == [
        *("built first", "built second", "attached"),
        *("exact first", "exact second", "exact third"),
        *("domain first", "domain second"),
        *("all first", "all second"),
    ]


@pytest.mark.parametrize("pattern", ["middleware.decision", "middleware.*", "*"])
@pytest.mark.parametrize("by", ["watcher", "exact", "all"])
def test_a_function_added_while_an_event_is_delivered_hears_the_next_one(pattern: str, by: str) -> None:
    late: list[Any] = []

    class Adds(Seen):
        agent: Agent

        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if isinstance(event, DecisionFiled) and len(self.of(DecisionFiled)) == 1:
                self.agent.on(pattern, late.append)

    adds = Adds()
    replies = [
        reply(calls=[call("1", "look", {"q": "x"}), call("2", "look", {"q": "y"})]),
        reply(text="done"),
    ]
    agent = adds.agent = agent_of(replies, watch=[adds] if by == "watcher" else [])
    if by == "exact":
        agent.on(DecisionFiled, adds.on_event)
    if by == "all":
        agent.on("*", adds.on_event)
    run(agent.run("go"))
    assert [event.tool_call_id for event in late if isinstance(event, DecisionFiled)] == ["2"]


def test_a_function_that_subscribes_during_a_run_hears_the_rest_of_it() -> None:
    heard: list[Any] = []

    def subscribes(q: str) -> str:
        agent.on("*", heard.append)
        return q

    agent = describe([reply(calls=[call("1", "subscribes", {"q": "x"})]), reply(text="done")], subscribes)[
        0
    ].build()
    run(agent.run("go"))
    assert types(heard)[0] == "stream.tool_end"
    assert types(heard)[-1] == "agent.turn_end"


def test_a_subscription_ends_when_it_is_called_or_left_and_calling_it_again_is_harmless() -> None:
    called: list[Any] = []
    left: list[Any] = []
    stays: list[Any] = []
    agent = agent_of([reply(text="done")] * 3)
    ends = agent.on("*", called.append)
    agent.on("*", stays.append)

    def leaves_raising() -> None:
        with agent.on(TurnStarted, left.append):
            run(agent.run("one"))
            raise KeyError

    with pytest.raises(KeyError):
        leaves_raising()
    ends()
    ends()
    with ends:
        run(agent.run("two"))
    ends()
    assert types(left) == ["agent.turn_start"]
    assert types(called).count("agent.turn_end") == 1
    assert types(stays).count("agent.turn_end") == 2


def test_whoever_ends_while_an_event_is_delivered_does_not_get_it() -> None:
    heard: list[Any] = []
    agent = agent_of()
    agent.on(ToolCallStarted, lambda _: ends())
    ends: Subscription = agent.on("*", heard.append)
    run(agent.run("go"))
    assert types(heard)[-1] == "agent.route_decided"
    assert "stream.tool_start" not in types(heard)


def test_a_function_that_ends_its_own_subscription_is_called_once() -> None:
    once: list[Any] = []
    agent = agent_of()

    def takes(event: Event) -> None:
        once.append(event)
        ends()

    ends = agent.on("*", takes)
    run(agent.run("go"))
    assert types(once) == ["agent.run_configured"]
    assert agent.health().subscribers == ()


def test_a_function_that_subscribes_twice_is_called_twice_and_each_ends_on_its_own() -> None:
    heard: list[Any] = []
    agent = agent_of([reply(text="done")] * 2)
    one = agent.on(TurnEnded, heard.append)
    agent.on(TurnEnded, heard.append)
    run(agent.run("go"))
    assert len(heard) == 2
    one()
    one()
    run(agent.run("go"))
    assert len(heard) == 3


def test_a_dropped_subscription_goes_on_and_an_ended_one_keeps_nothing_alive() -> None:
    class Handler:
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def take(self, event: Event) -> None:
            self.heard.append(event)

    handler = Handler()
    gone = weakref.ref(handler)
    agent = agent_of([reply(text="done")] * 2)
    ends = agent.on("*", handler.take)
    del handler
    gc.collect()
    assert gone() is not None
    ends()
    del ends
    run(agent.run("go"))
    gc.collect()
    assert gone() is None


def test_a_function_hears_every_session_of_the_agent() -> None:
    heard: list[TurnEnded] = []
    agent = agent_of([reply(text="done")] * 2)
    agent.on(TurnEnded, heard.append)
    session = agent.session()
    run(agent.run("one"))
    run(session.run("two"))
    assert [event.run_id for event in heard] == [agent.last_run_id, session.last_run_id]


def test_what_a_function_raises_is_reported_once_a_run_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    agent = agent_of([reply(text="one"), reply(text="two")], watch=[seen])
    before, after, other = list[Any](), list[Any](), list[Any]()
    calls: list[Any] = []

    def breaks(event: Event) -> None:
        calls.append(event)
        raise RuntimeError("a secret")

    agent.on("*", before.append)
    agent.on("*", breaks)
    agent.on("*", after.append)
    agent.on("observer.*", other.append)
    for text in ("one", "two"):
        assert answered(run(agent.run(text))).text == text
    name = f"{breaks.__qualname__} on *"
    reports = seen.of(ObserverError)
    assert [(r.watcher, r.error_class, r.event) for r in reports] == [
        (name, "RuntimeError", "agent.run_configured")
    ] * 2
    assert [r.count for r in reports] == [1, len(calls) // 2 + 1]
    assert reports[0].run_id != reports[1].run_id
    assert other == reports
    assert before == after == seen.events
    assert calls == [event for event in seen.events if not isinstance(event, ObserverError)]
    health = {one.watcher: one for one in agent.health().subscribers}
    assert health[name].failures == len(calls)
    assert [record.getMessage() for record in caplog.records] == [
        f"The subscriber {name} raised RuntimeError in agent.run_configured."
    ] * 2
    assert "a secret" not in caplog.text


def test_a_failure_at_a_report_or_at_the_end_is_counted_and_logged_and_reported_no_further(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    agent = agent_of(watch=[seen])

    def breaks(event: Event) -> None:
        raise RuntimeError

    agent.on(TurnEnded, breaks)
    agent.on(TurnStarted, breaks)
    agent.on(ObserverError, breaks)
    run(agent.run("go"))
    assert [report.event for report in seen.of(ObserverError)] == ["agent.turn_start"]
    assert seen.types[-1] == "agent.turn_end"
    assert [one.failures for one in agent.health().subscribers] == [1, 1, 1]
    assert len(caplog.records) == 3


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, StopIteration, BaseException])
def test_whatever_a_function_raises_harms_nothing(error: type[BaseException]) -> None:
    def breaks(event: Event) -> None:
        raise error

    agent = agent_of()
    agent.on("*", breaks)
    assert answered(run(agent.run("go"))).text == "done"


def test_a_slow_function_is_named_in_health(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(audience, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    class Slow(Seen):
        def on_event(self, event: Event, /) -> None:
            now[0] += 0.2

    def dawdles(_: Event) -> None:
        now[0] += 0.1

    def hurries(_: Event) -> None:
        now[0] += 0.01

    agent = agent_of(watch=[Slow("slow"), Seen("swift")])
    agent.on(TurnEnded, dawdles)
    agent.on("*", partial(hurries))
    agent.on("agent.*", Slow("called").on_event)
    run(agent.run("go"))
    health = agent.health()
    assert [(one.watcher, one.slow) for one in health.watchers] == [("slow", True), ("swift", False)]
    assert [(one.watcher, one.slow, round(one.slowest, 3)) for one in health.subscribers] == [
        (f"{dawdles.__qualname__} on agent.turn_end", True, 0.1),
        (f"{hurries.__qualname__} on *", False, 0.01),
        (f"{Slow.on_event.__qualname__} on agent.*", True, 0.2),
    ]


def test_an_agent_cannot_be_called_from_inside_a_function_it_calls() -> None:
    agent = agent_of([reply(text="done")] * 2)
    caught: list[str] = []

    def calls(_: Event) -> None:
        doors: list[Callable[[], object]] = [
            lambda: agent.run("again"),
            lambda: agent.follow_up("again"),
            lambda: agent.resume({}, None),
            lambda: agent.run_sync("again"),
            lambda: agent.session().run("again").send(None),
        ]
        for door in doors:
            with pytest.raises(ReentrantCallError) as refused:
                door()
            caught.append(type(refused.value).__name__)

    agent.on(TurnEnded, calls)
    assert answered(run(agent.run("go"))).text == "done"
    assert caught == ["ReentrantCallError"] * 5
    assert answered(run(agent.run("once more"))).text == "done"
    assert agent.health().subscribers[0].failures == 0


def test_another_agent_may_be_started_in_a_task_of_its_own() -> None:
    other = agent_of([reply(text="from the other")])
    agent = agent_of([reply(text="done")])
    started: list[asyncio.Future[Any]] = []
    agent.on(TurnEnded, lambda _: started.append(asyncio.ensure_future(other.run("also"))))

    async def story() -> None:
        await agent.run("go")
        assert answered(await started[0]).text == "from the other"

    run(story())


def test_an_event_can_be_changed_for_nobody_and_shares_nothing_with_the_run() -> None:
    events: list[Any] = []
    act: Any = {
        "input": [on_message("in", version="1")(lambda _: allow())],
        "before_tool": [before_tool("rule")(lambda _: allow({"q": "z"}, why="because"))],
    }
    builder, model = describe(REPLIES, look, act=act)
    agent = builder.build()

    def meddles(event: Event) -> None:
        events.append(event)
        for field in event.__struct_fields__:
            with pytest.raises(AttributeError):
                setattr(event, field, None)
            shared(getattr(event, field))

    def shared(value: object) -> None:
        if isinstance(value, dict):
            assert isinstance(value, FrozenDict)
            with pytest.raises(TypeError):
                value.clear()
            for inner in cast("dict[Any, Any]", value).values():
                shared(inner)
        elif isinstance(value, tuple):
            for inner in value:
                shared(inner)
        elif isinstance(value, msgspec.Struct):
            assert value.__struct_config__.frozen
            for field in value.__struct_fields__:
                shared(getattr(value, field))
        else:
            assert value is None or isinstance(value, str | int | float | bool)

    agent.on("*", meddles)
    assert answered(run(agent.run("go"))).text == "done"
    assert agent.health().subscribers[0].failures == 0
    assert {"agent.run_configured", "middleware.decision", "tools.offered"} <= set(types(events))
    assert model.requests[1].messages[-1].text == "zz"


def test_subscribing_changes_no_request_no_row_and_no_answer() -> None:
    bare, bare_model = describe(REPLIES, look)
    told, told_model = describe(REPLIES, look)
    agent = told.build()
    for pattern in ("*", "agent.*", "middleware.decision"):
        agent.on(pattern, lambda _: 1 / 0)
    one, two = answered(run(bare.build().run("go"))), answered(run(agent.run("go")))
    assert (one.text, len(one.decisions)) == (two.text, len(two.decisions))
    assert bare_model.requests == told_model.requests


def test_events_are_built_as_soon_as_somebody_subscribes_and_no_longer_than_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[str] = []
    project: Callable[..., Any] = vars(commit)["events_for"]

    def counted(*args: Any, **options: Any) -> Any:
        events = project(*args, **options)
        built.extend(event.type for event in events)
        return events

    monkeypatch.setattr(commit, "events_for", counted)
    ends: list[Subscription] = []
    heard: list[Any] = []

    def begins(q: str) -> str:
        ends.append(agent.on("*", heard.append))
        return q

    def stops(q: str) -> str:
        ends[0]()
        return q

    script = [reply(calls=[call(name, name, {"q": "x"})]) for name in ("begins", "stops")]
    agent = describe([*script, reply(text="done")], begins, stops)[0].build()
    run(agent.run("go"))
    assert built == types(heard)
    assert (built[0], built[-1]) == ("stream.tool_end", "stream.tool_start")


def test_chunks_are_told_of_once_somebody_subscribes() -> None:
    heard: list[TokenStreamed] = []

    class Streams:
        """Somebody subscribes between its first chunk and its second."""

        name = "streams"

        async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
            yield Chunk(text="a")
            agent.on(TokenStreamed, heard.append)
            yield Chunk(text="bc")
            yield Completed(text="abc")

    agent = Agent.create(provider=Streams(), model="m", name="tested").build()
    run(agent.run("go"))
    assert [(event.token_index, event.chars) for event in heard] == [(1, 2)]


def test_a_failure_is_reported_once_in_a_run_also_across_its_pause(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    act: Any = {"before_tool": [before_tool("asks")(lambda _: ask("may I?"))]}
    agent = describe(REPLIES, look, act=act, watch=[seen])[0].build()
    agent.on("*", lambda _: 1 / 0)

    async def story() -> None:
        paused = await agent.run("go")
        assert is_paused(paused)
        assert answered(await agent.resume(paused.checkpoint, check_in_approved(by="ann"))).text == "done"

    run(story())
    assert {event.segment for event in seen.events} == {1, 2}
    assert [report.segment for report in seen.of(ObserverError)] == [1]
    assert len(caplog.records) == 1


def test_what_a_function_takes_is_checked_against_what_it_subscribes_to() -> None:
    """By the type checkers: an ignore that is not needed is an error of theirs."""

    def ended(event: TurnEnded) -> None:
        assert event.outcome == "answered"

    def either(event: TurnEnded | TurnStarted) -> str:
        return event.type

    agent = agent_of()
    agent.on(TurnEnded, ended)
    agent.on(TurnEnded, either)
    agent.on(TurnEnded, lambda event: event.outcome)
    agent.on("*", lambda event: event.type)
    agent.on(TurnStarted, ended)()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    agent.on("agent.*", ended)()  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    run(agent.run("go"))
    assert [one.failures for one in agent.health().subscribers] == [0] * 4
