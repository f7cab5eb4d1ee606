"""What is finished stays finished: no call runs twice, none is lost, and each has exactly one result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from complaints.people import DONE, NO, PAUSING, YES, Till, answer_to, four_eyes, paused, pays, through_json
from file_ledger import on_file, select
from footprint_core import (
    AssistantMessage,
    MemoryLedger,
    StaleDecisionError,
    ToolMessage,
    after_tool,
    allow,
    ask_human,
    before_tool,
    deny,
)
from footprint_core.events import TurnEnded
from footprint_core.facts import CallAnswered, ToolIntended
from footprint_core.messages import ToolCall
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run


@pytest.mark.parametrize("elsewhere", ["here", "another agent", "another ledger"])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", PAUSING)
def test_c038_no_answer_runs_again_what_had_finished_before_the_question(
    name: str, parallel: bool, elsewhere: str
) -> None:
    till, ledger = Till(), MemoryLedger()
    calls = [
        call("a", "pay", {"amount": 1}),
        call("b", name, {"amount": 500}),
        call("c", "pay", {"amount": 2}),
    ]
    first, model = till.agent(reply(calls=calls), DONE, ledger=ledger, parallel_tools=parallel)
    pause = paused(run(first.run("go")))
    did = list(till.did)
    assert ("pay", 1) in did
    agent = first
    if elsewhere != "here":
        kept = ledger if elsewhere == "another agent" else MemoryLedger()
        agent, model = till.agent(DONE, ledger=kept, parallel_tools=parallel)
    answered(run(agent.resume(through_json(pause.checkpoint), answer_to(pause))))
    assert till.did[: len(did)] == did
    assert sorted(till.did) == sorted([("pay", 1), (name, 500), ("pay", 2)])
    results = [m.call_id for m in model.requests[-1].messages if isinstance(m, ToolMessage)]
    assert results == ["a", "b", "c"]


def test_c038_what_a_tool_did_before_it_asked_is_not_done_again() -> None:
    effects: list[str] = []

    def order(item: str) -> str:
        effects.append(f"reserved {item}")
        ask_human("Which size?")

    builder, model = describe([reply(calls=[call("c1", "order", {"item": "shirt"})]), DONE], order)
    agent = builder.build()

    async def story() -> None:
        pause = paused(await agent.run("go"))
        answered(await agent.resume(through_json(pause.checkpoint), "large"))

    run(story())
    assert effects == ["reserved shirt"]
    assert model.requests[1].messages[-1].text == "large"


EVERYTHING = [
    call("runs", "pay", {"amount": 1}),
    call("asked", "pay", {"amount": 500}),
    call("again", "pay", {"amount": 2}),
    call("again", "pay", {"amount": 3}),
    call("denied", "pay", {"amount": 13}),
    call("withheld", "pay", {"amount": 14}),
    call("unknown", "nobody", {}),
    call("wrong", "pay", {"amount": "x"}),
    ToolCall(id="no-object", name="pay", args_json="[]"),
    call("consent", "wire", {"amount": 500}),
    call("person", "person", {"amount": 500}),
    call("person-2", "person", {"amount": 600}),
    call("raises", "raises", {}),
]


@pytest.mark.parametrize("answer", [YES, NO], ids=["approved", "declined"])
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
def test_c042_every_call_has_exactly_one_result_in_every_request(
    parallel: bool, streaming: bool, answer: Any
) -> None:
    def raises() -> None:
        raise LookupError("gone")

    till, ledger = Till(), MemoryLedger()
    said = [reply(calls=EVERYTHING), reply(calls=EVERYTHING), DONE]
    unlucky = before_tool("unlucky")(lambda c: deny("no") if c.args.get("amount") == 13 else allow())
    hides = after_tool("hides")(lambda c: deny("withheld") if c.args.get("amount") == 14 else allow())
    builder, model = describe(said, *till.tools(), raises, ledger=ledger, parallel_tools=parallel)
    model.streaming = streaming
    agent = builder.tool_middleware(unlucky, four_eyes, hides).build()

    async def story() -> str:
        outcome: Any = await agent.run("go")
        questions = 0
        while not hasattr(outcome, "text"):
            questions += 1
            said = answer_to(outcome) if outcome.tool_name == "person" else answer
            outcome = await agent.resume(through_json(outcome.checkpoint), said)
        assert questions == 8
        run_id: str = outcome.run_id
        return run_id

    run_id = run(story())
    assert len(model.requests) == 3
    for request in model.requests:
        wanted: list[str] = []
        for message in request.messages:
            if isinstance(message, AssistantMessage):
                assert not wanted
                wanted = [one.id for one in message.calls]
                assert len(set(wanted)) == len(wanted)
            elif isinstance(message, ToolMessage):
                assert message.call_id == wanted.pop(0)
        assert not wanted
    facts = [entry.fact for entry in ledger.entries(run_id)]
    ends = [(f.iteration, f.call_id) for f in facts if isinstance(f, CallAnswered)]
    assert len(ends) == len(set(ends)) == 2 * len(EVERYTHING)


@pytest.mark.parametrize("name", PAUSING)
def test_c054_an_approval_runs_a_call_once_under_a_key_that_is_its_own(name: str, tmp_path: Path) -> None:
    till, path = Till(), tmp_path / "f.db"
    ledger = on_file(path)
    agent, _ = till.agent(pays(500, 501, name=name), DONE, ledger=ledger)

    async def story() -> str:
        first = paused(await agent.run("go"))
        second = paused(await agent.resume(first.checkpoint, answer_to(first)))
        answered(await agent.resume(second.checkpoint, answer_to(second)))
        for used in (first, second):
            with pytest.raises(StaleDecisionError):
                await agent.resume(used.checkpoint, answer_to(used))
        return first.run_id

    run_id = run(story())
    assert till.did == [(name, 500), (name, 501)]
    # The key a tool was handed is the place of its intent, so what it did can be found by it.
    facts = [(e.position, e.fact) for e in ledger.entries(run_id)]
    intents = [f"{run_id}:{position}" for position, fact in facts if isinstance(fact, ToolIntended)]
    assert till.keys == intents
    assert len(set(intents)) == 2
    kept = select(
        path, "select run_id || ':' || position from facts where kind = 'tool.intended' order by id"
    )
    assert [key for (key,) in kept] == intents


class Counts:
    """A rule that counts its own calls."""

    name = "counts"

    def __init__(self) -> None:
        self.counted: list[str] = []

    def on_tool_call(self, asked: Any, /) -> Any:
        self.counted.append(f"call {asked.iteration} {asked.tool_call_id}")
        return allow()

    def on_tool_result(self, ended: Any, /) -> Any:
        self.counted.append(f"result {ended.iteration} {ended.tool_call_id}")
        return allow()

    def on_message(self, message: Any, /) -> Any:
        self.counted.append(message.phase)
        return allow()


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("name", PAUSING)
def test_c060_a_resume_restores_step_budget_and_counters_and_counts_nothing_twice(
    name: str, elsewhere: bool
) -> None:
    def told(pausing: bool) -> tuple[list[str], Any, Any]:
        rule, ledger, seen = Counts(), MemoryLedger(), Seen()
        amount = 500 if pausing else 50
        said = [pays(1), pays(2, amount, 3, name=name), pays(4), pays(5)]

        def agent(*said: Any) -> Any:
            till = Till()
            builder, _ = describe(said, *till.tools(), ledger=ledger, watch=[seen], max_iterations=3)
            return builder.tool_middleware(rule, four_eyes).message_middleware(rule).build()

        first = agent(*said, DONE)
        outcome: Any = run(first.run("go"))
        if pausing:
            going_on = agent(*said[2:], DONE) if elsewhere else first
            outcome = run(going_on.resume(through_json(outcome.checkpoint), answer_to(outcome)))
        end = seen.of(TurnEnded)[-1]
        return rule.counted, outcome.stopped_early, (end.iteration_count, end.total_input_tokens)

    assert told(pausing=True) == told(pausing=False)


@pytest.mark.parametrize("answer", [YES, NO], ids=["approved", "declined"])
@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("parallel", [False, True])
def test_c065_one_gated_call_in_a_batch_takes_no_free_call_with_it(
    parallel: bool, place: int, answer: Any
) -> None:
    till = Till()
    amounts = [1, 2, 3]
    amounts.insert(place, 500)
    agent, model = till.agent(pays(*amounts), DONE, parallel_tools=parallel)

    async def story() -> int:
        questions = 0
        outcome: Any = await agent.run("go")
        while not hasattr(outcome, "text"):
            questions += 1
            # Only the gated call is shown to a person, and its rule was asked about it once.
            assert [row.outcome for row in outcome.decisions].count("ask") == 1
            assert (outcome.tool_call_id, outcome.args) == (f"c{place}", {"amount": 500})
            outcome = await agent.resume(through_json(outcome.checkpoint), answer)
        return questions

    assert run(story()) == 1
    ran = sorted(amount for _, amount in till.did)
    assert ran == ([1, 2, 3, 500] if answer is YES else [1, 2, 3])
    texts = [m.text for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert [("declined" in text) for text in texts] == [a == 500 and answer is NO for a in amounts]


def test_c065_a_free_call_that_ran_is_on_record_before_a_person_is_asked() -> None:
    till, ledger = Till(), MemoryLedger()
    agent, _ = till.agent(pays(1, 500, 2), DONE, ledger=ledger, parallel_tools=True)
    pause = paused(run(agent.run("go")))
    finished = [e.fact.call_id for e in ledger.entries(pause.run_id) if isinstance(e.fact, CallAnswered)]
    assert finished == ["c0"]
    assert till.did == [("pay", 1)]
