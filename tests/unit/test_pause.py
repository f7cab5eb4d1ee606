"""A person is asked, answers once, and the run goes on as if nobody had been asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from footprint_core import (
    AskPause,
    BuilderError,
    DecisionRequiredError,
    ForeignCheckpointError,
    MemoryLedger,
    PendingQuestionError,
    StaleDecisionError,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
)
from footprint_core.clock import AnchoredClock
from footprint_core.events import PauseResumed
from footprint_core.providers import call, reply
from story import Seen, answered, describe, facts_of, run


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?", detail={"key": call.args["amount"]}) if call.args["amount"] > 100 else allow()


@before_tool("fee")
def fee(call: ToolCallContext) -> ToolOutcome:
    return allow({"amount": call.args["amount"] - 1}, why="fee")


@after_tool("look")
def look(call: ToolResultContext) -> ToolResultOutcome:
    return allow(why="seen")


class Pays:
    """A tool that remembers what it paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def tool(self) -> Any:
        def pay(amount: int) -> int:
            self.paid.append(amount)
            return amount

        return pay


def story(*amounts: int, ledger: MemoryLedger | None = None, watch: Any = ()) -> tuple[Any, Any, Pays]:
    """An agent that pays every amount in one turn, asking above 100."""
    pays = Pays()
    calls = [call(f"c{i}", "pay", {"amount": amount}) for i, amount in enumerate(amounts)]
    builder, model = describe(
        [reply(calls=calls), reply(text="done")],
        pays.tool(),
        ledger=ledger or MemoryLedger(),
        watch=watch,
        act={"before_tool": [four_eyes, fee], "after_tool": [look]},
    )
    return builder, model, pays


async def paused(agent: Any) -> AskPause:
    outcome = await agent.run("go", identity={"user": "ada"})
    assert isinstance(outcome, AskPause)
    return outcome


def through_json(checkpoint: Any) -> Any:
    return json.loads(json.dumps(checkpoint))


YES = check_in_approved(by="dana@ops", note="checked")
NO = check_in_declined(by="dana@ops", note="duplicate")


def test_a_pause_shows_what_a_person_needs_and_nothing_ran() -> None:
    builder, model, pays = story(500)
    pause = run(paused(builder.build()))
    assert (pause.middleware, pause.question, pause.detail) == ("four-eyes", "Really?", {"key": 500})
    assert (pause.tool_name, pause.tool_call_id, pause.args) == ("pay", "c0", {"amount": 500})
    assert [row.outcome for row in pause.decisions] == ["ask"]
    assert pause.args_problem is None
    assert pays.paid == []
    assert len(model.requests) == 1


def test_an_approval_goes_on_behind_the_link_that_asked() -> None:
    builder, model, pays = story(500)
    agent = builder.build()

    async def go() -> Any:
        pause = await paused(agent)
        return answered(await agent.resume(through_json(pause.checkpoint), YES))

    rows = run(go()).decisions
    assert pays.paid == [499]
    assert [(r.middleware, r.outcome, r.moment) for r in rows] == [
        ("four-eyes", "ask", "before-tool"),
        ("four-eyes", "allow", "before-tool"),
        ("fee", "allow", "before-tool"),
        ("look", "allow", "after-tool"),
    ]
    assert rows[1].decided_by == "dana@ops"
    assert "dana@ops" in (rows[1].why or "")
    assert "checked" in (rows[1].why or "")
    assert rows[1].duration_us is None
    assert rows[2].after_approval
    assert [r.position for r in rows] == sorted({r.position for r in rows})
    assert {r.segment for r in rows} == {1, 2}
    assert model.requests[1].messages[-1].text == "499"


def test_how_long_a_question_was_open_is_told() -> None:
    seen = Seen()
    builder, _, _ = story(500, watch=[seen])
    agent = builder.build()

    async def go() -> None:
        pause = await paused(agent)
        while seen.events[-1].time >= AnchoredClock().now():
            pass
        await agent.resume(pause.checkpoint, YES)

    run(go())
    (resumed,) = seen.of(PauseResumed)
    opened = next(event for event in seen.events if event.type == "pause.request")
    assert 0 < resumed.paused <= (resumed.time - opened.time) / 1e6 + 0.001


def test_a_decline_is_a_denial_the_model_reads_and_nothing_runs() -> None:
    builder, model, pays = story(500)
    agent = builder.build()

    async def go() -> Any:
        return answered(await agent.resume((await paused(agent)).checkpoint, NO))

    rows = run(go()).decisions
    assert pays.paid == []
    assert (rows[1].outcome, rows[1].decided_by) == ("deny", "dana@ops")
    assert "duplicate" in model.requests[1].messages[-1].text


def test_a_batch_loses_nothing_and_repeats_nothing_across_pauses() -> None:
    builder, model, pays = story(1, 500, 2, 600, 3)
    agent = builder.build()

    async def go() -> Any:
        first = await paused(agent)
        second = await agent.resume(through_json(first.checkpoint), YES)
        assert isinstance(second, AskPause)
        return answered(await agent.resume(through_json(second.checkpoint), NO))

    run(go())
    assert pays.paid == [0, 499, 1, 2]
    results = [m for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert [m.call_id for m in results] == ["c0", "c1", "c2", "c3", "c4"]


def test_a_paused_and_approved_run_equals_the_same_run_without_the_question() -> None:
    asked_builder, asked_model, asked_pays = story(500)
    asked = asked_builder.build()

    async def go() -> Any:
        return answered(await asked.resume(through_json((await paused(asked)).checkpoint), YES))

    rows = [facts_of(r) for r in run(go()).decisions if r.middleware != "four-eyes"]
    pays = Pays()
    replies = [reply(calls=[call("c0", "pay", {"amount": 500})]), reply(text="done")]
    act: Any = {"before_tool": [fee], "after_tool": [look]}
    free_builder, free_model = describe(replies, pays.tool(), act=act)
    free = [facts_of(r) for r in answered(run(free_builder.build().run("go"))).decisions]
    different = ("position", "segment", "after_approval")
    assert [{k: v for k, v in r.items() if k not in different} for r in rows] == [
        {k: v for k, v in r.items() if k not in different} for r in free
    ]
    assert asked_model.requests == free_model.requests
    assert asked_pays.paid == pays.paid


def test_a_checkpoint_works_on_another_agent_of_the_same_description_and_ledger() -> None:
    ledger = MemoryLedger()
    pause = run(paused(story(500, ledger=ledger)[0].build()))
    builder, model, pays = story(500, ledger=ledger)
    model.requests.append(model)
    outcome = answered(run(builder.build().resume(through_json(pause.checkpoint), YES)))
    assert pays.paid == [499]
    assert outcome.decisions == ledger.decisions(pause.run_id)


def test_a_pause_is_answered_once_also_by_two_agents_over_one_ledger() -> None:
    ledger = MemoryLedger()
    first, second = story(500, ledger=ledger)[0].build(), story(500, ledger=ledger)[0].build()
    pause = run(paused(first))
    run(first.resume(pause.checkpoint, NO))
    with pytest.raises(StaleDecisionError, match="before"):
        run(second.resume(pause.checkpoint, YES))
    with pytest.raises(StaleDecisionError):
        run(first.resume(pause.checkpoint, YES))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "yes",
        {},
        {"decision": "approved"},
        check_in_approved(by=" "),
        {"decision": "maybe", "by": "d"},
    ],
)
def test_an_answer_that_is_no_decision_is_refused_and_uses_nothing_up(answer: Any) -> None:
    seen = Seen()
    builder, _, pays = story(500, watch=[seen])
    agent = builder.build()

    async def go() -> None:
        pause = await paused(agent)
        told = len(seen.events)
        with pytest.raises(DecisionRequiredError, match="check_in_approved") as caught:
            await agent.resume(pause.checkpoint, answer)
        assert caught.value.gate == "ask"
        assert len(seen.events) == told
        answered(await agent.resume(pause.checkpoint, YES))

    run(go())
    assert pays.paid == [499]


def test_an_open_question_holds_back_other_turns() -> None:
    builder, _, _ = story(500)
    agent = builder.build()

    async def go() -> None:
        pause = await paused(agent)
        with pytest.raises(PendingQuestionError, match="pay") as caught:
            await agent.run("something else")
        assert caught.value.tool_call_id == "c0"
        answered(await agent.resume(pause.checkpoint, NO))

    run(go())


def _edit(path: str, value: Any) -> Any:
    def edited(checkpoint: Any) -> Any:
        *parents, last = path.split(".")
        place = checkpoint
        for parent in parents:
            place = place[parent]
        place[last] = value
        return checkpoint

    return edited


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "text",
        lambda _: {},
        lambda _: [],
        _edit("version", 2),
        _edit("version", "1"),
        _edit("call.args", {"amount": 1}),
        _edit("call.tool_name", "look_up"),
        _edit("call.index", 7),
        _edit("state", {}),
        _edit("salt", "zz"),
        _edit("call.link", 1),
        _edit("call.link", 99),
        _edit("call.link", -1),
        _edit("call.middleware", "fee"),
        _edit("identity", {"user": "root"}),
        _edit("opened_us", 1),
        _edit("agent_id", "another"),
        _edit("run_id", "e" * 32),
        _edit("pause_id", "e" * 32),
        _edit("position", 1),
        _edit("state.messages", []),
        _edit("extra", 1),
        _edit("rules", {"before-tool": ["fee", "four-eyes"]}),
    ],
)
def test_a_checkpoint_that_is_not_the_one_given_out_is_refused_and_nothing_runs(damage: Any) -> None:
    builder, _, pays = story(500)
    agent = builder.build()

    async def go() -> None:
        pause = await paused(agent)
        with pytest.raises(ForeignCheckpointError):
            await agent.resume(damage(through_json(pause.checkpoint)), YES)
        answered(await agent.resume(pause.checkpoint, NO))

    run(go())
    assert pays.paid == []


@pytest.mark.parametrize(
    "edit",
    [
        _edit("call.args", {"amount": 1}),
        _edit("call.link", 1),
        _edit("identity", {"user": "root"}),
        _edit("pause_id", "e" * 32),
    ],
)
def test_a_checkpoint_whose_digest_was_made_anew_is_found_by_the_ledgers_record(edit: Any) -> None:
    from footprint_core.pause.checkpoint import digest

    builder, _, pays = story(500)
    agent = builder.build()

    async def go() -> None:
        pause = await paused(agent)
        forged = edit(through_json(pause.checkpoint))
        forged["digest"] = digest(forged["salt"], forged)
        with pytest.raises(ForeignCheckpointError, match="ledger"):
            await agent.resume(forged, YES)

    run(go())
    assert pays.paid == []


def test_a_second_question_about_one_call_is_a_refusal_that_names_both() -> None:
    @before_tool("legal")
    def legal(call: ToolCallContext) -> ToolOutcome:
        return ask("Is it legal?")

    pays = Pays()
    builder, model = describe(
        [reply(calls=[call("c0", "pay", {"amount": 500})]), reply(text="done")],
        pays.tool(),
        act={"before_tool": [four_eyes, legal]},
    )
    agent = builder.build()

    async def go() -> Any:
        return answered(await agent.resume((await paused(agent)).checkpoint, YES))

    rows = run(go()).decisions
    assert pays.paid == []
    assert (rows[-1].middleware, rows[-1].outcome) == ("legal", "deny")
    assert "Is it legal?" in (rows[-1].why or "")
    assert "legal" in model.requests[1].messages[-1].text


def test_the_events_of_a_pause_and_its_resume_come_in_order() -> None:
    seen = Seen()
    builder, _, _ = story(500, watch=[seen])
    agent = builder.build()

    async def go() -> None:
        await agent.resume((await paused(agent)).checkpoint, YES)

    run(go())
    interesting = [t for t in seen.types if not t.startswith(("context.", "tools."))]
    assert interesting == [
        "agent.run_configured",
        "agent.turn_start",
        "agent.iteration_start",
        "stream.llm_start",
        "stream.llm_end",
        "agent.route_decided",
        "stream.tool_start",
        "middleware.decision",
        "pause.request",
        "agent.turn_end",
        "agent.run_configured",
        "pause.resume",
        "middleware.decision",
        "middleware.decision",
        "middleware.decision",
        "stream.tool_end",
        "agent.iteration_end",
        "agent.iteration_start",
        "stream.llm_start",
        "stream.llm_end",
        "agent.route_decided",
        "agent.iteration_end",
        "agent.turn_end",
    ]


def test_numbers_that_another_language_wrote_differently_are_the_same_checkpoint() -> None:
    def pay(amount: float) -> float:
        return amount

    replies = [reply(calls=[call("c0", "pay", {"amount": 500.0})]), reply(text="done")]
    builder, _ = describe(replies, pay, act={"before_tool": [four_eyes]})
    agent = builder.build()

    async def go() -> None:
        text = json.dumps((await paused(agent)).checkpoint)
        assert "500.0" in text
        whole = json.loads(text, parse_float=lambda number: int(float(number)))
        assert whole["call"]["args"] == {"amount": 500}
        answered(await agent.resume(whole, YES))

    run(go())


def test_what_a_caller_does_to_a_pause_changes_neither_checkpoint_nor_ledger() -> None:
    ledger = MemoryLedger()
    builder, _, pays = story(500, ledger=ledger)
    agent = builder.build()

    async def go() -> None:
        pause = await paused(agent)
        pause.args["amount"] = 1
        pause.detail["key"] = 1
        pause.decisions[0].detail["key"] = 2
        assert ledger.decisions(pause.run_id)[0].detail == {"key": 500}
        answered(await agent.resume(pause.checkpoint, YES))

    run(go())
    assert pays.paid == [499]


def test_a_question_that_was_answered_elsewhere_is_no_longer_open_here() -> None:
    ledger = MemoryLedger()
    here, elsewhere = story(500, ledger=ledger)[0].build(), story(500, ledger=ledger)[0].build()
    pause = run(paused(here))
    run(elsewhere.resume(pause.checkpoint, NO))
    with pytest.raises(PendingQuestionError):
        run(here.run("another"))
    with pytest.raises(StaleDecisionError):
        run(here.resume(pause.checkpoint, YES))
    assert answered(run(here.run("another"))).text == "done"


def test_a_session_with_a_question_of_its_own_takes_over_no_other_run() -> None:
    ledger = MemoryLedger()
    mine, other = story(500, ledger=ledger)[0].build(), story(600, ledger=ledger)[0].build()
    own, foreign = run(paused(mine)), run(paused(other))
    with pytest.raises(PendingQuestionError):
        run(mine.resume(foreign.checkpoint, YES))
    answered(run(mine.resume(own.checkpoint, NO)))


def test_a_turn_paused_elsewhere_and_refused_here_leaves_the_conversation_before_it() -> None:
    from footprint_core import MessageDeniedError, deny, on_message

    ledger = MemoryLedger()
    replies = [reply(text="hello"), reply(calls=[call("c0", "pay", {"amount": 500})]), reply(text="a secret")]
    no_secrets = on_message("no-secrets")(lambda m: deny("no") if "secret" in m.content else allow())
    act: Any = {"before_tool": [four_eyes], "output": [no_secrets]}

    def agent(said: int) -> Any:
        builder, model = describe(replies[said:], Pays().tool(), act=act, ledger=ledger)
        return builder.build(), model

    first, _ = agent(0)

    async def until_asked() -> AskPause:
        await first.run("hi")
        outcome = await first.follow_up("pay 500")
        assert isinstance(outcome, AskPause)
        return outcome

    pause = run(until_asked())
    second, model = agent(2)
    with pytest.raises(MessageDeniedError):
        run(second.resume(through_json(pause.checkpoint), YES))
    model._replies = (reply(text="unused"), reply(text="fine"))
    answered(run(second.follow_up("never mind")))
    assert [m.text for m in model.requests[-1].messages] == ["hi", "hello", "never mind"]


def test_a_resume_whose_answer_was_not_taken_leaves_the_question_open() -> None:
    from footprint_core import LedgerBusyError

    class Busy(MemoryLedger):
        busy = False

        def append_inline(self, batch: Any, /) -> Any:
            if self.busy:
                raise LedgerBusyError("busy")
            return super().append_inline(batch)

    ledger = Busy()
    builder, _, pays = story(500, ledger=ledger)
    agent = builder.build()

    async def go() -> None:
        pause = await paused(agent)
        ledger.busy = True
        with pytest.raises(LedgerBusyError):
            await agent.resume(pause.checkpoint, YES)
        ledger.busy = False
        with pytest.raises(PendingQuestionError):
            await agent.run("another")
        answered(await agent.resume(pause.checkpoint, YES))

    run(go())
    assert pays.paid == [499]


def test_a_resume_that_was_refused_leaves_the_session_as_it_was() -> None:
    from footprint_core import LedgerBusyError

    class Busy(MemoryLedger):
        busy = False

        def append_inline(self, batch: Any, /) -> Any:
            if self.busy:
                raise LedgerBusyError("busy")
            return super().append_inline(batch)

    ledger = Busy()
    replies = [
        reply(text="to alice"),
        reply(text="to bob"),
        reply(calls=[call("c0", "pay", {"amount": 500})]),
    ]
    builder, model = describe(
        [*replies, reply(text="again")], Pays().tool(), ledger=ledger, act={"before_tool": [four_eyes]}
    )
    agent = builder.build()

    async def go() -> None:
        alice, bob = agent.session(conversation_id="alice"), agent.session(conversation_id="bob")
        await alice.run("alice says")
        await bob.run("bob says")
        pause = await bob.follow_up("bob pays")
        assert isinstance(pause, AskPause)
        ledger.busy = True
        with pytest.raises(LedgerBusyError):
            await alice.resume(pause.checkpoint, YES)
        ledger.busy = False
        assert alice.conversation_id == "alice"
        await alice.follow_up("alice goes on")

    run(go())
    assert [m.text for m in model.requests[-1].messages] == ["alice says", "to alice", "alice goes on"]


def test_an_id_that_is_no_text_is_refused_where_it_is_given() -> None:
    agent = story(500)[0].build()
    odd: Any = 123
    with pytest.raises(BuilderError, match="conversation_id"):
        agent.session(conversation_id=odd)
    with pytest.raises(BuilderError, match="id="):
        describe([], id=odd)
