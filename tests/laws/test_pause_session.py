"""An open question holds its session, can be dropped, and leaves run, segments and events in order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from asked import DONE, NO, YES, Reads, Rule, Till, asks, paused, pays, until_asked
from footprint_core import PendingQuestionError, approve_once, check_in_approved, pause_here, tool
from footprint_core.events import AgentConfigured, TurnEnded, TurnStarted
from footprint_core.providers import call, reply
from story import answered, run

ASKED = pays(500)[0]
TWICE = [DONE, ASKED, DONE, DONE]

DOORS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "run": lambda agent: agent.run("another"),
    "follow_up": lambda agent: agent.follow_up("another"),
    "run_typed": lambda agent: agent.run_typed("another"),
}


@pytest.mark.parametrize("door", DOORS)
def test_an_open_question_refuses_other_turns_and_stays_as_it_was(door: str) -> None:
    till = Till()
    agent = till.agent(TWICE, [asks()])

    async def go() -> None:
        await agent.run("hello")
        pause = paused(await agent.follow_up("pay"))
        entries, told = till.facts(pause.run_id), len(till.seen.events)
        for _ in range(2):
            with pytest.raises(PendingQuestionError, match=r"pay.*c0") as caught:
                await DOORS[door](agent)
            assert (caught.value.tool_name, caught.value.tool_call_id) == ("pay", "c0")
        assert agent.last_run_id == pause.run_id
        assert till.facts(pause.run_id) == entries
        assert (len(till.seen.events), len(till.model.requests)) == (told, 2)
        answered(await agent.resume(pause.checkpoint, YES))
        answered(await DOORS["run"](agent))

    run(go())
    assert till.paid == [500]


def test_run_sync_is_refused_by_an_open_question_too() -> None:
    till = Till()
    agent = till.agent(pays(500), [asks()])
    pause = paused(agent.run_sync("go"))
    with pytest.raises(PendingQuestionError):
        agent.run_sync("another")
    assert agent.last_run_id == pause.run_id


def test_another_session_is_held_back_by_no_question_of_this_one() -> None:
    till = Till()
    agent = till.agent([ASKED, DONE, DONE], [asks()])

    async def go() -> None:
        pause = await until_asked(agent)
        meanwhile = answered(await agent.session().run("meanwhile"))
        assert meanwhile.run_id != pause.run_id
        assert answered(await agent.resume(pause.checkpoint, NO)).run_id == pause.run_id

    run(go())
    assert till.paid == []


def test_an_abandoned_question_is_handed_back_and_the_next_turn_starts() -> None:
    till = Till()
    agent = till.agent([ASKED, DONE, DONE], [asks()])

    async def go() -> None:
        pause = await until_asked(agent)
        entries = till.facts(pause.run_id)
        dropped: Any = agent.abandon_pause()
        assert dropped is pause
        assert agent.abandon_pause() is None
        assert till.facts(pause.run_id) == entries
        other = answered(await agent.run("another"))
        assert other.run_id != pause.run_id
        # What was dropped can still be answered, by this session and in its own run.
        late = answered(await agent.resume(pause.checkpoint, YES))
        assert late.run_id == pause.run_id

    run(go())
    assert till.paid == [500]


def test_nothing_is_dropped_where_no_question_is_open() -> None:
    assert Till().agent(DONE).abandon_pause() is None


def test_an_agent_that_lacks_the_tool_runs_nothing_and_the_loop_goes_on() -> None:
    till, reads = Till(), Reads()
    rules = [asks(), Rule("behind")]
    pause = run(until_asked(till.agent(pays(500, 1), rules, results=[reads])))
    other = Till(till.ledger)

    @tool(name="else")
    def something_else() -> int:
        return 1

    agent = other.agent(DONE, rules, something_else, results=[reads])
    ended = answered(run(agent.resume(pause.checkpoint, YES)))
    assert ended.text == "done"
    assert ["no tool called pay" in text for text in other.read()] == [True, True]
    assert other.ended(ended.run_id) == [("unknown", False), ("unknown", False)]
    assert (till.paid, other.paid, reads.shown) == ([], [], [])


def test_a_tool_that_paused_itself_has_run_also_for_an_agent_that_lacks_it_now() -> None:
    @tool(name="pay")
    def pay(amount: int) -> Any:
        pause_here("how?")

    till = Till()
    pause = run(until_asked(till.agent(pays(500), [], pay)))

    @tool(name="else")
    def something_else() -> int:
        return 1

    other = Till(till.ledger)
    answered(run(other.agent(DONE, [], something_else).resume(pause.checkpoint, "by card")))
    assert other.read() == ["by card"]


def test_a_run_keeps_its_id_across_its_pauses_and_its_segments_count_from_one() -> None:
    till = Till()
    agent = till.agent(pays(500, 600), [asks()])

    async def go() -> None:
        first = await until_asked(agent)
        second = paused(await agent.resume(first.checkpoint, YES))
        ended = answered(await agent.resume(second.checkpoint, YES))
        assert first.run_id == second.run_id == ended.run_id == agent.last_run_id
        assert first.pause_id != second.pause_id
        assert {row.run_id for row in ended.decisions} == {ended.run_id}
        assert [first.checkpoint["segment"], second.checkpoint["segment"]] == [1, 2]

    run(go())
    configured = till.seen.of(AgentConfigured)
    assert [(e.segment, e.resumed) for e in configured] == [(1, False), (2, True), (3, True)]
    assert {e.run_id for e in till.seen.events} == {configured[0].run_id}
    assert [e.segment for e in till.seen.events] == sorted(e.segment for e in till.seen.events)


def test_every_segment_that_pauses_ends_with_turn_end_and_none_that_resumes_starts_a_turn() -> None:
    till = Till()

    @tool(name="person")
    def person(amount: int) -> Any:
        pause_here("how?")

    calls = [call("c0", "pay", {"amount": 500}), call("c1", "person", {"amount": 1})]
    agent = till.agent([reply(calls=calls), DONE], [asks()], till.pay(), person)

    async def go() -> None:
        first = await until_asked(agent)
        assert till.seen.types[-2:] == ["pause.request", "agent.turn_end"]
        second = paused(await agent.resume(first.checkpoint, YES))
        assert till.seen.types[-2:] == ["pause.request", "agent.turn_end"]
        answered(await agent.resume(second.checkpoint, "x"))

    run(go())
    assert [(e.segment, e.outcome) for e in till.seen.of(TurnEnded)] == [
        (1, "paused"),
        (2, "paused"),
        (3, "answered"),
    ]
    assert [e.segment for e in till.seen.of(TurnStarted)] == [1]
    for segment in (1, 2, 3):
        types = [e.type for e in till.seen.events if e.segment == segment]
        assert types[0] == "agent.run_configured"
        assert types[-1] == "agent.turn_end"


def test_a_remembered_approval_is_an_ordinary_rule_whose_row_names_the_person() -> None:
    till, once = Till(), approve_once(name="four-eyes")
    agent = till.agent([ASKED, DONE, ASKED, DONE], [once])

    async def go() -> Any:
        pause = await until_asked(agent)
        answered(await agent.resume(pause.checkpoint, check_in_approved(by="dana@ops")))
        once.remember(pause.detail, by="dana@ops")
        return answered(await agent.run("again"))

    (row,) = run(go()).decisions
    assert (row.middleware, row.outcome, row.answer, row.changed) == ("four-eyes", "allow", "given", False)
    assert row.why == "approved earlier by dana@ops"
    assert row.decided_by is None
    assert till.paid == [500, 500]


def test_a_declined_question_leaves_nothing_remembered() -> None:
    till, once = Till(), approve_once()
    agent = till.agent([ASKED, DONE, ASKED, DONE], [once])

    async def go() -> None:
        pause = await until_asked(agent)
        answered(await agent.resume(pause.checkpoint, NO))
        again = await until_asked(agent)
        assert again.detail == pause.detail

    run(go())
    assert till.paid == []
