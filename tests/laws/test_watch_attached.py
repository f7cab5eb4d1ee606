"""Who watches: handed over in order, each once, by an id, and detached by whoever attached."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from footprint_core import (
    Agent,
    BuilderError,
    DuplicateWatcherError,
    Subscription,
    allow,
    ask,
    before_tool,
    check_in_approved,
    is_paused,
    on_message,
)
from footprint_core.events import AgentConfigured, Event
from footprint_core.providers import Scripted, call, reply
from story import Seen, answered, describe, facts_of, run

REPLIES = [reply(calls=[call("1", "look", {"q": "x"})]), reply(text="done")]


def look(q: str) -> str:
    return q * 2


def agent_of(*watchers: Any, turns: int = 1) -> Agent:
    return describe([reply(text="done")] * turns, look, watch=watchers)[0].build()


class Notes(Seen):
    """A watcher that notes in a shared list that it was called."""

    def __init__(self, id: str, order: list[str]) -> None:
        super().__init__(id)
        self._order = order

    def on_event(self, event: Event, /) -> None:
        super().on_event(event)
        if isinstance(event, AgentConfigured):
            self._order.append(self.id)


def test_watching_takes_any_number_as_often_as_wanted_and_gives_the_builder_back() -> None:
    builder = Agent.create(provider=Scripted([reply(text="done")]), model="m", name="n")
    seen = [Seen(f"watcher {number}") for number in range(5)]
    assert builder.watch() is builder
    assert builder.watch(seen[0]).watch(*seen[1:4]).watch().watch(seen[4]) is builder
    answered(run(builder.build().run("go")))
    assert all(one.events == seen[0].events for one in seen)
    assert len(seen[0].events) > 5


def test_an_agent_nobody_watches_runs() -> None:
    assert answered(run(agent_of().run("go"))).text == "done"


def test_a_watcher_of_the_builder_hears_the_very_first_event_of_the_very_first_run() -> None:
    seen = Seen()
    agent = agent_of(seen)
    assert seen.events == []
    run(agent.run("go"))
    first = seen.events[0]
    assert isinstance(first, AgentConfigured)
    assert (first.segment, first.sequence, first.resumed) == (1, 1, False)


def test_the_first_handed_over_is_the_first_told_and_all_are_told_the_same() -> None:
    order: list[str] = []
    watchers = [Notes(name, order) for name in ("one", "two", "three", "four")]
    builder = describe(REPLIES, look, watch=watchers[:2])[0].watch(watchers[2])
    agent = builder.build()
    agent.attach(watchers[3])
    run(agent.run("go"))
    assert order == ["one", "two", "three", "four"]
    assert all(one.events == watchers[0].events for one in watchers)


@pytest.mark.parametrize("calls", [1, 2])
def test_two_watchers_of_one_id_are_refused_by_name_when_the_agent_is_built(calls: int) -> None:
    builder = Agent.create(provider=Scripted([]), model="m", name="n").watch(Seen("fine"))
    pair = (Seen("twin"), Seen("twin"))
    for part in (pair,) if calls == 1 else ((pair[0],), (pair[1],)):
        builder.watch(*part)
    with pytest.raises(DuplicateWatcherError, match="twin") as refused:
        builder.build()
    assert refused.value.watcher == "twin"


def test_one_watcher_handed_over_twice_is_told_once() -> None:
    seen, other = Seen(), Seen("other")
    builder = describe([reply(text="done")] * 2, watch=[seen, other, seen])[0].watch(seen).watch(other, seen)
    agent = builder.build()
    agent.attach(seen)
    run(agent.run("go"))
    assert [one.watcher for one in agent.health().watchers] == ["seen", "other"]
    assert seen.types.count("agent.turn_end") == 1
    assert seen.events == other.events


def test_attaching_another_watcher_of_an_id_is_refused_and_the_first_goes_on() -> None:
    built, attached = Seen("built"), Seen("attached")
    agent = agent_of(built)
    agent.attach(attached)
    for name in ("built", "attached"):
        with pytest.raises(DuplicateWatcherError) as refused:
            agent.attach(Seen(name))
        assert refused.value.watcher == name
    run(agent.run("go"))
    assert built.events == attached.events
    assert built.events


def test_a_watcher_without_an_id_or_without_a_way_to_tell_it_is_refused_with_advice() -> None:
    agent = agent_of()
    blank: list[Any] = [Seen(""), Seen("\t "), type("NoId", (), {"on_event": print})()]
    deaf: list[Any] = [type("Deaf", (), {"id": "deaf"})(), type("Deaf", (), {"id": "deaf", "on_event": 3})()]
    for watchers, advice in ((blank, "give it a non-blank `id`"), (deaf, "on_event")):
        for watcher in watchers:
            for door in (agent_of, agent.attach):
                with pytest.raises(BuilderError, match=advice):
                    door(watcher)
    assert agent.health().watchers == ()


def test_an_attachment_ends_when_its_handle_is_called_or_left_and_calling_it_twice_is_harmless() -> None:
    called, left, stays = Seen("called"), Seen("left"), Seen("stays")
    agent = agent_of(stays, turns=2)
    ends = agent.attach(called)
    assert isinstance(ends, Subscription)
    with agent.attach(left) as handle:
        run(agent.run("one"))
    ends()
    ends()
    handle()
    run(agent.run("two"))
    assert [one.types.count("agent.turn_end") for one in (called, left, stays)] == [1, 1, 2]
    assert [one.watcher for one in agent.health().watchers] == ["stays"]


def test_who_comes_during_a_run_hears_the_next_segment_and_who_leaves_hears_nothing_more() -> None:
    comes, leaves, stays = Seen("comes"), Seen("leaves"), Seen("stays")
    subscriptions: list[Subscription] = []

    def swaps(_: object) -> Any:
        agent.attach(comes)
        subscriptions[0]()
        return ask("Really?")

    act: Any = {"before_tool": [before_tool("swaps")(swaps)]}
    agent = describe(REPLIES, look, act=act, watch=[stays])[0].build()
    subscriptions.append(agent.attach(leaves))
    paused = run(agent.run("go"))
    assert is_paused(paused)
    assert comes.events == []
    assert 0 < len(leaves.events) < len(stays.events)
    assert leaves.events == stays.events[: len(leaves.events)]
    answered(run(agent.resume(paused.checkpoint, check_in_approved(by="dana"))))
    assert comes.events == [event for event in stays.events if event.segment == 2]
    assert {event.segment for event in leaves.events} == {1}


@pytest.mark.parametrize("watchers", [1, 30])
def test_watchers_change_no_request_no_row_and_no_answer(watchers: int) -> None:
    act: Any = {
        "input": [on_message("in")(lambda _: allow())],
        "before_tool": [before_tool("before")(lambda _: allow({"q": "zz"}, why="because"))],
    }
    bare, bare_model = describe(REPLIES, look, act=act)
    watched, watched_model = describe(REPLIES, look, act=act)
    agent = watched.build()
    ends = [agent.attach(Seen(f"watcher {number}")) for number in range(watchers)]
    late = count()

    def restless(_: Event) -> None:
        if ends:
            ends.pop()()
        agent.attach(Seen(f"late {next(late)}"))

    agent.on("*", restless)
    one, two = answered(run(bare.build().run("go"))), answered(run(agent.run("go")))
    assert one.text == two.text
    assert [facts_of(row) for row in one.decisions] == [facts_of(row) for row in two.decisions]
    assert bare_model.requests == watched_model.requests
    assert agent.health().subscribers[0].failures == 0
