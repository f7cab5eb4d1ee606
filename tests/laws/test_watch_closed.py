"""What a builder was given is closed with the agent: once, by the last that has it, unless it was opened."""

from __future__ import annotations

import asyncio
import io
import logging
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NoOpTracerProvider

import footprint_core
from footprint_core import Agent, LedgerWriteError, MemoryLedger, Recorder
from footprint_core.providers import Completed, reply
from footprint_observe import SqliteLedger
from recorders.console import Console
from recorders.otel_spans import OtelSpans
from story import Seen, answered, describe, run

DONE = reply(text="done")


class Closes(Seen):
    """A recorder that counts how often it was closed."""

    def __init__(self, id: str = "closes", *, raises: bool = False) -> None:
        super().__init__(id)
        self.closed = 0
        self._raises = raises

    def flush(self, timeout: float, /) -> bool:
        return True

    def close(self, timeout: float, /) -> None:
        self.closed += 1
        if self._raises:
            raise RuntimeError


class Kept(MemoryLedger):
    """A ledger that counts how often it was closed."""

    closed = 0

    async def close(self) -> None:
        self.closed += 1


def agent_of(*watchers: Any, ledger: Any = None, replies: tuple[Completed, ...] = (DONE,)) -> Agent:
    return describe(replies, watch=watchers, ledger=ledger)[0].build()


def test_a_recorder_is_a_watcher_with_a_name_that_can_be_flushed_and_closed() -> None:
    assert "Recorder" in footprint_core.__all__
    console = Console(file=io.StringIO())
    recorders: list[Recorder] = [Closes(), console, OtelSpans(tracer_provider=TracerProvider())]
    assert all(isinstance(one, Recorder) for one in recorders)
    assert [one.id for one in recorders] == ["closes", "console", "otel_spans"]
    assert all(one.flush(1.0) for one in recorders)
    assert not isinstance(Seen(), Recorder)
    assert not isinstance(Kept(), Recorder)
    console.close(1.0)


@pytest.mark.parametrize("raises", [False, True])
def test_closing_is_delivered_at_most_once_however_often_an_agent_is_closed(raises: bool) -> None:
    recorder, other, ledger = Closes(raises=raises), Closes("other"), Kept()
    agent = agent_of(recorder, other, recorder, ledger=ledger)

    async def story() -> None:
        async with agent:
            await agent.run("go")
        await agent.close()
        await asyncio.gather(agent.close(), agent.close())

    run(story())
    assert (recorder.closed, other.closed, ledger.closed) == (1, 1, 1)


def test_what_two_agents_share_is_closed_by_the_last_of_them() -> None:
    recorder, ledger = Closes(), Kept()
    first, second = (agent_of(recorder, ledger=ledger) for _ in range(2))
    run(first.close())
    run(first.close())
    assert (recorder.closed, ledger.closed) == (0, 0)
    answered(run(second.run("go")))
    run(second.close())
    assert (recorder.closed, ledger.closed) == (1, 1)


def test_what_was_attached_is_its_callers_and_is_not_closed() -> None:
    attached = Closes()
    agent = agent_of()
    agent.attach(attached)
    run(agent.close())
    assert attached.closed == 0


def test_a_ledger_its_caller_opened_outlives_the_agents_inside(tmp_path: Path) -> None:
    async def story() -> None:
        async with SqliteLedger(tmp_path / "rows.db") as ledger:
            for _ in range(2):
                async with agent_of(ledger=ledger) as agent:
                    answered(await agent.run("go"))
                    assert agent.last_run_id is not None
                    assert ledger.entries(agent.last_run_id)
        last = agent_of(ledger=ledger)
        with pytest.raises(LedgerWriteError):
            await last.run("go")

    run(story())


def test_a_ledger_its_caller_did_not_open_is_closed_with_the_agent(tmp_path: Path) -> None:
    async def story() -> None:
        ledger = SqliteLedger(tmp_path / "rows.db")
        async with agent_of(ledger=ledger) as agent:
            answered(await agent.run("go"))
        with pytest.raises(LedgerWriteError):
            await agent_of(ledger=ledger).run("go")

    run(story())


def test_an_opened_recorder_is_closed_when_its_block_is_left_or_by_the_agent_that_still_has_it() -> None:
    file = io.StringIO()

    async def story(console: Console) -> Agent:
        async with agent_of(console) as agent:
            answered(await agent.run("go"))
        other = agent_of(console)
        answered(await other.run("go"))
        return other

    with Console(file=file) as console:
        other = run(story(console))
        assert console.flush(10.0)
        assert file.getvalue().count("answered") == 2
    # The agent that still has it may go on.
    assert console.dropped == 0
    run(other.close())
    lost = agent_of(console)
    answered(run(lost.run("go")))
    assert console.dropped > 0
    run(lost.close())


def test_spans_that_nobody_records_are_said_so_once_in_health_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spans = OtelSpans(tracer_provider=NoOpTracerProvider())
    agent = agent_of(spans, replies=(DONE, DONE, DONE))
    with caplog.at_level(logging.WARNING, "footprint"):
        for _ in range(3):
            answered(run(agent.run("go")))
    (health,) = agent.health().watchers
    (notice,) = health.notices
    assert "records nothing" in notice
    assert [record.getMessage() for record in caplog.records] == [notice]
    assert health.failures == 0


def test_spans_that_are_recorded_have_nothing_to_say() -> None:
    agent = agent_of(OtelSpans(tracer_provider=TracerProvider(shutdown_on_exit=False)))
    answered(run(agent.run("go")))
    assert agent.health().watchers[0].notices == ()
