"""A person gives a run up: its end is on record with their name, and nothing continues it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from file_ledger import on_file, select
from footprint_core import (
    Agent,
    InvalidRunInputError,
    Ledger,
    MemoryLedger,
    Pause,
    RecoverError,
    RunTakenOverError,
    StaleDecisionError,
    abandon_run,
    ask,
    before_tool,
    check_in_approved,
    tool,
)
from footprint_core.events import TurnEnded
from footprint_core.facts import (
    Decided,
    ModelAsked,
    PauseOpened,
    RunAbandoned,
    RunConfigured,
    SegmentEnded,
    ToolIntended,
)
from footprint_core.ledger import Batch, Entry
from footprint_core.providers import call, reply
from prefixes import cut_behind, facts_of_run
from story import Seen, answered, describe, run

PAYS = (reply(calls=[call("1", "pay", {"amount": 5})]), reply(text="ok"))
YES: Any = check_in_approved(by="dana")


@tool
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def agent_of(ledger: Ledger, *watchers: Any, asks: bool = False, replies: Any = PAYS) -> Agent:
    rule = before_tool("asks", version="1")(lambda _: ask("Pay?"))
    act: Any = {"before_tool": [rule]} if asks else None
    return describe(replies, pay, ledger=ledger, watch=watchers, act=act)[0].build()


def died(kind: type[Any] = ToolIntended) -> tuple[MemoryLedger, str]:
    whole = MemoryLedger()
    run_id = answered(run(agent_of(whole).run("pay"))).run_id
    return cut_behind(whole, run_id, kind), run_id


def ends(ledger: Ledger, run_id: str) -> list[Any]:
    """The facts that end or give up, in order."""
    facts = facts_of_run(ledger, run_id)
    return [
        fact.outcome if isinstance(fact, SegmentEnded) else (fact.by, fact.reason)
        for fact in facts
        if isinstance(fact, SegmentEnded | RunAbandoned)
    ]


def test_a_run_whose_process_died_ends_as_abandoned_by_whoever_gave_it_up() -> None:
    ledger, run_id = died()
    run(abandon_run(ledger, run_id, by="dana@ops", reason="the bank was down"))
    assert ends(ledger, run_id) == [("dana@ops", "the bank was down"), "abandoned"]
    (end,) = (fact for fact in facts_of_run(ledger, run_id) if isinstance(fact, SegmentEnded))
    assert (end.iterations, end.input_tokens, end.output_tokens) == (1, 10, 5)


def test_the_question_of_a_run_that_was_given_up_takes_no_answer(tmp_path: Path) -> None:
    for ledger in (MemoryLedger(), on_file(tmp_path / "l.db")):
        agent = agent_of(ledger, asks=True)
        paused = run(agent.run("pay"))
        assert isinstance(paused, Pause)
        run(abandon_run(ledger, paused.run_id, by="dana", reason="no answer"))
        assert ends(ledger, paused.run_id) == ["paused", ("dana", "no answer"), "abandoned"]
        before = ledger.entries(paused.run_id)
        for answering in (agent, agent_of(ledger, asks=True, replies=PAYS[1:])):
            with pytest.raises(StaleDecisionError):
                run(answering.resume(paused.checkpoint, YES))
        assert ledger.entries(paused.run_id) == before
        run(ledger.close())
    path = tmp_path / "l.db"
    assert select(path, "SELECT outcome, segments FROM runs") == [("abandoned", 1)]
    assert select(path, "SELECT open FROM pauses") == [(0,)]


def test_watchers_are_told_of_the_end_of_a_segment_that_had_none() -> None:
    ledger, run_id = died()
    seen = Seen()
    run(agent_of(ledger, seen).abandon(run_id, by="dana", reason="stuck"))
    (event,) = seen.events
    assert isinstance(event, TurnEnded)
    assert (event.outcome, event.run_id, event.segment) == ("abandoned", run_id, 1)
    assert (event.iteration_count, event.total_input_tokens) == (1, 10)


def test_a_segment_that_paused_is_not_told_to_end_twice_and_its_session_begins_anew() -> None:
    seen, ledger = Seen(), MemoryLedger()
    agent = agent_of(ledger, seen, asks=True, replies=[PAYS[0], PAYS[1]])
    paused = run(agent.run("pay"))
    assert isinstance(paused, Pause)
    run(agent.abandon(paused.run_id, by="dana", reason="no answer"))
    assert [event.outcome for event in seen.of(TurnEnded)] == ["paused"]
    assert answered(run(agent.run("something else"))).text == "ok"


def test_no_event_says_who_gave_a_run_up_or_why() -> None:
    ledger, run_id = died()
    seen = Seen()
    run(agent_of(ledger, seen).abandon(run_id, by="CANARY-BY", reason="CANARY-WHY"))
    assert seen.events
    assert "CANARY" not in repr(seen.events)


def test_a_run_that_is_over_or_given_up_or_not_there_is_not_given_up() -> None:
    ledger = MemoryLedger()
    over = answered(run(agent_of(ledger).run("pay"))).run_id
    with pytest.raises(RecoverError, match=f"{over} is over, it is answered"):
        run(abandon_run(ledger, over, by="dana", reason="r"))
    shorter, run_id = died()
    run(abandon_run(shorter, run_id, by="dana", reason="r"))
    with pytest.raises(RecoverError, match="was given up before"):
        run(abandon_run(shorter, run_id, by="dana", reason="r"))
    with pytest.raises(RecoverError, match="that was given is not in this ledger") as raised:
        run(abandon_run(shorter, "the password is hunter2!", by="dana", reason="r"))
    assert "hunter2" not in str(raised.value)
    no_text: Any = None
    with pytest.raises(RecoverError, match="as a text"):
        run(abandon_run(shorter, no_text, by="dana", reason="r"))


@pytest.mark.parametrize("given", ["", "  ", None, 5])
def test_who_gives_a_run_up_and_why_must_be_said(given: Any) -> None:
    ledger, run_id = died()
    before = ledger.entries(run_id)
    with pytest.raises(InvalidRunInputError, match="by"):
        run(abandon_run(ledger, run_id, by=given, reason="r"))
    with pytest.raises(InvalidRunInputError, match="reason"):
        run(abandon_run(ledger, run_id, by="dana", reason=given))
    assert ledger.entries(run_id) == before


def test_a_segment_that_a_recovery_closed_is_not_ended_a_second_time() -> None:
    ledger, run_id = died(ModelAsked)
    at = len(ledger.entries(run_id)) + 1
    end = SegmentEnded(outcome="abandoned", iterations=1, input_tokens=0, output_tokens=0, duration_us=1)
    ledger.append_inline(Batch(run_id=run_id, segment=1, entries=(Entry(position=at, time=1, fact=end),)))
    run(abandon_run(ledger, run_id, by="dana", reason="r"))
    assert ends(ledger, run_id) == ["abandoned", ("dana", "r")]
    with pytest.raises(RecoverError, match="abandoned by a person"):
        run(agent_of(ledger).recover(run_id))


def test_a_run_that_came_here_behind_a_pause_can_be_given_up() -> None:
    first = agent_of(MemoryLedger(), asks=True)
    paused = run(first.run("pay"))
    assert isinstance(paused, Pause)

    class Stops(MemoryLedger):
        """Takes what comes along, and nothing of what goes on."""

        def append_inline(self, batch: Batch, /) -> Any:
            if any(isinstance(entry.fact, RunConfigured) for entry in batch.entries):
                raise RunTakenOverError("Gone.")
            return super().append_inline(batch)

    here = Stops()
    with pytest.raises(StaleDecisionError):
        run(agent_of(here, asks=True, replies=PAYS[1:]).resume(paused.checkpoint, YES))
    kinds = [type(fact) for fact in facts_of_run(here, paused.run_id)]
    assert kinds == [Decided, PauseOpened]
    run(abandon_run(here, paused.run_id, by="dana", reason="r"))
    assert ends(here, paused.run_id) == [("dana", "r"), "abandoned"]


def test_a_process_that_still_runs_it_stops_at_its_next_step() -> None:
    async def play() -> None:
        ledger = MemoryLedger()
        entered, go_on = asyncio.Event(), asyncio.Event()

        @tool(name="pay")
        async def slow(amount: int) -> str:
            entered.set()
            await go_on.wait()
            return f"paid {amount}"

        agent = describe(PAYS, slow, ledger=ledger)[0].build()
        running = asyncio.ensure_future(agent.run("pay"))
        await entered.wait()
        run_id = agent.last_run_id or ""
        await abandon_run(ledger, run_id, by="dana", reason="r")
        go_on.set()
        with pytest.raises(RunTakenOverError):
            await running
        assert ends(ledger, run_id) == [("dana", "r"), "abandoned"]

    run(play())
