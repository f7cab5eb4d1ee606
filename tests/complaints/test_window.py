"""A window lets the oldest leave, once and for good, and touches nothing but what is sent."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from complaints.people import DONE, YES, paused
from complaints.windows import FILLER, KINDS, agent_of, asks, converse, own, removals, said, strategies, whole
from file_ledger import select
from footprint_core import (
    AssistantMessage,
    Batch,
    LedgerWriteError,
    MemoryLedger,
    Receipt,
    ToolMessage,
    UserMessage,
    allow,
    ask,
    before_tool,
    sliding_window,
    summarize_oldest,
)
from footprint_core.facts import ModelAsked, WindowVisited
from footprint_core.messages import Message
from footprint_core.providers import Chunk, Completed, ModelRequest, reply
from story import answered, facts_of, run

TURNS = 6
OVER = (2, 4)


def _visits(ledger: MemoryLedger, runs: list[str]) -> list[WindowVisited]:
    entries = (entry for run_id in runs for entry in ledger.entries(run_id))
    return [entry.fact for entry in entries if isinstance(entry.fact, WindowVisited)]


def _played(kind: str | None, **options: Any) -> tuple[Any, MemoryLedger, list[str]]:
    ledger = MemoryLedger()
    window = None if kind is None else strategies()[kind]
    agent, model = agent_of(said(TURNS, over=OVER), window, ledger=ledger, **options)
    return model, ledger, run(converse(agent, TURNS))


@pytest.mark.parametrize("pins", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_c094_what_left_never_comes_back_and_its_leaving_is_recorded_once(kind: str, pins: int) -> None:
    model, ledger, runs = _played(kind, keep_last_tool_results=pins)
    left: list[Message] = []
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        shown = own(after.messages)
        assert not any(message in shown for message in left)
        left += [message for message in own(before.messages) if message not in shown]
    assert left
    recorded = [message for gone in removals(ledger, runs, model) for message in own(gone)]
    assert recorded == left


@pytest.mark.parametrize("kind", ["tokens", "summaries"])
def test_c094_between_two_removals_every_request_begins_with_the_one_before(kind: str) -> None:
    model, ledger, runs = _played(kind)
    places = [
        isinstance(entry.fact, WindowVisited) and bool(entry.fact.removed)
        for run_id in runs
        for entry in ledger.entries(run_id)
        if isinstance(entry.fact, ModelAsked | WindowVisited)
    ]
    # One mark for each request: whether something left right before it.
    marks = [before for before, here in zip([False, *places], places, strict=False) if not here]
    assert len(marks) == len(model.requests)
    assert sum(marks) == len(OVER)
    for before, after, trimmed in zip(model.requests, model.requests[1:], marks[1:], strict=False):
        begins = after.messages[: len(before.messages)] == before.messages[:]
        assert begins != trimmed


@pytest.mark.parametrize("kind", KINDS)
def test_c094_a_removal_outlives_a_pause_and_the_agent_that_made_it(kind: str) -> None:
    gate = before_tool("gate")(lambda c: ask("?") if c.args["n"] == 40 else allow())
    ledger = MemoryLedger()
    agent, model = agent_of(said(5, over=OVER), strategies()[kind], ledger=ledger, rules=[gate])

    async def until_asked() -> Any:
        await converse(agent, 4)
        return paused(await agent.follow_up(asks(4)))

    pause = run(until_asked())
    heir, later = agent_of(said(5, over=OVER)[13:], strategies()[kind], ledger=ledger, rules=[gate])
    answered(run(heir.resume(json.loads(json.dumps(pause.checkpoint)), YES)))
    shown = own(later.requests[0].messages)
    assert not any(m.text.startswith("request 0") for m in shown)
    last = own(model.requests[-1].messages)
    assert [m for m in shown if m in last] == [m for m in last if m in shown]


@pytest.mark.parametrize("pins", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_c095_a_window_begins_with_a_user_and_every_message_in_it_is_whole(kind: str, pins: int) -> None:
    model, _, _ = _played(kind, keep_last_tool_results=pins)
    everything = list(_played(None)[0].requests[-1].messages)
    for request in model.requests:
        assert isinstance(request.messages[0], UserMessage)
        assert all(message in everything for message in own(request.messages))
        wanted: list[str] = []
        for message in request.messages:
            if isinstance(message, AssistantMessage):
                assert not wanted
                wanted = [one.id for one in message.calls]
                assert all(one.args["n"] >= 0 for one in message.calls)
            elif isinstance(message, ToolMessage):
                assert message.call_id == wanted.pop(0)
                assert whole(message.text)
        assert not wanted


@pytest.mark.parametrize("keep", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [0, 20, 60, 100, 300])
def test_c095_a_window_of_short_messages_begins_with_a_user_too(size: int, keep: int) -> None:
    # A removal waits while its notice would be longer than what it replaces, and comes in the end.
    replies = [reply(text=f"answer {turn} {'x' * size}") for turn in range(30)]
    agent, model = agent_of(replies, sliding_window(keep_recent_turns=keep))

    async def story() -> None:
        for turn in range(30):
            answered(await (agent.follow_up(f"request {turn}") if turn else agent.run("request 0")))

    run(story())
    assert all(isinstance(request.messages[0], UserMessage) for request in model.requests)
    assert all(request.messages[-1].text.startswith("request") for request in model.requests)
    assert len(own(model.requests[-1].messages)) < 45


@pytest.mark.parametrize("turns", [1, 2, 6])
def test_c095_a_sliding_window_keeps_to_its_depth_whatever_refuses_to_leave(turns: int) -> None:
    agent, model = agent_of(said(turns), strategies()["sliding"], keep_last_tool_results=0)
    run(converse(agent, turns))
    for request in model.requests:
        opened = [m for m in request.messages if not isinstance(m, ToolMessage)]
        # The recent two, the request being answered, and the notice of what left.
        assert len(opened) <= 4


@pytest.mark.parametrize("pins", [0, 1])
def test_c095_when_the_oldest_turn_refuses_the_next_one_that_may_leaves(pins: int) -> None:
    ledger = MemoryLedger()
    agent, _ = agent_of(
        [one for one in said(4) if one.tool_calls] + [DONE],
        strategies()["sliding"],
        ledger=ledger,
        keep_last_tool_results=pins,
    )
    runs = run(converse(agent, 1))
    first = next(visit for visit in _visits(ledger, runs) if visit.removed)
    assert (first.refusals[0].reason, first.refusals[0].message_index) == ("current-request", 0)
    assert first.removed[0] == 1


class Stops(MemoryLedger):
    """Takes no append with a removal in it, while it is told so."""

    refuses = True

    def append_inline(self, batch: Batch, /) -> Receipt:
        gone = any(isinstance(e.fact, WindowVisited) and e.fact.removed for e in batch.entries)
        if gone and self.refuses:
            raise LedgerWriteError("The disk is full; make room.")
        return super().append_inline(batch)


@pytest.mark.parametrize("kind", KINDS)
def test_c097_a_removal_that_is_not_on_record_did_not_happen(kind: str) -> None:
    ledger = Stops()
    agent, model = agent_of(said(TURNS, over=OVER), strategies()[kind], ledger=ledger)
    finished: list[str] = []

    async def story() -> None:
        with pytest.raises(LedgerWriteError):
            await converse(agent, TURNS, finished)
        # No request was made of a window that is on no record.
        assert all(own(request.messages) == list(request.messages) for request in model.requests)
        failed = agent.last_run_id or ""
        assert removals(ledger, [*finished, failed], model) == []
        ledger.refuses = False
        model._replies = (*model._replies[: len(model.requests)], DONE)
        answered(await (agent.follow_up("again") if finished else agent.run("again")))

    run(story())
    # The conversation is the one before the turn that failed, with nothing missing of it.
    free, said_before = agent_of([*said(len(finished)), DONE], None)
    run(converse(free, len(finished)))
    answered(run(free.follow_up("again") if finished else free.run("again")))
    gone = [
        e.fact.removed for e in ledger.entries(agent.last_run_id or "") if isinstance(e.fact, WindowVisited)
    ]
    shown = own(model.requests[-1].messages)
    everything = list(said_before.requests[-1].messages)
    assert len(shown) + sum(map(len, gone)) == len(everything)
    assert shown == [message for message in everything if message in shown]


class Hangs:
    """A summarizer that never comes to an end."""

    name = "hangs"

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def reply(self, _request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self.asked.set()
        yield Chunk(text="so far")
        await asyncio.Event().wait()


def test_c097_a_turn_that_is_cancelled_while_a_summary_is_written_leaves_the_old_window() -> None:
    async def story() -> None:
        hangs, ledger = Hangs(), MemoryLedger()
        window = summarize_oldest(threshold_tokens=100, keep_recent_turns=2, summarizer=hangs, model="s")
        agent, model = agent_of([*said(3, over=(2,))[:7], DONE], window, ledger=ledger)
        await converse(agent, 2)
        turn = asyncio.ensure_future(agent.follow_up(asks(2)))
        await asyncio.wait_for(hangs.asked.wait(), 10)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert _visits(ledger, [agent.last_run_id or ""]) == []
        answered(await agent.follow_up("again"))
        shown = model.requests[-1].messages
        assert [m.text for m in shown if isinstance(m, UserMessage)] == [asks(0), asks(1), "again"]
        assert len(own(model.requests[-1].messages)) == len(shown)

    run(story())


KILLED = """
import asyncio, os, signal, sys
from complaints.windows import agent_of, converse, said
from footprint_core import summarize_oldest
from footprint_observe import SqliteLedger

class Kills:
    name = "kills"

    def reply(self, request):
        os.kill(os.getpid(), signal.SIGKILL)

window = summarize_oldest(threshold_tokens=100, keep_recent_turns=2, summarizer=Kills(), model="s")
agent, _ = agent_of(said(3, over=(2,)), window, ledger=SqliteLedger(sys.argv[1]))
asyncio.run(converse(agent, 3))
"""


def test_c097_a_process_that_dies_in_the_middle_of_a_removal_leaves_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "f.db"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)],
        capture_output=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert select(path, "select count(*) from window_records") == [(0,)]
    assert select(path, "select outcome, count(*) from runs group by 1 order by 1") == [
        ("answered", 2),
        ("open", 1),
    ]
    assert select(path, "select count(*) from model_calls") == [(7,)]


@pytest.mark.parametrize("kind", KINDS)
def test_c098_the_ledger_of_a_trimmed_conversation_is_the_one_of_an_untrimmed_conversation(kind: str) -> None:
    rules = [before_tool("look")(lambda c: allow(why=f"looked at {c.args['n']}"))]
    _, trimmed, trimmed_runs = _played(kind, rules=rules)
    _, free, free_runs = _played(None, rules=rules)
    assert any(visit.removed for visit in _visits(trimmed, trimmed_runs))
    assert _told(trimmed, trimmed_runs) == _told(free, free_runs)
    rows = [facts_of(row) for run_id in trimmed_runs for row in trimmed.decisions(run_id)]
    others = [facts_of(row) for run_id in free_runs for row in free.decisions(run_id)]
    assert [{k: v for k, v in row.items() if k != "position"} for row in rows] == [
        {k: v for k, v in row.items() if k != "position"} for row in others
    ]
    assert str(_told(trimmed, trimmed_runs)).count(f"step 0 {FILLER}") == 1


def _told(ledger: MemoryLedger, runs: list[str]) -> list[Any]:
    """Every fact but the window's own and how long a request was, without ids and times."""
    told: list[Any] = []
    for run_id in runs:
        for entry in ledger.entries(run_id):
            if isinstance(entry.fact, WindowVisited | ModelAsked):
                continue
            fact = msgspec.to_builtins(entry.fact)
            told.append(
                {k: v for k, v in fact.items() if k not in {"duration_us", "follows", "window", "rules"}}
            )
    return told


@pytest.mark.parametrize("kind", KINDS)
def test_c098_every_removal_lists_the_messages_that_left_and_the_tools_whose_results_did(kind: str) -> None:
    model, ledger, runs = _played(kind)
    visits = [visit for visit in _visits(ledger, runs) if visit.removed]
    found = removals(ledger, runs, model)
    assert len(found) == len(visits)
    for visit, gone in zip(visits, found, strict=True):
        assert visit.removed == tuple(sorted(set(visit.removed)))
        assert visit.removed_messages == len(gone)
        assert visit.dropped_observations == (
            ("look",) if any(isinstance(message, ToolMessage) for message in gone) else ()
        )
