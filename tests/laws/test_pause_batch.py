"""A pause in the middle of a batch loses nothing, repeats nothing, and changes nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from asked import DONE, NO, YES, Reads, Rule, Till, adds, asks, paused, pays, posted, until_asked
from footprint_core import ToolMessage, allow, pause_here, tool
from footprint_core.facts import PauseAnswered, ToolIntended
from footprint_core.providers import call, reply
from ruled import wire
from story import answered, facts_of, run

TWICE = [False, True]


@pytest.mark.parametrize("parallel", TWICE)
def test_the_answered_call_is_finished_first_and_then_the_rest_of_the_batch_in_order(parallel: bool) -> None:
    till, behind = Till(), Rule("behind")
    agent = till.agent(pays(1, 500, 2, 3), [asks(), behind], parallel_tools=parallel)

    async def go() -> Any:
        pause = await until_asked(agent)
        assert till.paid == [1]
        return answered(await agent.resume(posted(pause.checkpoint), YES))

    ended = run(go())
    assert till.paid == [1, 500, 2, 3]
    assert [c.args["amount"] for c in behind.shown] == [1, 500, 2, 3]
    results = [m for m in till.model.requests[1].messages if isinstance(m, ToolMessage)]
    assert [(m.call_id, m.text) for m in results] == [
        (f"c{i}", f'{{"paid":{amount}}}') for i, amount in enumerate([1, 500, 2, 3])
    ]
    assert till.ended(ended.run_id) == [("ran", True)] * 4
    intended = [f.call_id for f in till.facts(ended.run_id) if isinstance(f, ToolIntended)]
    assert intended == ["c0", "c1", "c2", "c3"]


def test_a_declined_call_is_finished_before_the_rest_of_the_batch_too() -> None:
    till = Till()
    agent = till.agent(pays(1, 500, 2), [asks()])

    async def go() -> Any:
        return answered(await agent.resume((await until_asked(agent)).checkpoint, NO))

    ended = run(go())
    assert till.paid == [1, 2]
    assert till.ended(ended.run_id) == [("ran", True), ("denied", False), ("ran", True)]


@pytest.mark.parametrize("parallel", TWICE)
def test_what_ran_before_a_pause_is_never_run_again_by_another_agent(parallel: bool) -> None:
    first, second = Till(), Till()
    second.ledger = first.ledger
    pause = run(until_asked(first.agent(pays(1, 2, 500), [asks()], parallel_tools=parallel)))
    answered(run(second.agent(DONE, [asks()], parallel_tools=parallel).resume(posted(pause.checkpoint), YES)))
    assert first.paid == [1, 2]
    assert second.paid == [500]


@pytest.mark.parametrize("parallel", TWICE)
def test_a_remaining_call_may_pause_again_and_each_resume_answers_one_question(parallel: bool) -> None:
    till = Till()

    @tool(name="person")
    def person(amount: int) -> Any:
        till.paid.append(-amount)
        pause_here(amount)

    calls = [
        call("c0", "pay", {"amount": 500}),
        call("c1", "person", {"amount": 7}),
        call("c2", "pay", {"amount": 600}),
        call("c3", "person", {"amount": 8}),
    ]
    agent = till.agent([reply(calls=calls), DONE], [asks()], till.pay(), person, parallel_tools=parallel)

    async def go() -> Any:
        asked = []
        outcome: Any = await until_asked(agent)
        for answer in (YES, "seven", NO, "eight"):
            asked.append(outcome.tool_call_id)
            outcome = await agent.resume(posted(outcome.checkpoint), answer)
        return asked, answered(outcome)

    asked, ended = run(go())
    assert asked == ["c0", "c1", "c2", "c3"]
    assert till.paid == [500, -7, -8]
    told = [f.call_id for f in till.facts(ended.run_id) if isinstance(f, PauseAnswered)]
    assert told == asked
    read = till.read()
    assert (read[0], read[1], read[3]) == ('{"paid":500}', "seven", "eight")
    assert "declined" in read[2]


def test_two_tools_that_asked_while_they_ran_together_are_answered_one_by_one_and_entered_once() -> None:
    till = Till()

    @tool(name="person")
    def person(amount: int) -> Any:
        till.paid.append(amount)
        pause_here(amount)

    agent = till.agent(pays(7, 8, name="person"), [], person, parallel_tools=True)

    async def go() -> Any:
        first = await until_asked(agent)
        assert sorted(till.paid) == [7, 8]
        second = paused(await agent.resume(posted(first.checkpoint), "one"))
        assert (first.data, second.data) == (7, 8)
        return answered(await agent.resume(posted(second.checkpoint), "two"))

    run(go())
    assert sorted(till.paid) == [7, 8]
    assert till.read() == ["one", "two"]


def turn(*, asking: bool, parallel: bool) -> tuple[Till, Any]:
    """Two batches of calls, of which some are asked about when somebody asks."""
    till = Till()
    gate = asks() if asking else Rule("four-eyes", lambda c: allow())
    said = [
        *pays(1, 500, 2)[:1],
        reply(calls=[call("d0", "pay", {"amount": 600}), call("d1", "pay", {"amount": 4})]),
        DONE,
    ]
    agent = till.agent(said, [adds(-1), gate, adds(-2, "more")], results=[Reads()], parallel_tools=parallel)

    async def go() -> Any:
        outcome: Any = await agent.run("go", identity="ada")
        while asking and hasattr(outcome, "checkpoint"):
            outcome = await agent.resume(posted(outcome.checkpoint), YES)
        return answered(outcome)

    return till, run(go())


@pytest.mark.parametrize("parallel", TWICE)
def test_a_run_that_was_paused_and_approved_equals_the_same_run_without_a_question(parallel: bool) -> None:
    (asked, one), (free, other) = turn(asking=True, parallel=parallel), turn(asking=False, parallel=parallel)
    assert one.text == other.text
    assert asked.paid == free.paid == [-2, 497, -1, 597, 1]
    assert [wire(r) for r in asked.model.requests] == [wire(r) for r in free.model.requests]

    def rows(ended: Any) -> list[dict[str, Any]]:
        place = {"position", "segment", "after_approval"}
        kept = [
            {name: value for name, value in facts_of(row).items() if name not in place}
            for row in ended.decisions
            if row.outcome != "ask" and row.answer != "person"
        ]
        # Calls that run together are decided about together, as far as nobody asks: call by call, then.
        return sorted(kept, key=lambda row: str(row["tool_call_id"])) if parallel else kept

    # A rule that asked has no row that it passed the call through.
    passed = [
        r for r in rows(other) if r["middleware"] != "four-eyes" or r["tool_call_id"] not in ("c1", "d0")
    ]
    assert rows(one) == passed
    assert asked.ended(one.run_id) == free.ended(other.run_id) == [("ran", True)] * 5
