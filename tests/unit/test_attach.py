"""Watchers come and go while an agent lives, and change nothing of what it does."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from footprint_core import (
    Agent,
    DuplicateWatcherError,
    Scope,
    Subscription,
    allow,
    ask,
    before_tool,
    check_in_approved,
    commit,
    is_paused,
    on_message,
)
from footprint_core.events import Event, ToolCallStarted, TurnEnded
from footprint_core.facts import TraceRef
from footprint_core.providers import Completed, call, reply
from story import Seen, answered, describe, facts_of, run

REPLIES = [reply(calls=[call("1", "look", {"q": "x"})]), reply(text="done")]


def look(q: str) -> str:
    return q * 2


def agent_of(replies: list[Completed] = REPLIES, **options: Any) -> Agent:
    return describe(replies, look, **options)[0].build()


def turns(seen: Seen) -> int:
    return seen.types.count("agent.turn_end")


def test_an_attached_watcher_hears_what_the_others_hear_behind_them() -> None:
    order: list[str] = []

    class Says(Seen):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if isinstance(event, TurnEnded):
                order.append(self.id)

    built, first, second = Says("built"), Says("first"), Says("second")
    agent = agent_of(watch=[built])
    assert isinstance(agent.attach(first), Subscription)
    agent.attach(second)
    run(agent.run("go"))
    assert built.events == first.events == second.events
    assert built.types[0] == "agent.run_configured"
    assert order == ["built", "first", "second"]
    assert [one.watcher for one in agent.health().watchers] == ["built", "first", "second"]


def test_another_watcher_with_an_attached_id_is_refused_and_the_attached_one_goes_on() -> None:
    built, attached = Seen("built"), Seen("attached")
    agent = agent_of([reply(text="done")] * 2, watch=[built])
    agent.attach(attached)
    for name in ("built", "attached"):
        with pytest.raises(DuplicateWatcherError, match=name) as refused:
            agent.attach(Seen(name))
        assert refused.value.watcher == name
    run(agent.run("go"))
    assert built.events == attached.events
    assert turns(built) == 1


def test_the_id_of_a_detached_watcher_is_free() -> None:
    old, new = Seen("one"), Seen("one")
    agent = agent_of([reply(text="done")])
    agent.attach(old)()
    agent.attach(new)
    run(agent.run("go"))
    assert (turns(old), turns(new)) == (0, 1)


def test_attaching_a_watcher_again_is_one_attachment_that_any_handle_ends() -> None:
    seen, other = Seen("seen"), Seen("other")
    agent = agent_of([reply(text="done")] * 3, watch=[seen])
    agent.attach(other)
    first, second = agent.attach(seen), agent.attach(seen)
    run(agent.run("go"))
    assert (turns(seen), turns(other)) == (1, 1)
    assert [one.watcher for one in agent.health().watchers] == ["seen", "other"]
    second()
    first()
    run(agent.run("go"))
    assert (turns(seen), turns(other)) == (1, 2)
    agent.attach(seen)
    first()
    second()
    run(agent.run("go"))
    assert (turns(seen), turns(other)) == (2, 3)


def test_a_watcher_whose_id_changed_is_still_the_one_that_is_attached() -> None:
    seen = Seen("one")
    agent = agent_of([reply(text="done")], watch=[seen])
    seen.id = "two"
    agent.attach(seen)
    run(agent.run("go"))
    assert turns(seen) == 1
    assert [one.watcher for one in agent.health().watchers] == ["one"]


def test_a_watcher_is_attached_within_a_with_block_and_calling_twice_is_harmless() -> None:
    seen = Seen()
    agent = agent_of([reply(text="done")] * 2)
    with agent.attach(seen) as attached:
        run(agent.run("one"))
    attached()
    attached()
    run(agent.run("two"))
    assert turns(seen) == 1
    assert agent.health().watchers == ()


def test_a_watcher_attached_during_a_run_hears_from_the_next_segment_on() -> None:
    late, there = Seen("late"), Seen("there")

    def attaches(q: str) -> str:
        agent.attach(late)
        return q

    asks = before_tool("asks")(lambda call: ask("may I?") if call.tool_name == "look" else allow())
    script = [
        reply(calls=[call("1", "attaches", {"q": "x"})]),
        reply(calls=[call("2", "look", {"q": "x"})]),
        reply(text="done"),
        reply(text="done again"),
    ]
    act: Any = {"before_tool": [asks]}
    agent = describe(script, attaches, look, act=act, watch=[there])[0].build()

    async def story() -> None:
        paused = await agent.run("go")
        assert is_paused(paused)
        assert late.events == []
        await agent.resume(paused.checkpoint, check_in_approved(by="ann"))
        assert late.events == [event for event in there.events if event.segment == 2]
        assert late.types[0] == "agent.run_configured"
        await agent.session().run("more")
        assert turns(late) == 2

    run(story())


def test_a_watcher_detached_during_a_run_hears_nothing_from_that_moment_on() -> None:
    seen, stays = Seen("seen"), Seen("stays")

    def detaches(q: str) -> str:
        subscription()
        return q

    script = [reply(calls=[call("1", "detaches", {"q": "x"})]), reply(text="done")]
    agent = describe(script, detaches, watch=[stays])[0].build()
    subscription = agent.attach(seen)
    run(agent.run("go"))
    assert seen.types[-1] == "stream.tool_start"
    assert stays.events[: len(seen.events)] == seen.events
    assert len(stays.events) > len(seen.events)


def test_a_watcher_that_is_detached_while_an_event_is_delivered_does_not_get_it() -> None:
    class Detaches(Seen):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if isinstance(event, ToolCallStarted):
                subscription()

    detaches, seen = Detaches("detaches"), Seen("seen")
    agent = agent_of(watch=[detaches, seen])
    subscription = agent.attach(seen)
    run(agent.run("go"))
    assert seen.types == detaches.types[: len(seen.types)]
    assert seen.types[-1] == "agent.route_decided"


def test_no_event_is_built_after_the_last_watcher_is_detached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, unheard = Seen("seen"), Seen("unheard")

    def detaches(q: str) -> str:
        subscription()
        # Hears the next segment, and there is none.
        agent.attach(unheard)
        monkeypatch.setattr(commit, "events_for", None)
        return q

    script = [reply(calls=[call("1", "detaches", {"q": "x"})]), reply(text="done")]
    agent = describe(script, detaches)[0].build()
    subscription = agent.attach(seen)
    assert answered(run(agent.run("go"))).text == "done"
    assert seen.types[-1] == "stream.tool_start"
    assert unheard.events == []


def test_a_detached_watcher_is_entered_around_nothing_and_what_it_entered_is_left() -> None:
    said: list[str] = []

    class Around(nullcontext[None]):
        def __enter__(self) -> None:
            said.append("in")

        def __exit__(self, *_: object) -> None:
            said.append("out")

    class Encloses(Seen):
        def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
            said.append(scope.kind)
            return Around()

    def detaches(q: str) -> str:
        subscription()
        return q

    script = [reply(calls=[call("1", "detaches", {"q": "x"})]), reply(text="done")]
    agent = describe(script, detaches)[0].build()
    subscription = agent.attach(Encloses())
    run(agent.run("go"))
    assert said == ["model", "in", "out", "tool", "in", "out"]


def test_a_detached_watcher_is_asked_for_no_correlation() -> None:
    class Correlates(Seen):
        def __init__(self, id: str, mark: str) -> None:
            super().__init__(id)
            self.mark = mark

        def correlation(self, run_id: str, segment: int, /) -> TraceRef:
            return TraceRef(trace_id=self.mark * 32, span_id="b" * 16)

    class Detaches(Seen):
        def on_event(self, event: Event, /) -> None:
            gone()

    act: Any = {"before_tool": [before_tool("asks")(lambda _: ask("may I?"))]}
    agent = agent_of(act=act, watch=[Detaches("detaches")])
    gone = agent.attach(Correlates("gone", "a"))
    agent.attach(Correlates("stays", "c"))
    paused = run(agent.run("go"))
    assert is_paused(paused)
    assert paused.checkpoint["trace"] == ["c" * 32, "b" * 16]


def test_an_attached_recorder_is_the_callers_and_a_given_one_is_closed_even_when_it_is_detached() -> None:
    class Closes(Seen):
        closed = 0

        def flush(self, timeout: float, /) -> bool:
            return True

        def close(self, timeout: float, /) -> None:
            self.closed += 1

    given, again, attached = Closes("given"), Closes("again"), Closes("attached")
    agent = agent_of(watch=[given, again])
    agent.attach(given)()
    agent.attach(again)
    agent.attach(attached)

    async def story() -> None:
        async with agent:
            await agent.run("go")

    run(story())
    assert (given.closed, again.closed, attached.closed) == (1, 1, 0)
    assert (turns(given), turns(again), turns(attached)) == (0, 1, 1)


def test_attaching_and_detaching_changes_no_request_no_row_and_no_answer() -> None:
    act: Any = {
        "input": [on_message("in")(lambda _: allow())],
        "before_tool": [before_tool("before")(lambda _: allow({"q": "z"}, why="because"))],
    }
    bare, bare_model = describe(REPLIES, look, act=act)
    watched, watched_model = describe(REPLIES, look, act=act)
    agent = watched.build()
    subscriptions = [agent.attach(Seen(f"watcher {number}")) for number in range(50)]

    class Restless(Seen):
        def on_event(self, event: Event, /) -> None:
            super().on_event(event)
            if subscriptions:
                subscriptions.pop()()
            agent.attach(Seen(f"late {len(self.events)}"))

    agent.attach(Restless("restless"))
    one, two = answered(run(bare.build().run("go"))), answered(run(agent.run("go")))
    assert one.text == two.text
    assert [facts_of(row) for row in one.decisions] == [facts_of(row) for row in two.decisions]
    assert bare_model.requests == watched_model.requests
    assert all(watcher.failures == 0 for watcher in agent.health().watchers)


def test_every_session_tells_an_attached_watcher() -> None:
    seen = Seen()
    agent = agent_of([reply(text="done")] * 2)
    session = agent.session()
    agent.attach(seen)
    run(agent.run("one"))
    run(session.run("two"))
    assert {event.run_id for event in seen.events} == {agent.last_run_id, session.last_run_id}
