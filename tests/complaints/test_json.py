"""What a pause holds is plain JSON: what JSON cannot hold is refused where it is given, never guessed at."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from types import MappingProxyType
from typing import Any

import pydantic
import pytest

from complaints.people import DONE, YES, Till, paused, pays
from footprint_core import (
    AskPause,
    HumanPause,
    InvalidRunInputError,
    MemoryLedger,
    PauseAnswerRequiredError,
    allow,
    ask,
    before_tool,
    pause_here,
)
from footprint_core.providers import call, reply
from story import answered, describe, run

CANARY = "CANARY-REPR"


class Opaque:
    """An object whose repr must never be taken for its value."""

    def __repr__(self) -> str:
        return CANARY

    __str__ = __repr__


class Model(pydantic.BaseModel):
    """A pydantic model."""

    amount: int
    inner: dict[str, Any] = {}


@dataclasses.dataclass
class Data:
    """A dataclass."""

    amount: int


HELD: dict[str, tuple[Any, Any]] = {
    "a model": (Model(amount=5), {"amount": 5, "inner": {}}),
    "a dataclass": (Data(amount=5), {"amount": 5}),
    "deep": ({"a": [Model(amount=5)]}, {"a": [{"amount": 5, "inner": {}}]}),
    "a tuple": ((1, 2), [1, 2]),
}
LOST: dict[str, tuple[Any, str]] = {
    "at the top": (Opaque(), "its top stands a Opaque"),
    "in a dict": ({"who": {"role": Opaque()}}, "who.role stands a Opaque"),
    "in a list": ({"all": [1, Opaque()]}, "all.1 stands a Opaque"),
    "no number": ({"limit": float("nan")}, "limit stands a float"),
    "a function": ({"key": print}, "key stands a builtin_function_or_method"),
    "a mapping of another kind": ({"ctx": MappingProxyType({})}, "ctx stands a mappingproxy"),
}


@pytest.mark.parametrize(("value", "where"), LOST.values(), ids=LOST)
@pytest.mark.parametrize("door", ["run", "run_sync", "run_typed", "follow_up"])
def test_c077_an_identity_json_cannot_hold_is_refused_with_its_path(
    door: str, value: Any, where: str
) -> None:
    shown: list[Any] = []

    def look(asked: Any) -> Any:
        shown.append(asked.identity)
        return allow()

    till, ledger = Till(), MemoryLedger()
    agent, model = till.agent(
        reply(text="hello"), pays(1), DONE, ledger=ledger, rules=[before_tool("look")(look)]
    )
    answered(run(agent.run("hi")))
    before = agent.last_run_id

    def go() -> None:
        begun = getattr(agent, door)("go", identity=value)
        if door != "run_sync":
            run(begun)

    with pytest.raises(InvalidRunInputError, match=f"{door}.*{where}") as caught:
        go()
    assert CANARY not in str(caught.value)
    assert (shown, len(model.requests), agent.last_run_id) == ([], 1, before)


@pytest.mark.parametrize(("value", "plain"), HELD.values(), ids=HELD)
def test_c077_what_has_a_json_form_arrives_as_data_wherever_a_pause_carries_it(
    value: Any, plain: Any
) -> None:
    identities: list[Any] = []

    def gate(asked: Any) -> Any:
        identities.append(asked.identity)
        return ask("May it?", detail=value) if asked.tool_name == "pay" else allow()

    def wait() -> None:
        pause_here(value)

    builder, model = describe(
        [reply(calls=[call("c1", "pay", {"amount": 5}), call("c2", "wait", {})]), DONE],
        *Till().tools(),
        wait,
        act={"before_tool": [before_tool("gate")(gate)]},
    )
    agent = builder.build()

    async def story() -> None:
        first = paused(await agent.run("go", identity=value))
        assert isinstance(first, AskPause)
        assert first.detail == plain
        second = paused(await agent.resume(json.loads(json.dumps(first.checkpoint)), YES))
        assert isinstance(second, HumanPause)
        assert second.data == plain
        answered(await agent.resume(json.loads(json.dumps(second.checkpoint)), value))

    run(story())
    assert identities == [plain, plain]
    assert json.loads(model.requests[1].messages[-1].text) == plain


@pytest.mark.parametrize(("value", "where"), LOST.values(), ids=LOST)
def test_c077_what_has_none_makes_no_pause_and_is_on_record_as_what_it_is_not(value: Any, where: str) -> None:
    def wait() -> None:
        pause_here(value)

    ledger = MemoryLedger()
    builder, model = describe(
        [reply(calls=[call("c1", "pay", {"amount": 5}), call("c2", "wait", {})]), DONE],
        *Till().tools(),
        wait,
        ledger=ledger,
        act={
            "before_tool": [
                before_tool("gate")(lambda c: ask("?", detail=value) if c.tool_name == "pay" else allow())
            ]
        },
    )
    outcome = answered(run(builder.build().run("go")))
    denied, told = (message.text for message in model.requests[1].messages[2:])
    assert "detail JSON cannot hold" in denied
    # A tool's own payload is named by its path; of what a rule gave, not even a key is told.
    assert where in told
    kept = str([entry.fact for entry in ledger.entries(outcome.run_id)]) + str(model.requests[1].messages[:])
    assert CANARY not in kept


@pytest.mark.parametrize("value", [Opaque(), {"when": dt.datetime.now, "x": 1}, float("inf")])
def test_c077_an_answer_json_cannot_hold_is_none_and_leaves_the_pause_open(value: Any) -> None:
    till = Till()
    agent, model = till.agent(pays(500, name="person"), DONE)

    async def story() -> None:
        pause = paused(await agent.run("go"))
        with pytest.raises(PauseAnswerRequiredError, match="JSON"):
            await agent.resume(pause.checkpoint, value)
        answered(await agent.resume(pause.checkpoint, {"well": "yes"}))

    run(story())
    assert model.requests[1].messages[-1].text == '{"well":"yes"}'


def test_c077_a_result_json_cannot_hold_is_a_mark_of_its_type_and_no_repr() -> None:
    def odd() -> Any:
        return {"ok": Model(amount=1), "no": Opaque()}

    builder, model = describe([reply(calls=[call("c1", "odd", {})]), DONE], odd)
    answered(run(builder.build().run("go")))
    assert model.requests[1].messages[-1].text == '{"ok":{"amount":1,"inner":{}},"no":"[not JSON: Opaque]"}'
