"""An answer belongs to one question, by its id; n questions take n answers, each of them once."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from complaints.people import DONE, NO, PAUSING, YES, Till, answer_to, four_eyes, paused, pays, through_json
from footprint_core import (
    DecisionRequiredError,
    InvalidRunInputError,
    MemoryLedger,
    MessageDeniedError,
    Pause,
    PauseAnswerRequiredError,
    PendingQuestionError,
    StaleDecisionError,
    ToolMessage,
    ToolResultContext,
    after_tool,
    allow,
    ask,
    before_tool,
    on_message,
)
from footprint_core.facts import PauseAnswered, PauseOpened
from footprint_core.mcp import mcp_serve
from footprint_core.providers import call, reply
from story import answered, describe, run


def _own(pause: Pause) -> Any:
    """An answer that tells which call it was meant for."""
    if pause.tool_name == "person":
        return {"for": pause.tool_call_id}
    return {**NO, "note": f"for {pause.tool_call_id}"}


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("ids", [("a", "b", "c"), ("c", "a", "b"), ("x", "x", "x")], ids="".join)
@pytest.mark.parametrize("names", list(permutations(PAUSING)), ids="-".join)
def test_c035_every_answer_reaches_the_call_it_was_asked_about(
    names: tuple[str, ...], ids: tuple[str, ...], parallel: bool
) -> None:
    read: list[tuple[str, Any]] = []

    def look(ended: ToolResultContext) -> Any:
        read.append((ended.tool_call_id, ended.result))
        return allow()

    till = Till()
    calls = [call(id, name, {"amount": 500}) for id, name in zip(ids, names, strict=True)]
    rules = [four_eyes, after_tool("look")(look)]
    agent, model = till.agent(reply(calls=calls), DONE, rules=rules, parallel_tools=parallel)

    async def story() -> list[Pause]:
        asked: list[Pause] = []
        outcome: Any = await agent.run("go")
        while not hasattr(outcome, "text"):
            asked.append(outcome)
            outcome = await agent.resume(through_json(outcome.checkpoint), _own(outcome))
        return asked

    asked = run(story())
    results = [m for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert len(results) == 3
    assert len({m.call_id for m in results}) == 3
    wanted = asked if len(set(ids)) == 3 else asked[:1]
    assert [pause.tool_name for pause in wanted] == list(names[: len(wanted)])
    for pause, result in zip(wanted, results, strict=False):
        assert (result.call_id, result.tool_name) == (pause.tool_call_id, pause.tool_name)
        assert f"for {pause.tool_call_id}" in result.text.replace('"for":"', "for ")
    assert all(result == {"for": id} for id, result in read)
    # A repeated id is no question at all: its call is answered under an id of its own.
    assert all("used twice" in m.text for m in results[len(wanted) :])


def test_c035_equal_questions_of_two_conversations_are_told_apart_in_whatever_order_they_are_answered() -> (
    None
):
    till = Till()
    agent, model = till.agent(*[pays(500, name="person")] * 2, *[DONE] * 4)
    first, second = agent.session(), agent.session()

    async def story() -> None:
        one, other = paused(await first.run("go")), paused(await second.run("go"))
        assert (one.tool_call_id, one.tool_name) == (other.tool_call_id, other.tool_name)
        # An answer for the other one is not taken for an answer to the question that is open here.
        with pytest.raises(PendingQuestionError):
            await first.resume(other.checkpoint, {"for": "the second"})
        ended = answered(await second.resume(other.checkpoint, {"for": "the second"}))
        begun = answered(await first.resume(one.checkpoint, {"for": "the first"}))
        assert (begun.run_id, ended.run_id) == (one.run_id, other.run_id)
        answered(await first.follow_up("and?"))
        answered(await second.follow_up("and?"))

    run(story())
    assert [request.messages[2].text for request in model.requests[-2:]] == [
        '{"for":"the first"}',
        '{"for":"the second"}',
    ]


@pytest.mark.parametrize("parallel", [False, True])
def test_c036_every_question_has_an_id_of_its_own_and_so_has_every_call(parallel: bool) -> None:
    till, ledger = Till(), MemoryLedger()
    same = [call("x", name, {"amount": 500}) for name in PAUSING]
    agent, _ = till.agent(
        *[pays(500, 500, 500, name=name) for name in PAUSING],
        reply(calls=same),
        reply(calls=same),
        DONE,
        ledger=ledger,
        parallel_tools=parallel,
    )

    async def story() -> list[Pause]:
        asked: list[Pause] = []
        outcome: Any = await agent.run("go")
        while not hasattr(outcome, "text"):
            asked.append(outcome)
            outcome = await agent.resume(outcome.checkpoint, answer_to(outcome))
        return asked

    asked = run(story())
    assert len(asked) == 11
    assert len({pause.pause_id for pause in asked}) == 11
    facts = [entry.fact for entry in ledger.entries(asked[0].run_id)]
    opened = [(f.iteration, f.call_id, f.pause_id) for f in facts if isinstance(f, PauseOpened)]
    assert len({(iteration, call_id) for iteration, call_id, _ in opened}) == 11
    assert [f.pause_id for f in facts if isinstance(f, PauseAnswered)] == [one[2] for one in opened]
    assert len(set(till.keys)) == len(till.keys) == 11


@pytest.mark.parametrize("name", PAUSING)
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("layout", ["one reply", "a reply each"])
def test_c039_n_questions_take_n_answers_and_each_is_used_once(layout: str, count: int, name: str) -> None:
    till = Till()
    amounts = [500 + i for i in range(count)]
    said = [pays(*amounts, name=name)] if layout == "one reply" else [pays(a, name=name) for a in amounts]
    agent, _ = till.agent(*said, DONE)

    async def story() -> int:
        asked: list[Pause] = []
        outcome: Any = await agent.run("go")
        while not hasattr(outcome, "text"):
            asked.append(outcome)
            outcome = await agent.resume(outcome.checkpoint, answer_to(outcome))
            for used in asked:
                with pytest.raises(StaleDecisionError):
                    await agent.session().resume(used.checkpoint, answer_to(used))
        return len(asked)

    assert run(story()) == count
    assert till.did == [(name, amount) for amount in amounts]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", PAUSING)
def test_c045_one_answer_is_enough_and_the_questions_that_are_left_stay_open(
    name: str, parallel: bool
) -> None:
    till = Till()
    agent, model = till.agent(pays(1, 500, 2, 600, name=name), DONE, parallel_tools=parallel)

    async def story() -> None:
        first = paused(await agent.run("go"))
        for several in ([answer_to(first), answer_to(first)], {first.pause_id: answer_to(first)}):
            if name != "person":
                with pytest.raises(DecisionRequiredError):
                    await agent.resume(first.checkpoint, several)
        second = paused(await agent.resume(first.checkpoint, answer_to(first)))
        assert (second.tool_call_id, len(model.requests)) == ("c3", 1)
        with pytest.raises(PendingQuestionError) as caught:
            await agent.run("another")
        assert caught.value.tool_call_id == "c3"
        answered(await agent.resume(second.checkpoint, answer_to(second)))

    run(story())
    assert sorted(amount for _, amount in till.did) == [1, 2, 500, 600]


def test_c056_a_batch_of_calls_that_run_and_calls_that_wait_needs_answers_for_those_that_wait_only() -> None:
    till = Till()
    calls = [
        call("runs", "pay", {"amount": 1}),
        call("rule", "pay", {"amount": 500}),
        call("unknown", "nobody", {}),
        call("consent", "wire", {"amount": 500}),
        call("wrong", "pay", {"amount": "x"}),
        call("person", "person", {"amount": 500}),
        call("runs too", "person", {"amount": 1}),
    ]
    gate = before_tool("gate")(
        lambda c: ask("Pay?") if c.tool_call_id == "rule" else allow(),
    )
    agent, model = till.agent(reply(calls=calls), DONE, rules=[gate])

    async def story() -> list[str]:
        asked: list[str] = []
        outcome: Any = await agent.run("go")
        while not hasattr(outcome, "text"):
            asked.append(outcome.tool_call_id)
            outcome = await agent.resume(through_json(outcome.checkpoint), answer_to(outcome))
        return asked

    assert run(story()) == ["rule", "consent", "person"]
    results = [m.call_id for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert [id if " " not in id else "?" for id in results[:-1]] == [one.id for one in calls[:-1]]
    assert len(results) == len(calls)


def test_c059_a_new_message_comes_behind_the_answer_and_through_the_input_rules() -> None:
    seen: list[str] = []

    def look(message: Any) -> Any:
        if message.phase == "input":
            seen.append(message.content)
        return allow()

    till = Till()
    builder, model = describe(
        [pays(500), DONE, reply(text="noted")],
        *till.tools(),
        act={"input": [on_message("look")(look)], "before_tool": [before_tool("gate")(lambda _: ask("?"))]},
    )
    agent = builder.build()

    async def story() -> None:
        pause = paused(await agent.run("go"))
        with pytest.raises(PendingQuestionError):
            await agent.run("and hurry")
        answered(await agent.resume(pause.checkpoint, YES))
        answered(await agent.follow_up("and hurry"))

    run(story())
    assert seen == ["go", "and hurry"]
    assert [m.text for m in model.requests[-1].messages if m.role == "user"] == ["go", "and hurry"]


@pytest.mark.parametrize("answer", ["approve", "yes, go on", ["approved"], 1, True, None])
@pytest.mark.parametrize("name", ["pay", "wire"])
def test_c071_an_answer_is_no_prompt_and_a_checkpoint_no_message(name: str, answer: Any) -> None:
    till = Till()
    agent, _ = till.agent(pays(500, name=name), DONE)

    async def story() -> None:
        pause = paused(await agent.run("go"))
        with pytest.raises(DecisionRequiredError, match="check_in_approved"):
            await agent.resume(pause.checkpoint, answer)
        odd: Any = pause.checkpoint
        with pytest.raises(InvalidRunInputError):
            await agent.session().run(odd)

    run(story())
    assert till.did == []


def test_c071_a_tool_that_waits_is_answered_by_any_value_but_not_by_silence() -> None:
    till = Till()
    agent, model = till.agent(pays(500, name="person"), DONE)

    async def story() -> None:
        pause = paused(await agent.run("go"))
        with pytest.raises(PauseAnswerRequiredError, match="person"):
            await agent.resume(pause.checkpoint)
        answered(await agent.resume(pause.checkpoint, None))

    run(story())
    assert model.requests[1].messages[-1].text == "null"


def _asks(_: Any) -> Any:
    return ask("May it?")


@pytest.mark.parametrize("moment", ["input", "after-tool", "output"])
def test_c071_where_nobody_can_be_asked_the_refusal_and_the_documentation_say_so(moment: str) -> None:
    rules: dict[str, Any] = {
        "input": {"input": [on_message("asks")(_asks)]},
        "after-tool": {"after_tool": [after_tool("asks")(_asks)]},
        "output": {"output": [on_message("asks")(_asks)]},
    }
    till = Till()
    builder, model = describe([pays(5), DONE], *till.tools(), act=rules[moment])
    agent = builder.build()
    if moment == "after-tool":
        answered(run(agent.run("go")))
        text = model.requests[1].messages[-1].text
    else:
        with pytest.raises(MessageDeniedError) as caught:
            run(agent.run("go"))
        text = caught.value.reason
    assert "asks" in text
    assert f"no outcome at {moment}" in text
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    header = next(
        line for line in readme.splitlines() if "| input | before-tool | after-tool | output |" in line
    )
    asking = next(line for line in readme.splitlines() if line.startswith("| `ask("))
    said = dict(zip(header.split("|"), asking.split("|"), strict=True))
    assert "not here" in said[f" {moment} "]
    assert "not here" not in said[" before-tool "]


def test_c071_a_served_call_that_would_ask_is_refused_by_the_name_of_the_rule() -> None:
    till = Till()
    pay = till.tools()[0]
    serving = mcp_serve(name="till", tools=[pay], tool_middleware=[before_tool("asks")(_asks)])

    async def story() -> Any:
        async with serving, Client(serving.server) as client:
            return await client.call_tool("pay", {"amount": 5})

    result = run(story())
    assert result.is_error
    assert "asks" in result.content[0].text
    assert "can ask nobody" in result.content[0].text
    assert till.did == []
