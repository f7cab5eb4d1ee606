"""A watcher that raises harms nobody, and is told of once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from footprint_core.events import Event, ObserverError
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

REPLIES = [reply(calls=[call("1", "look", {"q": "x"})]), reply(text="done")]


def look(q: str) -> str:
    return q * 2


class Raises(Seen):
    """A watcher that raises at events of some names, or at all."""

    def __init__(self, id: str, *names: str, error: type[BaseException] = RuntimeError) -> None:
        super().__init__(id)
        self._names = names
        self._error = error

    def on_event(self, event: Event, /) -> None:
        super().on_event(event)
        if not self._names or event.type in self._names:
            raise self._error("the card is 4111")


@pytest.mark.parametrize(
    "error", [RuntimeError, asyncio.CancelledError, StopIteration, GeneratorExit, BaseException]
)
def test_who_raises_is_isolated_and_goes_on_being_told(error: type[BaseException]) -> None:
    before, raises, behind = Seen("before"), Raises("raises", error=error), Seen("behind")
    agent = describe(REPLIES, look, watch=[before, raises, behind])[0].build()
    assert answered(run(agent.run("go"))).text == "done"
    assert before.events == behind.events
    assert raises.events == [event for event in before.events if not isinstance(event, ObserverError)]
    assert [one.failures for one in agent.health().watchers] == [0, len(raises.events), 0]


def test_the_first_failure_in_a_run_is_reported_and_logged_and_every_one_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    raises, seen = Raises("raises", "agent.turn_start", "stream.llm_end"), Seen()
    agent = describe([*REPLIES, reply(text="again")], look, watch=[raises, seen])[0].build()
    run(agent.run("go"))
    run(agent.follow_up("on"))
    reports = [(one.watcher, one.error_class, one.event, one.count) for one in seen.of(ObserverError)]
    assert reports == [
        ("raises", "RuntimeError", "agent.turn_start", 1),
        ("raises", "RuntimeError", "agent.turn_start", 4),
    ]
    assert agent.health().watchers[0].failures == 5
    assert [record.name for record in caplog.records] == ["footprint"] * 2
    assert all("raises" in record.getMessage() for record in caplog.records)
    assert "4111" not in caplog.text


def test_a_subscriber_that_raises_is_treated_the_same_way(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    agent = describe(REPLIES, look, watch=[seen])[0].build()

    def breaks(_: Event) -> None:
        raise RuntimeError("the card is 4111")

    heard: list[Any] = []
    agent.on("agent.*", breaks)
    agent.on("*", heard.append)
    assert answered(run(agent.run("go"))).text == "done"
    (report,) = seen.of(ObserverError)
    assert (report.error_class, report.event, report.count) == ("RuntimeError", "agent.run_configured", 1)
    assert "breaks" in report.watcher
    assert heard == seen.events
    agents = [event for event in seen.events if event.type.startswith("agent.")]
    assert agent.health().subscribers[0].failures == len(agents)
    assert len(caplog.records) == 1


def test_a_report_goes_to_everybody_but_whom_it_is_about() -> None:
    one, two, seen = Raises("one"), Raises("two"), Seen()
    agent = describe(REPLIES, look, watch=[one, two, seen])[0].build()
    run(agent.run("go"))
    assert [report.watcher for report in seen.of(ObserverError)] == ["one", "two"]
    assert [report.watcher for report in one.of(ObserverError)] == ["two"]
    assert [report.watcher for report in two.of(ObserverError)] == ["one"]


def test_a_failure_while_a_report_is_handled_reports_nothing_further() -> None:
    first, second, seen = Raises("first"), Raises("second", "observer.error"), Seen()
    agent = describe(REPLIES, look, watch=[first, second, seen])[0].build()
    assert answered(run(agent.run("go"))).text == "done"
    assert [report.watcher for report in seen.of(ObserverError)] == ["first"]
    assert agent.health().watchers[1].failures == 1
