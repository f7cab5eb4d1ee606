"""Arguments and results are data: rules see them typed, and every change is on record with its author."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from file_ledger import file_bytes
from footprint_core import (
    AskPause,
    AssistantMessage,
    CheckInPause,
    DecisionRequiredError,
    MemoryLedger,
    Outcome,
    ToolCallContext,
    ToolResultContext,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    check_in_declined,
    tool,
)
from footprint_core.facts import ModelReplied, ToolFinished, ToolIntended
from footprint_core.providers import call, reply
from footprint_observe import Detector, Redaction, SqliteLedger
from story import answered, describe, run

ARGS: dict[str, Any] = {
    "who": {"name": "Ada", "cards": ["4111-1111", None, {"cvv": 123}]},
    "amount": 12.5,
    "urgent": False,
    "tags": [],
}
YES = check_in_approved(by="dana")


def masked(value: Any) -> Any:
    """The value with every card number masked, of whatever depth and shape it is."""
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return "[card]" if value == "4111-1111" else value


def test_c006_a_rule_redacts_args_and_results_as_the_data_they_are_and_they_stay_it(tmp_path: Path) -> None:
    shown: list[Any] = []
    ran: list[Any] = []

    @tool(schema={"type": "object"})
    def pay(args: dict[str, Any]) -> dict[str, Any]:
        ran.append(args)
        return {"receipt": {"from": "4111-1111", "amount": 12.5, "ok": True, "next": None}}

    def before(asked: ToolCallContext) -> Any:
        shown.append(asked.args)
        return allow(masked(asked.args), why="a card number")

    def behind(ended: ToolResultContext) -> Any:
        shown.append(ended.result)
        return allow(masked(ended.result), why="a card number")

    path = tmp_path / "f.db"
    card = Detector(name="card", pattern="4111-1111")
    ledger = SqliteLedger(path, redact=Redaction.of(detectors=[card]), durability="process")
    builder, model = describe(
        [reply(calls=[call("c1", "pay", ARGS)]), reply(text="done")],
        pay,
        ledger=ledger,
        act={"before_tool": [before_tool("cards")(before)], "after_tool": [after_tool("receipts")(behind)]},
    )
    rows = answered(run(builder.build().run("go"))).decisions
    clean = {**ARGS, "who": {"name": "Ada", "cards": ["[card]", None, {"cvv": 123}]}}
    receipt = {"receipt": {"from": "[card]", "amount": 12.5, "ok": True, "next": None}}
    assert shown == [ARGS, {"receipt": {**receipt["receipt"], "from": "4111-1111"}}]
    assert ran == [clean]
    assert (rows[0].after, rows[1].after) == (clean, receipt)
    assert model.requests[1].messages[-1].text == (
        '{"receipt":{"from":"[card]","amount":12.5,"ok":true,"next":null}}'
    )
    # The ledger masks what the detector finds, in the args the model sent too, and keeps their shape.
    assert b"4111-1111" not in file_bytes(path)
    assert rows[0].before is not None
    assert {**rows[0].before, "who": None} == {**ARGS, "who": None}
    assert rows[0].before["who"]["cards"][1:] == [None, {"cvv": 123}]


@pytest.mark.parametrize("pauses", ["rule", "check-in"])
@pytest.mark.parametrize(
    "edit",
    [
        {"args": {"amount": 500}},
        {"tool_name": "refund"},
        {"edited_action": {"name": "refund", "args": {}}},
        {"decision": "edit"},
    ],
    ids=str,
)
def test_c002_an_answer_cannot_edit_a_call_so_no_approval_covers_another_one(
    pauses: str, edit: dict[str, Any]
) -> None:
    agent, ran = _desk(pauses)

    async def story() -> None:
        paused: Any = await agent.run("go")
        with pytest.raises(DecisionRequiredError):
            await agent.resume(paused.checkpoint, {**YES, **edit})
        assert ran == []
        answered(await agent.resume(paused.checkpoint, YES))

    run(story())
    assert ran == [("pay", 5)]


def _desk(pauses: str, *rules: Any, much: int = 0) -> tuple[Any, list[tuple[str, int]]]:
    """An agent with `pay` and `refund`; a rule asks about each payment, or `pay` does above `much`."""
    ran: list[tuple[str, int]] = []

    def pay(amount: int) -> str:
        ran.append(("pay", amount))
        return "paid"

    def refund(amount: int) -> str:
        ran.append(("refund", amount))
        return "refunded"

    consents = tool(check_in=lambda args: args["amount"] > much)(pay) if pauses == "check-in" else pay
    gates = [before_tool("gate")(lambda _: ask("Pay?"))] if pauses == "rule" else []
    builder, _ = describe(
        [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")],
        consents,
        refund,
        act={"before_tool": [*gates, *rules]},
    )
    return builder.build(), ran


def test_c002_a_rule_cannot_make_a_call_one_of_another_tool() -> None:
    def renames(asked: ToolCallContext) -> Any:
        asked.tool_name = "refund"
        return allow({**asked.args, "amount": 6}, why="one more")

    seen: list[tuple[str, Any]] = []

    def behind(asked: ToolCallContext) -> Any:
        seen.append((asked.tool_name, asked.args))
        return allow()

    agent, ran = _desk("nobody", before_tool("renames")(renames), before_tool("behind")(behind))
    rows = answered(run(agent.run("go"))).decisions
    assert seen == [("pay", {"amount": 6})]
    assert ran == [("pay", 6)]
    assert {row.tool_name for row in rows} == {"pay"}


def test_c002_the_consent_a_tool_declares_is_about_the_args_that_will_run() -> None:
    raises_it = before_tool("raises it")(lambda _: allow({"amount": 500}, why="rounded up"))
    agent, ran = _desk("check-in", raises_it, much=100)

    async def story() -> Outcome:
        paused = await agent.run("go")
        assert isinstance(paused, CheckInPause)
        assert (paused.args, ran) == ({"amount": 500}, [])
        return answered(await agent.resume(paused.checkpoint, YES))

    run(story())
    assert ran == [("pay", 500)]


def test_c051_a_person_sees_what_the_rules_made_so_far_and_a_later_change_says_it_came_after() -> None:
    half = before_tool("half")(lambda c: allow({"amount": c.args["amount"] * 10}, why="in cents"))
    gate = before_tool("gate")(lambda _: ask("Pay?"))
    fee = before_tool("fee")(lambda c: allow({"amount": c.args["amount"] - 1}, why="fee"))
    agent, ran = _desk("nobody", half, gate, fee)

    async def story() -> Any:
        paused = await agent.run("go")
        assert isinstance(paused, AskPause)
        assert paused.args == {"amount": 50}
        return answered(await agent.resume(paused.checkpoint, YES))

    rows = run(story()).decisions
    assert ran == [("pay", 49)]
    assert [(row.middleware, row.before, row.after, row.after_approval) for row in rows if row.changed] == [
        ("half", {"amount": 5}, {"amount": 50}, False),
        ("fee", {"amount": 50}, {"amount": 49}, True),
    ]


@pytest.mark.parametrize(("answer", "told"), [(YES, "not valid"), (check_in_declined(by="dana"), "declined")])
def test_c052_a_person_is_told_that_the_args_would_not_pass_and_they_are_checked_when_they_run(
    answer: Any, told: str
) -> None:
    ran: list[int] = []

    def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    builder, model = describe(
        [reply(calls=[call("c1", "pay", {"amount": "a lot", "to": "x"})]), reply(text="done")],
        pay,
        act={"before_tool": [before_tool("gate")(lambda _: ask("Pay?"))]},
    )
    agent = builder.build()

    async def story() -> None:
        paused = await agent.run("go")
        assert isinstance(paused, AskPause)
        assert paused.args_problem is not None
        assert "amount: expected" in paused.args_problem
        assert "a lot" not in paused.args_problem
        answered(await agent.resume(paused.checkpoint, answer))

    run(story())
    assert ran == []
    assert told in model.requests[1].messages[-1].text


def test_c043_who_changed_a_call_and_why_is_on_record_and_a_rule_can_tell_the_model() -> None:
    class Caps:
        """Caps an amount, and tells the model so."""

        name = "caps"

        def on_tool_call(self, asked: ToolCallContext, /) -> Any:
            return allow({"amount": 100}, why="above the limit") if asked.args["amount"] > 100 else allow()

        def on_tool_result(self, ended: ToolResultContext, /) -> Any:
            sent = next(m for m in ended.history if isinstance(m, AssistantMessage)).calls[0].args
            if sent == ended.args:
                return allow()
            return allow({"ran_with": ended.args, "result": ended.result}, why="told what ran")

    ledger = MemoryLedger()
    builder, model = describe(
        [reply(calls=[call("c1", "pay", {"amount": 900})]), reply(text="done")],
        _pays,
        ledger=ledger,
    )
    outcome = answered(run(builder.tool_middleware(Caps()).build().run("go")))
    first, second = outcome.decisions
    assert (first.middleware, first.before, first.after, first.why) == (
        "caps",
        {"amount": 900},
        {"amount": 100},
        "above the limit",
    )
    assert second.why == "told what ran"
    facts = [entry.fact for entry in ledger.entries(outcome.run_id)]
    assert [f.calls[0].args for f in facts if isinstance(f, ModelReplied) and f.calls] == [{"amount": 900}]
    assert [f.args for f in facts if isinstance(f, ToolIntended)] == [{"amount": 100}]
    assert [f.result for f in facts if isinstance(f, ToolFinished)] == ["paid 100"]
    assert model.requests[1].messages[-1].text == '{"ran_with":{"amount":100},"result":"paid 100"}'


@tool(name="pay")
def _pays(amount: int) -> str:
    return f"paid {amount}"


def test_c043_what_a_person_wants_otherwise_reaches_the_model_and_its_next_call_is_asked_about_anew() -> None:
    builder, model = describe(
        [
            reply(calls=[call("c1", "pay", {"amount": 900})]),
            reply(calls=[call("c2", "pay", {"amount": 100})]),
            reply(text="done"),
        ],
        _pays,
        act={"before_tool": [before_tool("gate")(lambda _: ask("Pay?"))]},
    )
    agent = builder.build()

    async def story() -> Any:
        first = await agent.run("go")
        assert isinstance(first, AskPause)
        second = await agent.resume(
            first.checkpoint, check_in_declined(by="dana", note="at most 100, and only once")
        )
        assert isinstance(second, AskPause)
        assert second.args == {"amount": 100}
        return answered(await agent.resume(second.checkpoint, YES))

    rows = run(story()).decisions
    assert "at most 100, and only once" in model.requests[1].messages[-1].text
    assert [(row.outcome, row.decided_by) for row in rows] == [
        ("ask", None),
        ("deny", "dana"),
        ("ask", None),
        ("allow", "dana"),
    ]
