"""An approval is about one call as a person saw it: nothing else runs on it, and nothing runs without it."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import pytest

from complaints.people import DONE, NO, PAUSING, YES, Till, answer_to, four_eyes, paused, pays, through_json
from footprint_core import (
    Agent,
    AskPause,
    CheckInPause,
    DecisionRequiredError,
    ForeignCheckpointError,
    MemoryLedger,
    PendingQuestionError,
    Session,
    StaleDecisionError,
    Tool,
    ToolContext,
    allow,
    approve_once,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.facts import CallAnswered, CheckInAnswered, Decided
from footprint_core.providers import call, reply
from story import answered, describe, run


def _edited(checkpoint: Any, **changes: Any) -> Any:
    copy = through_json(checkpoint)
    copy["call"].update(changes)
    return copy


@pytest.mark.parametrize("name", PAUSING)
@pytest.mark.parametrize(
    "changes", [{"tool_name": "wire"}, {"tool_source": "elsewhere"}, {"args": {"amount": 1}}], ids=str
)
def test_c005_an_approval_is_bound_to_tool_source_and_args(name: str, changes: dict[str, Any]) -> None:
    till = Till()
    agent, _ = till.agent(pays(500, name=name), DONE)

    async def story() -> None:
        pause = paused(await agent.run("go"))
        before = list(till.did)
        changed = {**changes, "tool_name": "pay"} if name == "wire" and "tool_name" in changes else changes
        with pytest.raises(ForeignCheckpointError):
            await agent.resume(_edited(pause.checkpoint, **changed), answer_to(pause))
        assert till.did == before

    run(story())


def test_c005_what_would_run_is_compared_with_what_was_approved_when_it_is_dispatched() -> None:
    ran: list[tuple[int, int]] = []

    @tool(name="pay", check_in="always")
    def cheap(amount: int, fee: int = 1) -> str:
        ran.append((amount, fee))
        return "paid"

    @tool(name="pay", check_in="always")
    def dear(amount: int, fee: Literal[2] = 2) -> str:
        ran.append((amount, fee))
        return "paid"

    @tool(name="pay", check_in="always")
    def any_fee(amount: int, fee: int = 2) -> str:
        ran.append((amount, fee))
        return "paid"

    def agent(pay: Tool, *said: Any) -> Any:
        builder, model = describe(said, pay, ledger=ledger)
        return builder.build(), model

    ledger = MemoryLedger()
    first, _ = agent(cheap, *[reply(calls=[call("c1", "pay", {"amount": 5})])] * 2)
    pause = paused(run(first.run("go")))
    assert isinstance(pause, CheckInPause)
    assert pause.args == {"amount": 5, "fee": 1}
    # The program was changed meanwhile: the call cannot run any more as a person saw it.
    second, model = agent(dear, DONE)
    answered(run(second.resume(through_json(pause.checkpoint), YES)))
    assert ran == []
    assert "not what a person approved" in model.requests[0].messages[-1].text
    # Where it can, it runs as they saw it, and not with what the program would fill in now.
    again = paused(run(first.session().run("go")))
    third, _ = agent(any_fee, DONE)
    answered(run(third.resume(through_json(again.checkpoint), YES)))
    assert ran == [(5, 1)]


@pytest.mark.parametrize("name", PAUSING)
def test_c074_what_runs_is_what_was_approved_and_no_model_is_asked_in_between(name: str) -> None:
    till = Till()
    ledger = MemoryLedger()
    agent, model = till.agent(pays(500, name=name), pays(900, name=name), ledger=ledger)
    pause = paused(run(agent.run("go")))
    asked = len(model.requests)
    # Whatever a model would say now, the call that goes on is the one in the checkpoint.
    other, replayed = till.agent(pays(901, name=name), DONE, ledger=ledger)
    second = paused(run(other.resume(through_json(pause.checkpoint), answer_to(pause))))
    assert (asked, len(replayed.requests)) == (1, 1)
    assert second.tool_call_id == "c0"
    assert till.did.count((name, 500)) == 1
    assert all(amount != 900 for _, amount in till.did)


@pytest.mark.parametrize("name", PAUSING)
def test_c046_an_approval_lives_in_the_checkpoint_whoever_goes_on_and_in_whatever_surroundings(
    name: str,
) -> None:
    identities: list[Any] = []

    @before_tool("who")
    def who(asked: Any) -> Any:
        identities.append(asked.identity)
        return allow()

    till, ledger = Till(), MemoryLedger()
    agent, _ = till.agent(pays(500, name=name), ledger=ledger, rules=[four_eyes, who])
    pause = paused(run(agent.run("go", identity={"user": "ada"})))
    other, _ = till.agent(reply(text="hello"), pays(1), DONE, ledger=ledger, rules=[four_eyes, who])

    async def story() -> None:
        session = other.session(conversation_id="of somebody else")
        answered(await session.run("hi", identity={"user": "mallory"}))
        answered(await session.resume(through_json(pause.checkpoint), answer_to(pause)))

    run(story())
    assert till.did[0] == (name, 500)
    assert ("pay", 1) in till.did
    assert all(identity == {"user": "ada"} for identity in identities)
    # There is no way to hand it anything else: the person's answer is all that resume takes.
    for kind in (Agent, Session):
        taken = ["self", "checkpoint", "answer", "pause_id", "rewalk"]
        assert list(inspect.signature(kind.resume).parameters) == taken


@pytest.mark.parametrize(("by", "asked_about"), [("call", [5, 999_999]), ("tool", [5])])
def test_c048_what_was_approved_covers_equal_args_and_a_wider_approval_is_said_in_the_row(
    by: Any, asked_about: list[int]
) -> None:
    amounts = (5, 5, 999_999, 5)
    once = approve_once(by=by)
    till = Till()
    agent, _ = till.agent(*(said for amount in amounts for said in (pays(amount), DONE)), rules=[once])

    async def story() -> tuple[list[int], list[str]]:
        asked: list[int] = []
        whys: list[str] = []
        for _ in amounts:
            outcome = await agent.run("go")
            if isinstance(outcome, AskPause):
                asked.append(outcome.args["amount"])
                done = answered(await agent.resume(outcome.checkpoint, YES))
                once.remember(outcome.detail, by="dana@ops")
            else:
                done = answered(outcome)
                whys.extend(row.why or "" for row in done.decisions)
        return asked, whys

    asked, whys = run(story())
    assert asked == asked_about
    assert till.did == [("pay", amount) for amount in amounts]
    assert len(whys) == len(amounts) - len(asked)
    assert all(why.startswith("approved earlier by dana@ops") for why in whys)
    assert all(("any arguments of pay" in why) == (by == "tool") for why in whys)


@pytest.mark.parametrize("name", PAUSING)
def test_c049_an_approval_for_another_agent_is_refused_by_name_and_stays_open(name: str) -> None:
    till, ledger = Till(), MemoryLedger()
    agent, _ = till.agent(pays(500, name=name), DONE, ledger=ledger)
    pause = paused(run(agent.run("go")))
    did = list(till.did)
    stranger, _ = till.agent(DONE, ledger=ledger, id="another")
    with pytest.raises(ForeignCheckpointError, match=r"'till'.*'another'"):
        run(stranger.resume(pause.checkpoint, answer_to(pause)))
    assert till.did == did
    answered(run(agent.resume(pause.checkpoint, answer_to(pause))))


@pytest.mark.parametrize("name", ["pay", "wire"])
def test_c049_an_approval_of_a_tool_that_is_gone_is_on_record_and_the_model_is_told(name: str) -> None:
    till, ledger = Till(), MemoryLedger()
    agent, _ = till.agent(pays(500, name=name), ledger=ledger)
    pause = paused(run(agent.run("go")))
    builder, model = describe([DONE], ledger=ledger, id="till")
    heir = builder.tool_middleware(four_eyes).build()
    outcome = answered(run(heir.resume(through_json(pause.checkpoint), YES)))
    assert till.did == []
    assert f"no tool called {name}" in model.requests[0].messages[-1].text
    facts = [entry.fact for entry in ledger.entries(outcome.run_id)]
    assert [f.status for f in facts if isinstance(f, CallAnswered)] == ["unknown"]
    kept = [f for f in facts if isinstance(f, Decided | CheckInAnswered) and f.decided_by == "dana@ops"]
    assert len(kept) == 1


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("behind", [0, 1, 2])
def test_c057_a_question_pauses_from_any_place_of_the_chain_and_never_ends_the_run(
    before: int, behind: int
) -> None:
    seen: list[str] = []

    def passing(name: str) -> Any:
        def hook(_: Any) -> Any:
            seen.append(name)
            return allow()

        return before_tool(name)(hook)

    till = Till()
    rules = [
        *(passing(f"before-{i}") for i in range(before)),
        four_eyes,
        *(passing(f"behind-{i}") for i in range(behind)),
    ]
    agent, _ = till.agent(pays(500), DONE, rules=rules)

    async def story() -> None:
        pause = paused(await agent.run("go"))
        assert (seen, till.did) == ([f"before-{i}" for i in range(before)], [])
        answered(await agent.resume(through_json(pause.checkpoint), YES))

    run(story())
    assert till.did == [("pay", 500)]
    assert seen == [*(f"before-{i}" for i in range(before)), *(f"behind-{i}" for i in range(behind))]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", ["pay", "wire"])
def test_c073_a_call_that_was_declined_does_not_run_whatever_the_tool_does(name: str, parallel: bool) -> None:
    till, ledger = Till(), MemoryLedger()
    agent, model = till.agent(
        reply(calls=[call(f"c{i}", name, {"amount": a}) for i, a in enumerate((1, 500, 2))]),
        DONE,
        ledger=ledger,
        parallel_tools=parallel,
    )

    async def story() -> Any:
        pause = paused(await agent.run("go"))
        outcome = answered(await agent.resume(pause.checkpoint, NO))
        # The same answer sent twice, or another one, finds nothing to decide.
        for again in (NO, YES):
            with pytest.raises(StaleDecisionError):
                await agent.resume(pause.checkpoint, again)
        return outcome

    outcome = run(story())
    assert sorted(till.did) == [(name, 1), (name, 2)]
    texts = [message.text for message in model.requests[1].messages[2:]]
    assert "declined" in texts[1]
    assert "not today" in texts[1]
    facts = [entry.fact for entry in ledger.entries(outcome.run_id)]
    assert [f.executed for f in facts if isinstance(f, CallAnswered)] == [True, False, True]


NAMELESS: list[Any] = [
    {"decision": "approved"},
    {"decision": "approved", "note": "me"},
    {"decision": "approved", "by": None},
    {"decision": "approved", "by": ""},
    {"decision": "approved", "by": 7},
    check_in_approved(by=" \t"),
    check_in_declined(by=""),
]


@pytest.mark.parametrize("answer", NAMELESS, ids=str)
@pytest.mark.parametrize("name", ["pay", "wire"])
def test_c076_a_decision_without_a_name_decides_nothing_and_one_with_a_name_is_on_record(
    name: str, answer: Any
) -> None:
    till, ledger = Till(), MemoryLedger()
    agent, _ = till.agent(pays(500, name=name), DONE, ledger=ledger)

    async def story() -> str:
        pause = paused(await agent.run("go"))
        entries = len(ledger.entries(pause.run_id))
        with pytest.raises(DecisionRequiredError, match="name"):
            await agent.resume(pause.checkpoint, answer)
        assert (till.did, len(ledger.entries(pause.run_id))) == ([], entries)
        answered(await agent.resume(pause.checkpoint, YES))
        return pause.run_id

    facts = [entry.fact for entry in ledger.entries(run(story()))]
    people = [f.decided_by for f in facts if isinstance(f, Decided | CheckInAnswered) and f.decided_by]
    assert people == ["dana@ops"]


def test_c076_a_decision_cannot_be_made_without_saying_who() -> None:
    makes: list[Any] = [check_in_approved, check_in_declined]
    for make in makes:
        with pytest.raises(TypeError, match="by"):
            make()


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", PAUSING)
@pytest.mark.parametrize("same_reply", [False, True])
def test_c079_two_approvals_in_a_row_over_one_stored_state_send_everything_once(
    name: str, same_reply: bool, streaming: bool
) -> None:
    till, ledger = Till(), MemoryLedger()
    batches = [pays(500, 600, name=name)] if same_reply else [pays(500, name=name), pays(600, name=name)]
    agent, model = till.agent(*batches, DONE, ledger=ledger, streaming=streaming)

    async def story() -> None:
        first = paused(await agent.run("go"))
        with pytest.raises(PendingQuestionError):
            await agent.run("another")
        second = paused(await agent.resume(through_json(first.checkpoint), answer_to(first)))
        answered(await agent.resume(through_json(second.checkpoint), answer_to(second)))

    run(story())
    assert till.did == [(name, 500), (name, 600)]
    for request in model.requests:
        made = [one.id for m in request.messages if m.role == "assistant" for one in m.calls]  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
        results = [m.call_id for m in request.messages if m.role == "tool"]  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
        assert made == results
    assert len(model.requests) == len(batches) + 1


def test_c079_a_tool_keeps_its_place_when_two_different_ones_are_approved_in_a_row() -> None:
    def write(context: ToolContext) -> str:
        return context.call_id

    builder, model = describe(
        [reply(calls=[call("a", "write", {}), call("b", "write", {})]), DONE],
        write,
        act={"before_tool": [before_tool("gate")(lambda c: ask(c.tool_call_id))]},
    )
    agent = builder.build()

    async def story() -> None:
        first = paused(await agent.run("go"))
        second = paused(await agent.resume(first.checkpoint, YES))
        answered(await agent.resume(second.checkpoint, YES))

    run(story())
    assert [message.text for message in model.requests[1].messages[2:]] == ["a", "b"]
