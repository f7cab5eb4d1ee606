"""The gates of one call: their order, what each is shown, and what a refusal at one keeps from the others."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import pytest

from footprint_core import (
    Agent,
    Answer,
    AssistantMessage,
    Credential,
    CredentialRequest,
    MemoryLedger,
    Outcome,
    Permission,
    PolicyHaltError,
    ToolCall,
    ToolCallContext,
    ToolContext,
    ToolResultContext,
    allow,
    ask,
    check_in_approved,
    check_in_declined,
    deny,
    is_paused,
    static_credentials,
    tool,
)
from footprint_core.facts import CallAnswered
from footprint_core.providers import call, reply
from footprint_core.tools.tool import Problem
from story import answered, describe, facts_of, run

GATES = ("permission", "before-tool", "validation", "check-in", "credential", "execute", "after-tool")
YES = check_in_approved(by="dana")
NO = check_in_declined(by="dana", note="not today")


class Gates:
    """An agent whose every gate says that it was reached; one of them may refuse."""

    name = "gates"

    def __init__(self, refuses: str = "nothing") -> None:
        self.reached: list[str] = []
        self.shown: dict[str, Any] = {}
        self._refuses = refuses

        @tool(needs="bank", check_in=lambda args: not self._at("check-in", args), evidence=self._evidence)
        async def pay(amount: int, context: ToolContext) -> str:
            assert context.credential is not None
            self._at("execute", amount)
            return f"paid {amount}"

        def check(args: dict[str, Any]) -> Any:
            reached = self._at("validation", args)
            return pay.check(args) if reached else (Problem(path="amount", expected="less", came="number"),)

        said = [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")]
        self.builder, self.model = describe(said, msgspec.structs.replace(pay, check=check))
        self.builder.permission(self).credentials(self).tool_middleware(self)

    def _at(self, gate: str, value: object) -> bool:
        self.reached.append(gate)
        self.shown[gate] = value
        return gate != self._refuses

    def _evidence(self, args: dict[str, Any]) -> str:
        self.shown["evidence"] = args
        return "look"

    def check(self, asked: ToolCallContext) -> Permission:
        return Permission(result="allow" if self._at("permission", asked.args) else "deny")

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        if not self._at("before-tool", asked.args):
            return deny("no")
        return allow({"amount": asked.args["amount"] + 1}, why="a fee")

    def credential(self, request: CredentialRequest) -> Credential:
        if not self._at("credential", request.service):
            raise LookupError
        return Credential(kind="bearer", secret="s3cret-token")

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self._at("after-tool", (ended.args, ended.result, ended.failed))
        return allow()


def test_the_gates_of_a_call_come_in_one_order() -> None:
    gates = Gates()
    assert answered(run(gates.builder.build().run("go"))).text == "done"
    assert tuple(gates.reached) == GATES


@pytest.mark.parametrize("gate", GATES[:-2])
def test_a_gate_that_refuses_keeps_the_later_ones_from_being_reached(gate: str) -> None:
    gates = Gates(gate)
    outcome = run(gates.builder.build().run("go"))
    assert tuple(gates.reached) == GATES[: GATES.index(gate) + 1]
    assert is_paused(outcome) is (gate == "check-in")


def test_what_the_chain_made_of_the_args_is_what_every_later_gate_and_the_tool_are_given() -> None:
    gates = Gates()
    run(gates.builder.build().run("go"))
    made = {"amount": 6}
    assert gates.shown == {
        "permission": {"amount": 5},
        "before-tool": {"amount": 5},
        "validation": made,
        "check-in": made,
        "credential": "bank",
        "execute": 6,
        "after-tool": (made, "paid 6", False),
    }
    said = gates.model.requests[1].messages[1]
    assert isinstance(said, AssistantMessage)
    assert said.calls[0].args == {"amount": 5}


def test_a_person_who_is_asked_by_a_tool_is_shown_what_the_chain_made_of_the_args() -> None:
    gates = Gates("check-in")
    paused = run(gates.builder.build().run("go"))
    assert is_paused(paused)
    assert gates.shown["evidence"] == {"amount": 6}
    assert getattr(paused, "args", None) == {"amount": 6}


def test_the_after_hook_is_shown_the_args_as_every_link_and_the_tools_own_types_left_them() -> None:
    shown: list[Any] = []

    class Adds:
        def __init__(self, name: str) -> None:
            self.name = name

        def on_tool_call(self, asked: ToolCallContext) -> Any:
            return allow({**asked.args, self.name: len(asked.args)}, why="one more")

        def on_tool_result(self, ended: ToolResultContext) -> Any:
            shown.append(ended.args)
            return allow()

    async def take(n: float, a: int, b: int, c: str = "left out") -> str:
        shown.append({"n": n, "a": a, "b": b, "c": c})
        return "taken"

    builder, _ = describe([reply(calls=[call("1", "take", {"n": 1})]), reply(text="done")], take)
    run(builder.tool_middleware(Adds("a"), Adds("b")).build().run("go"))
    ran = {"n": 1.0, "a": 1, "b": 2, "c": "left out"}
    assert shown == [ran, ran, ran]


class Refuses:
    """A checker whose every answer is one that does not let the call go on."""

    name = "checker"

    def __init__(self, answer: Permission | Exception) -> None:
        self._answer = answer

    def check(self, asked: ToolCallContext) -> Permission:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    "said",
    [
        Permission(result="deny"),
        Permission(result="deny", rationale="not your role"),
        Permission(result="deny", tell_model="ask your manager"),
        Permission(result="halt", reason="fraud"),
        Permission(result="halt", tell_model="stop"),
        RuntimeError("the directory is down"),
    ],
    ids=lambda said: getattr(said, "result", "raises") + (getattr(said, "tell_model", None) or ""),
)
@pytest.mark.parametrize("named", ["pay", "no-such-tool"])
def test_a_call_without_permission_meets_no_rule_and_reads_the_same_with_and_without_rules(
    said: Any, named: str
) -> None:
    read: list[Any] = []
    for ruled in (False, True):
        ledger, rule = MemoryLedger(), Counting()
        replies = [reply(calls=[call("c1", named, {"amount": 5})]), reply(text="done")]
        builder, _ = describe(replies, pay, ledger=ledger)
        agent = builder.permission(Refuses(said)).tool_middleware(*([rule] if ruled else [])).build()
        with suppress(PolicyHaltError):
            run(agent.run("go"))
        facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
        read.append([(fact.status, fact.text) for fact in facts if isinstance(fact, CallAnswered)])
        assert rule.calls == rule.results == 0
        assert ledger.decisions(agent.last_run_id or "") == ()
    assert read[0] == read[1]
    assert len(read[0]) == 1
    assert read[0][0][1].strip()


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class Counting:
    """A rule that counts how often it is asked, and may answer a call."""

    name = "counting"

    def __init__(self, answer: Any = None) -> None:
        self.calls = self.results = 0
        self._answer = answer

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        self.calls += 1
        return allow() if self._answer is None or asked.tool_call_id != "c1" else self._answer

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self.results += 1
        return allow()


CALL = call("c1", "pay", {"amount": 5})
NOT_RUN: dict[str, tuple[list[ToolCall], dict[str, Any], Any]] = {
    "denied by permission": ([CALL], {"permission": Refuses(Permission(result="deny"))}, None),
    "halted by permission": ([CALL], {"permission": Refuses(Permission(result="halt"))}, None),
    "denied by a rule": ([CALL], {"rule": deny("no")}, None),
    "denied by a rule that is none": ([CALL], {"rule": "yes"}, None),
    "waiting for a person": ([CALL], {"rule": ask("may I?")}, None),
    "declined by a person": ([CALL], {"rule": ask("may I?")}, NO),
    "rejected arguments": ([call("c1", "pay", {"amount": "much"})], {}, None),
    "arguments that are no object": ([ToolCall(id="c1", name="pay", args_json="[]")], {}, None),
    "missing credential": ([call("c1", "banked", {"amount": 5})], {"credentials": {}}, None),
    "no credential provider": ([call("c1", "banked", {"amount": 5})], {}, None),
    "unknown tool": ([call("c1", "no-such-tool", {"amount": 5})], {}, None),
    "waiting for consent": ([call("c1", "watched", {"amount": 5})], {}, None),
    "refused check-in": ([call("c1", "watched", {"amount": 5})], {}, NO),
}


@pytest.mark.parametrize("case", NOT_RUN)
def test_no_result_rule_is_asked_about_a_call_that_did_not_execute(case: str) -> None:
    calls, options, decision = NOT_RUN[case]
    rule, ran = Counting(options.get("rule")), list[str]()

    async def body(amount: int) -> str:
        ran.append("ran")
        return "paid"

    tools = [
        tool(name="pay")(body),
        tool(name="banked", needs="bank")(body),
        tool(name="watched", check_in="always")(body),
    ]
    builder, model = describe([reply(calls=calls), reply(text="done")], *tools)
    builder.tool_middleware(rule)
    if "permission" in options:
        builder.permission(options["permission"])
    if "credentials" in options:
        builder.credentials(static_credentials(options["credentials"]))
    agent = builder.build()

    async def story() -> Outcome | None:
        with suppress(PolicyHaltError):
            outcome: Outcome = await agent.run("go")
            return outcome if decision is None else await agent.resume(_checkpoint(outcome), decision)
        return None

    outcome = run(story())
    assert ran == []
    assert rule.results == 0
    if isinstance(outcome, Answer):
        assert [row for row in outcome.decisions if row.moment == "after-tool"] == []
        assert model.requests[-1].messages[-1].text.strip()


def test_no_result_rule_is_asked_about_a_call_whose_id_was_used_twice() -> None:
    rule = Counting()
    builder, _ = describe([reply(calls=[CALL, CALL]), reply(text="done")], pay)
    out = answered(run(builder.tool_middleware(rule).build().run("go")))
    assert (rule.calls, rule.results) == (1, 1)
    assert [row.moment for row in out.decisions] == ["before-tool", "after-tool"]


def _checkpoint(outcome: Outcome) -> dict[str, Any]:
    assert is_paused(outcome)
    return outcome.checkpoint


@pytest.mark.parametrize("by", ["ask", "check-in"])
def test_after_an_approval_the_after_chain_runs_as_in_an_undisturbed_call(by: str) -> None:
    told: list[Any] = []
    for asks in (False, True):
        rule = Counting(ask("may I?") if asks and by == "ask" else None)
        consent: Any = {"check_in": "always"} if asks and by == "check-in" else {}

        class Wraps:
            name = "wraps"

            def on_tool_result(self, ended: ToolResultContext) -> Any:
                assert (ended.args, ended.result, ended.failed) == ({"amount": 5}, "paid 5", False)
                return allow([ended.result], why="wrapped")

        builder, model = describe([reply(calls=[CALL]), reply(text="done")], tool(**consent)(pay))
        agent = builder.tool_middleware(Wraps(), rule).build()

        async def story(agent: Agent = agent, asks: bool = asks) -> Answer:
            outcome = await agent.run("go")
            return answered(await agent.resume(_checkpoint(outcome), YES) if asks else outcome)

        out = run(story())
        after = [facts_of(row) for row in out.decisions if row.moment == "after-tool"]
        for row in after:
            del row["position"], row["segment"]
        told.append((after, rule.calls, rule.results, model.requests[-1].messages[-1].text))
    assert told[0] == told[1]
    assert told[0][1:] == (1, 1, '["paid 5"]')


def test_a_call_to_an_unknown_tool_goes_through_the_before_chain_and_no_further() -> None:
    rule = Counting()
    builder, model = describe([reply(calls=[call("c1", "refund-all", {})]), reply(text="done")], pay)
    out = answered(run(builder.tool_middleware(rule).build().run("go")))
    assert (rule.calls, rule.results) == (1, 0)
    assert [(row.moment, row.tool_name, row.outcome) for row in out.decisions] == [
        ("before-tool", "refund-all", "allow")
    ]
    assert "refund-all" in model.requests[1].messages[-1].text


def test_a_rule_may_deny_a_call_to_an_unknown_tool() -> None:
    builder, model = describe([reply(calls=[call("c1", "refund-all", {})]), reply(text="done")], pay)
    run(builder.tool_middleware(Counting(deny("never that"))).build().run("go"))
    assert model.requests[1].messages[-1].text == "never that"


@pytest.mark.parametrize(
    ("sent", "made", "runs"),
    [
        ({"amount": 5}, {"amount": "canary-much"}, False),
        ({"amount": 5}, {"amount": 5, "to": "canary"}, False),
        ({"amount": 5}, {}, False),
        ({"amount": "canary-much"}, {"amount": 5}, True),
        ({}, {"amount": 5}, True),
    ],
)
def test_the_args_that_will_run_are_the_ones_that_are_validated(
    sent: dict[str, Any], made: dict[str, Any], runs: bool
) -> None:
    ran: list[int] = []

    async def pay(amount: int) -> str:
        ran.append(amount)
        return "paid"

    builder, model = describe([reply(calls=[call("c1", "pay", sent)]), reply(text="done")], pay)
    run(builder.tool_middleware(Counting(allow(made, why="mended"))).build().run("go"))
    assert ran == ([5] if runs else [])
    read = model.requests[1].messages[-1].text
    assert ("not valid" in read) is not runs
    assert "canary-much" not in read
