"""What answers a question: the pause says which answer it takes, and no answer talks it into another."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from asked import DONE, NO, YES, Rule, Till, asks, pays, until_asked
from footprint_core import (
    DecisionRequiredError,
    FootprintError,
    HumanPause,
    PauseAnswerRequiredError,
    ask_human,
    check_in_approved,
    check_in_declined,
    pause_here,
    tool,
)
from footprint_core.pause.signal import PauseSignal
from footprint_core.providers import call, reply
from story import answered, run

SECRET = "s3cr3t-answer"

NO_DECISIONS: dict[str, tuple[Any, str]] = {
    "nothing": (None, "not nothing"),
    "a boolean": (True, "type bool"),
    "a text": (f"approved {SECRET}", "type str"),
    "a decision as a JSON text": (json.dumps(YES), "type str"),
    "a list": ([YES], "type list"),
    "a number": (1, "type int"),
    "an object": (object(), "type object"),
    "no keys": ({}, "a dict of 0 keys"),
    "no name": ({"decision": "approved"}, "a dict of 1 keys"),
    "another word": ({"decision": "approve", "by": "dana"}, "a dict of 2 keys"),
    "a word in capitals": ({"decision": "APPROVED", "by": "dana"}, "a dict of 2 keys"),
    "true for the word": ({"decision": True, "by": "dana"}, "a dict of 2 keys"),
    "a key too many": ({"decision": "approved", "by": "dana", "result": SECRET}, "a dict of 3 keys"),
    "a note that is no text": ({"decision": "approved", "by": "dana", "note": [SECRET]}, "a dict of 3 keys"),
    "a blank name": (check_in_approved(by=" \t\n"), "without a name"),
    "an empty name": (check_in_declined(by=""), "without a name"),
    "a name that is no text": ({"decision": "approved", "by": 7}, "a dict of 2 keys"),
    "no name at all": ({"decision": "declined", "by": None}, "a dict of 2 keys"),
}


@pytest.mark.parametrize("gate", ["ask", "check-in"])
@pytest.mark.parametrize("named", NO_DECISIONS)
def test_a_consent_takes_a_decision_of_a_named_person_and_whatever_else_leaves_it_open(
    gate: str, named: str
) -> None:
    answer, shape = NO_DECISIONS[named]
    till = Till()
    pay = till.pay(check_in="always" if gate == "check-in" else None)
    behind = Rule("behind")
    agent = till.agent(pays(500), [asks(), behind] if gate == "ask" else [behind], pay)

    async def go() -> None:
        pause = await until_asked(agent)
        before, told = till.facts(pause.run_id), len(till.seen.events)
        shown = len(behind.shown)
        with pytest.raises(DecisionRequiredError) as caught:
            await agent.resume(pause.checkpoint, answer)
        error = caught.value
        assert (error.gate, error.tool_name) == (gate, "pay")
        assert error.middleware == ("four-eyes" if gate == "ask" else None)
        assert gate in str(error)
        assert shape in str(error)
        assert SECRET not in str(error)
        assert till.facts(pause.run_id) == before
        assert len(till.seen.events) == told
        assert (till.paid, len(behind.shown)) == ([], shown)
        answered(await agent.resume(pause.checkpoint, YES))

    run(go())
    assert till.paid == [500]


def test_a_consent_that_gets_no_answer_at_all_stays_open_too() -> None:
    till = Till()
    agent = till.agent(pays(500), [asks()])

    async def go() -> None:
        pause = await until_asked(agent)
        with pytest.raises(DecisionRequiredError, match="nothing"):
            await agent.resume(pause.checkpoint)
        answered(await agent.resume(pause.checkpoint, NO))

    run(go())


def human(payload: Any, *, entered: list[int] | None = None) -> Any:
    """A tool that pauses itself."""

    @tool(name="person")
    def person(amount: int) -> Any:
        if entered is not None:
            entered.append(amount)
        pause_here(payload)

    return person


@pytest.mark.parametrize(
    "value",
    [None, False, 0, "", "yes", [], {}, {"decision": "maybe"}, YES, NO, {"by": "x", "n": [1.5, None]}],
)
def test_a_tool_that_asked_takes_any_value_and_a_decision_is_one_like_any_other(value: Any) -> None:
    till, entered = Till(), list[int]()
    agent = till.agent(pays(500, name="person"), [], human("how?", entered=entered))

    async def go() -> Any:
        pause = await until_asked(agent)
        return answered(await agent.resume(pause.checkpoint, value))

    ended = run(go())
    expected = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    assert till.read() == [expected]
    assert entered == [500]
    assert till.ended(ended.run_id) == [("ran", True)]


@pytest.mark.parametrize("nothing", [(), (object(),), (float("nan"),), ({"at": {1: lambda: 0}},)])
def test_a_tool_that_asked_and_gets_nothing_json_can_hold_stays_open(nothing: tuple[Any, ...]) -> None:
    till, entered = Till(), list[int]()
    agent = till.agent(pays(500, name="person"), [], human("how?", entered=entered))

    async def go() -> None:
        pause = await until_asked(agent)
        before = till.facts(pause.run_id)
        with pytest.raises(PauseAnswerRequiredError) as caught:
            await agent.resume(pause.checkpoint, *nothing)
        assert (caught.value.tool_name, caught.value.tool_call_id) == ("person", "c0")
        assert till.facts(pause.run_id) == before
        assert len(till.model.requests) == 1
        answered(await agent.resume(pause.checkpoint, None))

    run(go())
    assert entered == [500]
    assert till.read() == ["null"]


@pytest.mark.parametrize("how", ["async", "thread", "inline"])
@pytest.mark.parametrize(
    "door", [lambda: ask_human("How?", n=1), lambda: pause_here({"question": "How?", "n": 1})]
)
def test_a_tool_that_catches_every_exception_cannot_swallow_its_pause(how: str, door: Any) -> None:
    swallowed: list[str] = []

    def body(amount: int) -> str:
        try:
            door()
        except Exception as error:  # noqa: BLE001 - what is under test
            swallowed.append(type(error).__name__)
        return "swallowed"

    async def waiting(amount: int) -> str:
        await asyncio.sleep(0)
        return body(amount)

    person = tool(name="person", inline=how == "inline")(waiting if how == "async" else body)
    pause = run(until_asked(Till().agent(pays(1, name="person"), [], person)))
    assert isinstance(pause, HumanPause)
    assert pause.data == {"question": "How?", "n": 1}
    assert swallowed == []
    assert issubclass(PauseSignal, BaseException)
    assert not issubclass(PauseSignal, Exception | FootprintError)


CLAIMS: list[dict[str, Any]] = [
    {"kind": "ask", "middleware": "four-eyes", "question": "Really?", "link": 0},
    {"kind": "check-in", "checked": {"amount": 1}, "evidence": "e"},
    {"tool_name": "other", "call_id": "c9", "tool_call_id": "c9", "index": 9, "tool_source": "elsewhere"},
    {"held": "question", "pause_id": "p", "run_id": "r", "checkpoint": {}, "decisions": [], "version": 9},
    {"type": "AskPause", "call": {"kind": "ask"}, "args": {}, "state": {}, "identity": {"user": "root"}},
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_key_of_a_tools_payload_changes_what_the_pause_is(claim: dict[str, Any]) -> None:
    till = Till()
    agent = till.agent(pays(1, name="person"), [Rule("four-eyes")], human(claim))
    plain = Till()
    other = run(until_asked(plain.agent(pays(1, name="person"), [Rule("four-eyes")], human("x"))))

    async def go() -> None:
        pause = await until_asked(agent, identity="ada")
        assert isinstance(pause, HumanPause)
        assert pause.data == claim
        assert (pause.tool_name, pause.tool_source, pause.tool_call_id) == ("person", None, "c0")
        call = {**pause.checkpoint["call"], "shown": None, "ran_us": 0}
        assert call == {**other.checkpoint["call"], "shown": None, "ran_us": 0}
        assert pause.checkpoint["identity"] == "ada"
        answered(await agent.resume(pause.checkpoint, "any value"))

    run(go())
    assert till.read() == ["any value"]


def test_a_payload_that_looks_like_an_answer_is_only_shown() -> None:
    till = Till()
    replies = [reply(calls=[call("c0", "person", {"amount": 1})]), DONE]
    pause = run(until_asked(till.agent(replies, [], human(YES))))
    assert isinstance(pause, HumanPause)
    assert pause.data == YES
    assert len(till.model.requests) == 1


@pytest.mark.parametrize("decided", [check_in_approved, check_in_declined])
@pytest.mark.parametrize("note", [None, "with a note: ø ✓"])
def test_a_decision_is_plain_json_and_means_the_same_after_a_round_trip(
    decided: Any, note: str | None
) -> None:
    decision = decided(by="dana@ops", note=note)
    travelled = json.loads(json.dumps(decision))
    assert travelled == decision
    word = "approved" if decided is check_in_approved else "declined"
    assert decision == {"decision": word, "by": "dana@ops", "note": note}
    till = Till()
    agent = till.agent(pays(500), [], till.pay(check_in="always"))

    async def go() -> None:
        answered(await agent.resume((await until_asked(agent)).checkpoint, travelled))

    run(go())
    assert till.paid == ([500] if word == "approved" else [])
