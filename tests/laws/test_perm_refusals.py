"""What a checker can refuse with: a denial, a halt, an error, or an answer that is none."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    AskPause,
    MemoryLedger,
    Permission,
    PolicyHaltError,
    RunError,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    tool,
)
from footprint_core.events import (
    CredentialRequested,
    DecisionFiled,
    PermissionAnswered,
    PermissionHalted,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
)
from footprint_core.facts import CallAnswered, PermissionChecked
from footprint_core.providers import Completed, call, reply
from permits import ALLOW, Checker
from story import Seen, answered, describe, run

DONE = reply(text="done")
SECRET = "hunter2"


class Told:
    """One turn of an agent whose only tool is never to run, or only where it is allowed."""

    def __init__(self, answer: Any, *replies: Completed, **options: Any) -> None:
        self.ran: list[str] = []
        self.rules: list[str] = []
        self.seen, self.ledger = Seen(), MemoryLedger()
        self.checker = Checker(answer)

        @tool(name="pay")
        async def pay(to: str) -> str:
            """Pay."""
            self.ran.append(to)
            return f"paid {to}"

        @before_tool("before")
        def before(asked: ToolCallContext) -> ToolOutcome:
            self.rules.append(f"before {asked.tool_call_id}")
            return allow()

        @after_tool("after")
        def after(ended: ToolResultContext) -> ToolResultOutcome:
            self.rules.append(f"after {ended.tool_call_id}")
            return allow()

        said = replies or (reply(calls=[call("c1", "pay", {"to": "ada"})]), DONE)
        builder, self.model = describe(said, pay, watch=[self.seen], ledger=self.ledger, **options)
        builder.act(before_tool=[before], after_tool=[after])
        self.agent = builder.permission(self.checker).build()

    def go(self) -> Told:
        answered(run(self.agent.run("go")))
        return self

    def halted(self) -> PolicyHaltError:
        with pytest.raises(PolicyHaltError) as caught:
            run(self.agent.run("go"))
        return caught.value

    @property
    def read(self) -> list[str]:
        return [m.text for m in self.model.requests[-1].messages if isinstance(m, ToolMessage)]

    def facts(self, kind: type[Any]) -> list[Any]:
        run_id = self.agent.last_run_id
        assert run_id is not None
        return [e.fact for e in self.ledger.entries(run_id) if isinstance(e.fact, kind)]


def test_a_denial_is_answered_with_the_checkers_own_words_and_the_loop_goes_on() -> None:
    told = Told(Permission(result="deny", tell_model="Ask your manager.\n", rationale=SECRET)).go()
    assert told.read == ["Ask your manager.\n"]
    assert len(told.model.requests) == 2
    assert (told.ran, told.rules) == ([], [])
    (ended,) = told.seen.of(ToolCallEnded)
    assert (ended.status, ended.executed, ended.decided_by_rule) == ("denied", False, None)


def test_without_words_of_its_own_the_model_reads_the_rationale() -> None:
    (text,) = Told(Permission(result="deny", rationale="the desk is closed")).go().read
    assert "pay" in text
    assert "not permitted" in text
    assert "the desk is closed" in text


def test_a_denial_without_any_words_still_says_what_was_not_permitted() -> None:
    (text,) = Told(Permission(result="deny")).go().read
    assert "pay" in text
    assert "not permitted" in text


def test_a_denial_does_not_stop_its_siblings() -> None:
    calls = [
        call("1", "pay", {"to": "ada"}),
        call("2", "pay", {"to": "bob"}),
        call("3", "pay", {"to": "eve"}),
    ]
    deny = Permission(result="deny", tell_model="no")
    told = Told(lambda asked: deny if asked.args["to"] == "bob" else ALLOW, reply(calls=calls), DONE).go()
    assert told.ran == ["ada", "eve"]
    assert told.read == ["paid ada", "no", "paid eve"]


HALT = Permission(result="halt", reason=f"fraud by {SECRET}", policy_rule_id="P-9")
THREE = reply(calls=[call(str(n), "pay", {"to": who}) for n, who in enumerate(["ada", "bob", "eve"])])


def halting_at(who: str, halt: Permission = HALT) -> Any:
    return lambda asked: halt if asked.args["to"] == who else ALLOW


def test_a_halt_ends_the_run_with_what_was_proposed_and_by_whom() -> None:
    told = Told(halting_at("bob"), reply(calls=[call("c0", "pay", {"to": "ada"})]), THREE, DONE)
    error = told.halted()
    assert error.reason == f"fraud by {SECRET}"
    assert error.iteration == 2
    assert error.proposed == {"name": "pay", "args": {"to": "bob"}}
    assert (error.tool_call_id, error.checker_id) == ("1", "policy")
    assert isinstance(error, RunError)
    assert (error.run_id, error.segment) == (told.agent.last_run_id, 1)
    assert "bob" not in str(error)


@pytest.mark.parametrize("parallel", [False, True])
def test_behind_a_halt_nothing_is_dispatched(parallel: bool) -> None:
    told = Told(halting_at("bob"), THREE, DONE, parallel_tools=parallel)
    told.halted()
    assert told.ran == ["ada"]
    assert told.rules == ["before 0", "after 0"]
    assert [one.tool_call_id for one in told.checker.asked] == ["0", "1"]
    assert [e.tool_call_id for e in told.seen.of(ToolCallStarted)] == ["0", "1"]
    assert [(e.tool_call_id, e.status) for e in told.seen.of(ToolCallEnded)] == [
        ("0", "ran"),
        ("1", "denied"),
    ]
    assert len(told.model.requests) == 1
    assert told.seen.events[-1].type == "agent.turn_end"
    assert [e.outcome for e in told.seen.of(TurnEnded)] == ["halted"]


def test_a_halt_is_told_once_more_behind_its_check() -> None:
    told = Told(halting_at("ada"), THREE)
    told.halted()
    (checked,), (halted,) = told.seen.of(PermissionAnswered), told.seen.of(PermissionHalted)
    assert (checked.result, checked.policy_rule_id) == ("halt", "P-9")
    assert (halted.target, halted.tool_call_id, halted.iteration, halted.checker) == ("pay", "0", 1, "policy")
    assert told.seen.types.index("permission.halt") == told.seen.types.index("permission.check") + 1
    assert SECRET not in repr(told.seen.events)


def test_the_models_text_of_a_halt_is_the_checkers_and_otherwise_does_not_hold_the_reason() -> None:
    told = Told(halting_at("ada", Permission(result="halt", reason=SECRET, tell_model="We stop.")), THREE)
    told.halted()
    assert [fact.text for fact in told.facts(CallAnswered)] == ["We stop."]
    told = Told(halting_at("ada", Permission(result="halt", reason=SECRET, rationale=SECRET)), THREE)
    told.halted()
    (fact,) = told.facts(CallAnswered)
    assert "pay" in fact.text
    assert SECRET not in fact.text
    (filed,) = told.facts(PermissionChecked)
    assert (filed.reason, filed.rationale) == (SECRET, SECRET)


def test_a_halted_turn_leaves_the_conversation_as_it_was_and_the_agent_usable() -> None:
    told = Told(halting_at("ada"), reply(text="hello"), THREE, DONE)

    async def story() -> None:
        answered(await told.agent.run("first"))
        with pytest.raises(PolicyHaltError):
            await told.agent.follow_up("second")
        answered(await told.agent.follow_up("third"))

    run(story())
    assert [m.text for m in told.model.requests[-1].messages] == ["first", "hello", "third"]


def test_a_halt_without_a_reason_says_whom_to_ask() -> None:
    error = Told(halting_at("ada", Permission(result="halt")), THREE).halted()
    assert error.reason is None
    assert "policy" in str(error)


def test_a_halt_on_an_approved_resume_runs_nothing() -> None:
    ran: list[int] = []
    checker = Checker(lambda asked: HALT if approved else ALLOW)
    approved: list[bool] = []

    @tool(name="pay")
    async def pay() -> None:
        """Pay."""
        ran.append(1)

    @before_tool("four-eyes")
    def four_eyes(asked: ToolCallContext) -> ToolOutcome:
        return ask("Really?")

    builder, _ = describe([reply(calls=[call("c1", "pay", {})]), DONE], pay)
    agent = builder.act(before_tool=[four_eyes]).permission(checker).build()

    async def story() -> None:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        approved.append(True)
        with pytest.raises(PolicyHaltError) as caught:
            await agent.resume(pause.checkpoint, check_in_approved(by="dana"))
        assert (caught.value.run_id, caught.value.segment) == (pause.run_id, 2)

    run(story())
    assert ran == []


class MuteError(Exception):
    """Has a text that cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError(SECRET)


def pauses(_: object) -> Any:
    """What only a tool may do."""
    ask_human(f"may I, {SECRET}?")


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError(f"no connection to {SECRET}"),
        KeyError(),
        StopIteration(SECRET),
        StopAsyncIteration(SECRET),
        RecursionError(SECRET),
        MuteError(),
        pauses,
    ],
    ids=lambda answer: getattr(answer, "__name__", type(answer).__name__),
)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_checker_that_raises_is_a_denial_that_says_it_will_not_change(answer: Any, is_async: bool) -> None:
    told = Told(later(answer) if is_async else answer).go()
    assert (told.ran, told.rules) == ([], [])
    (text,) = told.read
    assert "pay" in text
    assert "will not change in this run" in text
    assert SECRET not in text
    (filed,) = told.facts(PermissionChecked)
    assert filed.result == "deny"
    assert filed.error_class
    (event,) = told.seen.of(PermissionAnswered)
    assert event.result == "deny"
    assert SECRET not in repr(told.seen.events)


def later(answer: Any) -> Any:
    """The same, said by a coroutine."""

    def check(asked: ToolCallContext) -> Any:
        async def says() -> Any:
            said = answer(asked) if callable(answer) else answer
            if isinstance(said, BaseException):
                raise said
            return said

        return says()

    return check


class Lookalike:
    """Looks like an answer that allows."""

    result = "allow"
    tell_model = rationale = reason = policy_rule_id = None


def made(**fields: Any) -> Any:
    """An answer, made without a type checker."""
    return Permission(**fields)


WRONG: dict[str, Any] = {
    "nothing": None,
    "true": True,
    "a word": "allow",
    "a dict": {"result": "allow"},
    "an outcome of rules": allow(),
    "the class": lambda _: Permission,
    "a lookalike": Lookalike(),
    "a subclass": type("Kinder", (Permission,), {})(result="allow"),
    "an unknown word": made(result="maybe"),
    "another case": made(result="ALLOW"),
    "no word": made(result=None),
    "a list": made(result=["allow"]),
    "a text that is none": made(result="allow", tell_model=5),
    "a rule id that is none": made(result="allow", policy_rule_id=7),
    "a reason that is none": made(result="halt", reason={}),
    "a coroutine of a coroutine": later(later(ALLOW)),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("is_async", [False, True])
def test_an_answer_that_is_none_of_the_known_ones_is_a_denial(wrong: Any, is_async: bool) -> None:
    told = Told(later(wrong) if is_async else wrong).go()
    assert (told.ran, told.rules) == ([], [])
    (text,) = told.read
    assert "not permitted" in text
    assert [(e.result, e.policy_rule_id) for e in told.seen.of(PermissionAnswered)] == [("deny", None)]
    assert not told.seen.of(PermissionHalted)
    assert [fact.error_class for fact in told.facts(PermissionChecked)] == [None]


def test_a_refused_call_meets_no_rule_and_asks_for_no_credential() -> None:
    seen = Seen()
    needy = tool(name="pay", needs="bank")(lambda: 1)
    builder, _ = describe([reply(calls=[call("c1", "pay", {})]), DONE], needy, watch=[seen])
    builder.permission(Checker(Permission(result="deny")))
    answer = answered(run(builder.tool_middleware(before_tool("r")(lambda _: allow())).build().run("go")))
    assert answer.decisions == ()
    assert seen.of(DecisionFiled) == []
    assert seen.of(CredentialRequested) == []


@pytest.mark.parametrize("answer", [Permission(result="deny"), RuntimeError(), None])
def test_the_model_reads_the_same_refusal_with_rules_and_without(answer: Any) -> None:
    texts: list[str] = []
    for rules in ([], [before_tool("r")(lambda _: allow())]):
        pay = tool(name="pay")(lambda: 1)
        builder, model = describe([reply(calls=[call("c1", "pay", {})]), DONE], pay)
        answered(run(builder.act(before_tool=rules).permission(Checker(answer)).build().run("go")))
        texts.append(model.requests[-1].messages[-1].text)
    assert texts[0] == texts[1]
