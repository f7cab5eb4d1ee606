"""Rules at the four moments: what they see, what they may answer, and the rows they leave."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from footprint_core import (
    Allow,
    Ask,
    Decision,
    Deny,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    Messages,
    ToolCallContext,
    ToolMessage,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    deny,
    on_message,
    tool,
)
from footprint_core.facts import Decided
from footprint_core.pause.signal import ask_human, pause_here
from footprint_core.providers import call, reply
from story import answered, describe, facts_of, run


def pay(amount: int) -> dict[str, Any]:
    """Pay."""
    return {"paid": amount, "card": "4111"}


PAYS = [reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")]


def _before(answer: Any) -> Any:
    @before_tool("rule")
    def rule(call: ToolCallContext) -> ToolOutcome:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    return rule


def _after(answer: Any) -> Any:
    @after_tool("after-rule")
    def rule(call: ToolResultContext) -> ToolResultOutcome:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    return rule


def _message(answer: Any, *, at: str = "input") -> Any:
    @on_message("rule")
    def rule(message: MessageContext) -> MessageOutcome:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    return {at: [rule]}


def _rows(act: Any, replies: Any = PAYS) -> tuple[list[dict[str, Any]], Any]:
    builder, model = describe(replies, pay, act=act)
    return [facts_of(row) for row in answered(run(builder.build().run("go"))).decisions], model


TOOL_ROW = {
    "segment": 1,
    "middleware": "rule",
    "at": "tool",
    "iteration": 1,
    "tool_name": "pay",
    "tool_call_id": "c1",
}


def test_a_pass_through_leaves_a_row_and_changes_nothing() -> None:
    rows, model = _rows({"before_tool": [_before(allow())], "after_tool": [_after(allow(why="seen"))]})
    first, second = rows
    assert first.pop("version") != second["version"]
    assert first == {**TOOL_ROW, "position": 6, "moment": "before-tool", "outcome": "allow", "changed": False}
    assert second["why"] == "seen"
    assert model.requests[1].messages[-1].text == '{"paid":5,"card":"4111"}'


def test_a_replacement_of_the_args_is_what_runs_and_the_row_holds_both() -> None:
    rows, model = _rows({"before_tool": [_before(allow({"amount": 1}, why="less"))]})
    assert (rows[0]["changed"], rows[0]["before"], rows[0]["after"]) == (True, {"amount": 5}, {"amount": 1})
    assert model.requests[1].messages[-1].text == '{"paid":1,"card":"4111"}'
    assert model.requests[1].messages[1].calls[0].args == {"amount": 5}


def test_an_equal_replacement_is_no_change_and_keeps_its_reason() -> None:
    rows, _ = _rows({"before_tool": [_before(allow({"amount": 5}, why="same"))]})
    assert (rows[0]["changed"], rows[0]["why"], "before" in rows[0]) == (False, "same", False)


def test_a_refused_call_does_not_run_and_the_model_reads_the_reason() -> None:
    rows, model = _rows({"before_tool": [_before(deny("not today"))], "after_tool": [_after(allow())]})
    assert len(rows) == 1
    assert (rows[0]["outcome"], rows[0]["why"], rows[0]["changed"]) == ("deny", "not today", False)
    assert model.requests[1].messages[-1].text == "not today"


def test_a_refused_result_survives_in_its_row_only() -> None:
    rows, model = _rows({"after_tool": [_after(deny("withheld"))]})
    assert rows[0]["before"] == {"paid": 5, "card": "4111"}
    assert rows[0]["after"] == "withheld"
    assert model.requests[1].messages[-1].text == "withheld"


def test_a_result_may_be_replaced_by_anything_also_by_nothing() -> None:
    _, model = _rows({"after_tool": [_after(allow(None, why="nothing to see"))]})
    assert model.requests[1].messages[-1].text == "null"


def test_the_after_chain_is_walked_backwards_and_each_link_sees_what_the_one_before_left() -> None:
    seen: list[tuple[str, Any]] = []

    def link(name: str) -> Any:
        @after_tool(name)
        def rule(call: ToolResultContext) -> ToolResultOutcome:
            seen.append((name, call.result))
            return allow([*call.result, name] if isinstance(call.result, list) else [name], why=name)

        return rule

    _rows({"after_tool": [link("p"), link("q")]})
    assert seen == [("q", {"paid": 5, "card": "4111"}), ("p", ["q"])]


def test_the_first_refusal_wins_and_later_links_are_not_asked() -> None:
    asked: list[str] = []

    def link(name: str, answer: Any) -> Any:
        @before_tool(name)
        def rule(call: ToolCallContext) -> ToolOutcome:
            asked.append(name)
            return answer  # type: ignore[no-any-return]

        return rule

    rows, _ = _rows({"before_tool": [link("a", allow()), link("b", deny("no")), link("c", allow())]})
    assert asked == ["a", "b"]
    assert [row["middleware"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "allow",
        {"kind": "allow"},
        {"kind": "result", "value": "made-up"},
        object(),
        allow,
        type("Allow", (Allow,), {})(),
        type("Deny", (Deny,), {})(reason="made-up"),
    ],
)
def test_an_answer_that_is_no_outcome_is_a_denial_that_names_its_type_and_not_its_content(
    answer: Any,
) -> None:
    for act in ({"before_tool": [_before(answer)]}, {"after_tool": [_after(answer)]}):
        rows, model = _rows(act)
        text = model.requests[1].messages[-1].text
        assert rows[0]["outcome"] == "deny"
        assert "rule" in text
        assert type(answer).__name__ in text
        assert "made-up" not in text


def test_a_question_where_none_is_legal_is_a_denial() -> None:
    rows, model = _rows({"after_tool": [_after(ask("may it?"))]})
    assert rows[0]["outcome"] == "deny"
    assert "Ask" in model.requests[1].messages[-1].text
    assert "may it?" not in model.requests[1].messages[-1].text
    with pytest.raises(MessageDeniedError, match="Ask"):
        _rows(_message(ask("may it?")))


def test_a_rule_that_raises_is_a_denial_with_its_text_and_name() -> None:
    rows, model = _rows({"before_tool": [_before(ValueError("no such tier"))]})
    assert "rule" in model.requests[1].messages[-1].text
    assert "no such tier" in model.requests[1].messages[-1].text
    assert rows[0]["error_class"] == "ValueError"
    _, model = _rows({"before_tool": [_before(KeyError())]})
    assert "KeyError" in model.requests[1].messages[-1].text


def test_a_replacement_of_the_wrong_type_is_a_denial() -> None:
    _, model = _rows({"before_tool": [_before(allow("text", why="w"))]})
    assert "str" in model.requests[1].messages[-1].text
    with pytest.raises(MessageDeniedError, match="int"):
        _rows(_message(allow(3, why="w")))


def test_a_rule_may_be_async_and_an_object() -> None:
    class Rule:
        name = "rule"

        async def on_tool_call(self, call: ToolCallContext) -> ToolOutcome:
            return deny("by an object")

    _, model = _rows({"before_tool": [Rule()]})
    assert model.requests[1].messages[-1].text == "by an object"


def test_whatever_a_hook_returns_is_awaited_once_when_it_can_be() -> None:
    class Awaitable:
        awaited = 0

        def __await__(self) -> Any:
            Awaitable.awaited += 1
            yield from asyncio.sleep(0).__await__()
            return deny("later")

    async def coroutine() -> ToolOutcome:
        return deny("later")

    def future() -> Any:
        made = asyncio.get_running_loop().create_future()
        made.set_result(deny("later"))
        return made

    for make in (Awaitable, coroutine, future, lambda: asyncio.create_task(coroutine())):
        rows, model = _rows({"before_tool": [before_tool("rule")(lambda _, make=make: make())]})  # type: ignore[misc]
        assert model.requests[1].messages[-1].text == rows[0]["why"] == "later"
    assert Awaitable.awaited == 1


def test_a_coroutine_that_returns_a_coroutine_is_no_outcome_and_leaves_no_warning() -> None:
    async def inner() -> ToolOutcome:
        return allow()

    async def outer() -> Any:
        return inner()

    rows, model = _rows({"before_tool": [before_tool("rule")(lambda _: outer())]})
    assert "answered with coroutine" in model.requests[1].messages[-1].text
    assert rows[0]["outcome"] == "deny"
    # Python warns of a coroutine nobody awaited when it is collected, and a warning is an error here.
    gc.collect()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "60", 1e300])
def test_a_question_made_without_its_verb_whose_expiry_is_no_time_is_a_denial(seconds: Any) -> None:
    rows, _ = _rows({"before_tool": [_before(Ask(question="may it?", expires_in=seconds))]})
    assert rows[0]["outcome"] == "deny"
    assert rows[0]["why"] == "The rule rule asked with an expiry that is no number of seconds above 0."


def _pauses(_: Any) -> Any:
    ask_human("made-up")


async def _pauses_later(_: Any) -> Any:
    pause_here({"made-up": True})


@pytest.mark.parametrize("timeout", [None, 20.0])
@pytest.mark.parametrize("hook", [_pauses, _pauses_later])
def test_a_rule_cannot_pause_the_run_as_a_tool_can(hook: Any, timeout: float | None) -> None:
    why = "The rule rule tried to pause the run, which counts as a denial: only a tool may pause itself."
    rules: list[Any] = [before_tool("rule", timeout=timeout)(hook), after_tool("rule", timeout=timeout)(hook)]
    for act in ({"before_tool": rules[:1]}, {"after_tool": rules[1:]}):
        rows, model = _rows(act)
        assert (rows[0]["outcome"], rows[0]["why"], rows[0]["error_class"]) == ("deny", why, "PauseSignal")
        assert model.requests[1].messages[-1].text == why
    for phase in ("input", "output"):
        with pytest.raises(MessageDeniedError, match="only a tool may pause itself") as caught:
            _rows({phase: [on_message("rule", timeout=timeout)(hook)]})
        assert caught.value.phase == phase


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_is_no_exception_is_no_denial_and_nothing_acts(error: type[BaseException]) -> None:
    def hook(_: Any) -> Any:
        raise error

    async def later(_: Any) -> Any:
        raise error

    paid: list[int] = []

    @tool(name="pay")
    def counted(amount: int) -> None:
        paid.append(amount)

    for raising in (hook, later):
        ledger = MemoryLedger()
        act: Any = {"before_tool": [before_tool("rule")(raising)]}
        builder, model = describe(PAYS, counted, act=act, ledger=ledger)
        agent = builder.build()
        with pytest.raises(error):
            run(agent.run("go"))
        facts = [entry.fact for entry in ledger.entries(agent.last_run_id or "")]
        assert not [fact for fact in facts if isinstance(fact, Decided)]
        assert paid == []
        assert len(model.requests) == 1


def test_a_verb_without_what_it_needs_is_a_rule_that_raised() -> None:
    odd: Any = allow
    verbs: list[Any] = [
        lambda _: odd({"amount": 1}),
        lambda _: deny(" "),
        lambda _: ask(""),
        lambda _: ask("may it?", expires_in=-1),
    ]
    for verb in verbs:
        rows, _ = _rows({"before_tool": [before_tool("rule")(verb)]})
        assert (rows[0]["outcome"], rows[0]["error_class"]) == ("deny", "OutcomeError")


def test_what_a_rule_does_to_what_it_was_handed_changes_nothing() -> None:
    left: list[Any] = []

    @before_tool("scribbles")
    def before(call: ToolCallContext) -> ToolOutcome:
        call.args["amount"] = 10**6
        call.identity["groups"].append("root")
        call.history = Messages()
        call.tool_name = "refund"
        return allow()

    @after_tool("scribbles-after")
    def after(call: ToolResultContext) -> ToolResultOutcome:
        call.result.clear()
        call.args.clear()
        call.identity["user"] = "mallory"
        left.append((call.tool_name, len(call.history), call.identity["groups"]))
        return allow()

    builder, model = describe(PAYS, pay, act={"before_tool": [before], "after_tool": [after]})
    identity = {"user": "ada", "groups": ["staff"]}
    rows = answered(run(builder.build().run("go", identity=identity))).decisions
    assert [row.changed for row in rows] == [False, False]
    assert model.requests[1].messages[-1].text == '{"paid":5,"card":"4111"}'
    assert identity == {"user": "ada", "groups": ["staff"]}
    assert left == [("pay", 2, ["staff"])]


def test_a_value_is_taken_from_a_rule_by_copy() -> None:
    given = {"amount": 1}

    @before_tool("keeps")
    def keeps(call: ToolCallContext) -> ToolOutcome:
        return allow(given, why="less")

    @before_tool("changes-later")
    def later(call: ToolCallContext) -> ToolOutcome:
        given["amount"] = 99
        return allow()

    rows, model = _rows({"before_tool": [keeps, later]})
    assert rows[0]["after"] == {"amount": 1}
    assert model.requests[1].messages[-1].text == '{"paid":1,"card":"4111"}'


def test_rules_are_shown_where_they_stand() -> None:
    seen: list[Any] = []

    @before_tool("look")
    def look(call: ToolCallContext) -> ToolOutcome:
        seen.append((call.tool_name, call.tool_source, call.tool_call_id, call.iteration, call.args))
        seen.append([m.role for m in call.history])
        return allow()

    replies = [
        reply(calls=[call("a", "pay", {"amount": 1}), call("b", "pay", {"amount": 2})]),
        reply(text="ok"),
    ]
    _rows({"before_tool": [look]}, replies)
    assert seen == [
        ("pay", None, "a", 1, {"amount": 1}),
        ["user", "assistant"],
        ("pay", None, "b", 1, {"amount": 2}),
        ["user", "assistant", "tool"],
    ]


def test_an_input_rule_changes_what_everybody_sees_and_its_row_is_the_only_copy() -> None:
    builder, model = describe(
        [reply(text="ok"), reply(text="ok")],
        act={"input": [on_message("scrub")(lambda m: allow(m.content.replace("1234", "[pin]"), why="pin"))]},
    )
    agent = builder.build()

    async def story() -> Any:
        await agent.run("my pin is 1234")
        return await agent.follow_up("again 1234")

    row = answered(run(story())).decisions[0]
    assert (row.before, row.after, row.iteration, row.phase) == ("again 1234", "again [pin]", 0, "input")
    assert [m.text for m in model.requests[1].messages] == ["my pin is [pin]", "ok", "again [pin]"]


def test_a_refused_message_reaches_nobody_and_is_in_no_frame_of_the_product() -> None:
    builder, model = describe([reply(text="fine")], act=_message(deny("no secrets here")))
    agent = builder.build()
    with pytest.raises(MessageDeniedError) as caught:
        run(agent.run("hunter2 is my password"))
    error = caught.value
    assert (error.reason, error.phase, error.middleware) == ("no secrets here", "input", "rule")
    assert error.run_id == agent.last_run_id
    assert error.__cause__ is None
    assert not model.requests
    _nowhere(error, "hunter2")
    with pytest.raises(MessageDeniedError) as caught:
        builder.build().run_sync("hunter2 is my password")
    _nowhere(caught.value, "hunter2")


def test_a_refused_answer_is_in_no_frame_of_the_product_and_not_in_the_conversation() -> None:
    replies = [reply(text="first"), reply(text="the code is hunter2"), reply(text="third")]

    @on_message("no-codes")
    def no_codes(message: MessageContext) -> MessageOutcome:
        return deny("a code") if "hunter2" in message.content else allow()

    builder, model = describe(replies, act={"output": [no_codes]})
    agent = builder.build()
    run(agent.run("one"))
    with pytest.raises(MessageDeniedError) as caught:
        run(agent.follow_up("two"))
    assert caught.value.phase == "output"
    _nowhere(caught.value, "hunter2")
    run(agent.follow_up("three"))
    assert [m.text for m in model.requests[2].messages] == ["one", "first", "three"]


def _nowhere(error: BaseException, secret: str) -> None:
    """Nothing of a refused content in an error or in the locals of the product's frames."""
    assert secret not in f"{error!s} {error!r} {error.__dict__} {error.__context__!r}"
    frame = error.__traceback__
    while frame is not None:
        if "footprint_core" in frame.tb_frame.f_code.co_filename:
            for name, value in frame.tb_frame.f_locals.items():
                inner = {} if name == "self" else getattr(value, "__dict__", {})
                slots = {
                    k: getattr(value, k, None)
                    for k in getattr(type(value), "__slots__", ())
                    if name != "self"
                }
                assert secret not in f"{value!r} {inner!r} {slots!r}", name
        frame = frame.tb_next


def test_an_output_rule_decides_what_caller_and_conversation_get() -> None:
    replies = [reply(text="Bluebird says hi"), reply(text="again")]
    clean = on_message("clean")(lambda m: allow(m.content.replace("Bluebird", "We"), why="name"))
    builder, model = describe(replies, act={"output": [clean]})
    agent = builder.build()

    async def story() -> Any:
        first = answered(await agent.run("one"))
        await agent.follow_up("two")
        return first

    assert run(story()).text == "We says hi"
    assert model.requests[1].messages[1].text == "We says hi"


def test_a_rule_named_for_one_message_moment_passes_through_at_the_other_with_a_row_without_a_duration() -> (
    None
):
    seen: list[str] = []

    def rule(name: str) -> Any:
        @on_message(name)
        def hook(message: MessageContext) -> MessageOutcome:
            seen.append(f"{name} at {message.phase}")
            return allow()

        return hook

    both = rule("both")
    builder, _ = describe(
        [reply(text="ok")], act={"input": [rule("in"), both], "output": [both, rule("out")]}
    )
    rows: tuple[Decision, ...] = answered(run(builder.build().run("go"))).decisions
    assert seen == ["in at input", "both at input", "both at output", "out at output"]
    assert [(r.middleware, r.moment, r.duration is None) for r in rows] == [
        ("in", "input", False),
        ("both", "input", False),
        ("out", "input", True),
        ("in", "output", True),
        ("both", "output", False),
        ("out", "output", False),
    ]


def test_without_rules_there_are_no_rows_and_the_same_requests() -> None:
    bare, bare_model = describe(PAYS, pay)
    ruled, ruled_model = describe(PAYS, pay, act={"before_tool": [_before(allow())]})
    assert answered(run(bare.build().run("go"))).decisions == ()
    run(ruled.build().run("go"))
    assert bare_model.requests == ruled_model.requests


def test_the_same_run_twice_gives_equal_rows() -> None:
    act: Any = {"before_tool": [_before(allow({"amount": 2}, why="w"))], "after_tool": [_after(allow())]}
    assert _rows(act)[0] == _rows(act)[0]


def test_a_result_json_cannot_hold_is_a_mark_and_never_breaks_the_run() -> None:
    def odd() -> object:
        return {"handle": object()}

    builder, model = describe([reply(calls=[call("1", "odd", {})]), reply(text="ok")], odd)
    run(builder.build().run("go"))
    message = model.requests[1].messages[-1]
    assert isinstance(message, ToolMessage)
    assert message.text == '{"handle":"[not JSON: object]"}'
