"""One turn, from message to answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field

from footprint_core import (
    AssistantMessage,
    Batch,
    BuilderError,
    InvalidRunInputError,
    MemoryLedger,
    NoConversationError,
    ProviderError,
    Receipt,
    RunError,
    RunInFlightError,
    Tool,
    ToolCall,
    ToolContext,
    ToolMessage,
    before_tool,
    deny,
    tool,
)
from footprint_core.providers import Completed, call, reply
from footprint_core.tools.tool import accept_any
from story import Seen, answered, describe, run


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


async def later(text: str) -> str:
    """Say it later."""
    await asyncio.sleep(0)
    return text


def test_the_model_reads_the_real_result_and_answers() -> None:
    builder, model = describe(
        [reply(calls=[call("1", "add", {"a": 2}), call("2", "later", {"text": "x"})]), reply(text="3")],
        add,
        later,
    )
    assert answered(run(builder.system("Be exact.").build().run("2 + 1?"))).text == "3"
    assert model.requests[0].system == "Be exact."
    assert [offer.name for offer in model.requests[0].tools] == ["add", "later"]
    assert model.requests[0].tools[0].schema["required"] == ["a"]
    request = model.requests[1].messages
    assert [message.role for message in request] == ["user", "assistant", "tool", "tool"]
    assert [m.text for m in request if isinstance(m, ToolMessage)] == ["3", "x"]
    model.assert_used()


def test_a_tool_that_raises_is_answered_with_the_message_of_its_error() -> None:
    def breaks() -> None:
        raise LookupError("order 41 is not known")

    def quiet() -> None:
        raise StopIteration

    builder, model = describe(
        [reply(calls=[call("1", "breaks", {}), call("2", "quiet", {})]), reply(text="done")], breaks, quiet
    )
    run(builder.build().run("go"))
    texts = [m.text for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert texts == ["order 41 is not known", "StopIteration"]


def test_arguments_that_do_not_fit_are_refused_by_path_and_type_and_never_by_value() -> None:
    args = {"a": "hunter2", "c": ["hunter2"]}
    builder, model = describe([reply(calls=[call("1", "add", args)]), reply(text="done")], add)
    run(builder.build().run("go"))
    text = model.requests[1].messages[-1].text
    assert "add" in text
    assert "a: expected integer, got string" in text
    assert "c: expected no such argument, got array" in text
    assert "hunter2" not in text


def test_an_unknown_tool_is_answered_by_name() -> None:
    builder, model = describe([reply(calls=[call("1", "tock", {})]), reply(text="done")], add)
    run(builder.build().run("go"))
    assert "tock" in model.requests[1].messages[-1].text


def test_a_call_id_used_twice_in_one_reply_runs_once() -> None:
    ran: list[int] = []

    def once(n: int) -> int:
        ran.append(n)
        return n

    builder, model = describe(
        [reply(calls=[call("1", "once", {"n": 1}), call("1", "once", {"n": 2})]), reply(text="done")], once
    )
    run(builder.build().run("go"))
    assert ran == [1]
    turn = model.requests[1].messages[1]
    assert isinstance(turn, AssistantMessage)
    ids = [c.id for c in turn.calls]
    assert len(set(ids)) == 2
    assert [m.call_id for m in model.requests[1].messages if isinstance(m, ToolMessage)] == ids
    assert "used twice" in model.requests[1].messages[-1].text


def test_a_call_id_used_again_in_a_later_reply_runs() -> None:
    ran: list[int] = []

    def again(n: int) -> int:
        ran.append(n)
        return n

    calls = [reply(calls=[call("1", "again", {"n": n})]) for n in (1, 2)]
    builder, _ = describe([*calls, reply(text="done")], again)
    run(builder.build().run("go"))
    assert ran == [1, 2]


def test_the_context_gives_a_tool_its_idempotency_key() -> None:
    keys: list[ToolContext] = []

    def pay(amount: int, context: ToolContext) -> str:
        keys.append(context)
        return "paid"

    builder, model = describe([reply(calls=[call("1", "pay", {"amount": 3})]), reply(text="done")], pay)
    ledger = MemoryLedger()
    outcome = answered(run(builder.ledger(ledger).build().run("go", identity={"user": "ada"})))
    intent = next(e for e in ledger.entries(outcome.run_id) if type(e.fact).__name__ == "ToolIntended")
    assert keys[0].idempotency_key == f"{outcome.run_id}:{intent.position}"
    assert keys[0].identity == {"user": "ada"}
    assert "context" not in model.requests[0].tools[0].schema["properties"]


def test_a_tool_that_changes_its_arguments_changes_nothing_else() -> None:
    def scribble(items: list[int]) -> int:
        items.clear()
        return 0

    ledger = MemoryLedger()
    builder, _ = describe(
        [reply(calls=[call("1", "scribble", {"items": [1, 2]})]), reply(text="done")], scribble, ledger=ledger
    )
    outcome = answered(run(builder.build().run("go")))
    intent = next(e.fact for e in ledger.entries(outcome.run_id) if type(e.fact).__name__ == "ToolIntended")
    assert getattr(intent, "args", None) == {"items": [1, 2]}


@pytest.mark.parametrize("message", ["", "  \n", None, 3])
def test_a_message_that_is_no_text_is_refused_before_anything(message: object) -> None:
    seen = Seen()
    builder, model = describe([], watch=[seen])
    with pytest.raises(InvalidRunInputError, match="run"):
        run(builder.build().run(message))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert not seen.events
    assert not model.requests


def test_a_follow_up_goes_on_and_a_run_begins_anew() -> None:
    builder, model = describe([reply(text=str(i)) for i in range(3)])
    agent = builder.build()

    async def story() -> None:
        with pytest.raises(NoConversationError):
            await agent.follow_up("too early")
        await agent.run("one")
        await agent.follow_up("two")
        await agent.run("three")

    run(story())
    assert [[m.text for m in r.messages] for r in model.requests] == [["one"], ["one", "0", "two"], ["three"]]


def test_sessions_are_independent_conversations() -> None:
    builder, model = describe([reply(text=str(i)) for i in range(3)])
    agent = builder.build()

    async def story() -> None:
        left, right = agent.session(conversation_id="left"), agent.session()
        await left.run("l1")
        await right.run("r1")
        await left.follow_up("l2")

    run(story())
    assert [m.text for m in model.requests[2].messages] == ["l1", "0", "l2"]


def test_an_error_of_the_provider_reaches_the_caller_and_leaves_the_conversation_as_it_was() -> None:
    seen = Seen()
    builder, model = describe([reply(text="one")], watch=[seen])
    agent = builder.build()

    async def story() -> None:
        await agent.run("first")
        with pytest.raises(ProviderError, match="UnexpectedRequestError") as caught:
            await agent.follow_up("second")
        assert type(caught.value.__cause__).__name__ == "UnexpectedRequestError"
        assert caught.value.run_id == agent.last_run_id

    run(story())
    assert seen.types[-3:] == ["stream.llm_end", "error.fatal", "agent.turn_end"]
    with pytest.raises(ProviderError):
        run(agent.follow_up("third"))
    assert [m.text for m in model.requests[-1].messages] == ["first", "one", "third"]


def test_the_budget_closes_a_turn_with_one_more_call_without_tools() -> None:
    ask_again = [reply(calls=[call(str(i), "add", {"a": i})]) for i in range(2)]
    builder, model = describe([*ask_again, reply(text="that is all")], add, max_iterations=2)
    outcome = answered(run(builder.build().run("go")))
    assert outcome.text == "that is all"
    assert outcome.stopped_early is not None
    assert (outcome.stopped_early.iteration, outcome.stopped_early.wrapped_up) == (2, True)
    assert [len(r.tools) for r in model.requests] == [1, 1, 0]
    assert [m.role for m in model.requests[2].messages] == ["user", "assistant", "tool", "user"]


def test_a_budget_without_a_wrap_up_ends_on_the_last_text() -> None:
    replies = [reply(text="so far", calls=[call("1", "add", {"a": 1})])]
    builder, _ = describe(replies, add, max_iterations=1, wrap_up=False)
    outcome = answered(run(builder.build().run("go")))
    assert outcome.text == "so far"
    assert outcome.stopped_early is not None
    assert not outcome.stopped_early.wrapped_up


def test_run_sync_runs_plain_tools_in_the_calling_thread_and_refuses_a_running_loop() -> None:
    threads: list[int] = []

    def where() -> str:
        threads.append(threading.get_ident())
        return "here"

    replies = [reply(calls=[call("1", "where", {})]), reply(text="done")]
    assert answered(describe(replies, where)[0].build().run_sync("go")).text == "done"
    run(describe(replies, where)[0].build().run("go"))
    assert threads[0] == threading.get_ident()
    assert threads[1] != threading.get_ident()

    async def inside() -> None:
        describe(replies, where)[0].build().run_sync("go")

    with pytest.raises(RunError, match="await run"):
        run(inside())


def test_an_inline_tool_runs_on_the_loops_own_thread() -> None:
    threads: list[int] = []

    @tool(name="quick", inline=True)
    def where() -> str:
        threads.append(threading.get_ident())
        return "here"

    run(describe([reply(calls=[call("1", "quick", {})]), reply(text="done")], where)[0].build().run("go"))
    assert threads == [threading.get_ident()]


def test_one_session_runs_one_turn_at_a_time() -> None:
    gate = asyncio.Event()

    async def wait() -> str:
        await gate.wait()
        return "waited"

    builder, _ = describe([reply(calls=[call("1", "wait", {})]), reply(text="done")], wait)
    agent = builder.build()

    async def story() -> None:
        first = asyncio.ensure_future(agent.run("one"))
        await asyncio.sleep(0)
        with pytest.raises(RunInFlightError):
            await agent.run("two")
        gate.set()
        assert answered(await first).text == "done"

    run(story())


def test_a_cancelled_turn_ends_once_and_its_intent_stays() -> None:
    entered = asyncio.Event()
    seen = Seen()
    ledger = MemoryLedger()

    async def hang() -> None:
        entered.set()
        await asyncio.Event().wait()

    builder, _ = describe([reply(calls=[call("1", "hang", {})])], hang, watch=[seen], ledger=ledger)
    agent = builder.build()

    async def story() -> None:
        turn = asyncio.ensure_future(agent.run("go"))
        await entered.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    run(story())
    assert seen.types.count("agent.turn_end") == 1
    assert getattr(seen.events[-1], "outcome", None) == "cancelled"
    kinds = [type(e.fact).__name__ for e in ledger.entries(agent.last_run_id or "")]
    assert kinds[-3:] == ["ToolIntended", "ToolFinished", "SegmentEnded"]


def _kinds(ledger: MemoryLedger, agent: Any) -> list[str]:
    return [type(e.fact).__name__ for e in ledger.entries(agent.last_run_id or "")]


def test_a_plain_tool_is_waited_for_when_its_turn_is_cancelled_and_its_outcome_is_filed() -> None:
    entered, leave, ledger = threading.Event(), threading.Event(), MemoryLedger()

    def pay() -> str:
        entered.set()
        assert leave.wait(10)
        return "paid"

    builder, model = describe([reply(calls=[call("1", "pay", {})])], pay, ledger=ledger)
    agent = builder.build()

    async def story() -> None:
        turn = asyncio.ensure_future(agent.run("go"))
        assert await asyncio.to_thread(entered.wait, 10)
        turn.cancel()
        await asyncio.sleep(0)
        assert not turn.done()
        leave.set()
        with pytest.raises(asyncio.CancelledError):
            await turn

    run(story())
    assert _kinds(ledger, agent)[-3:] == ["ToolIntended", "ToolFinished", "SegmentEnded"]
    finished = ledger.entries(agent.last_run_id or "")[-2].fact
    assert (getattr(finished, "result", None), getattr(finished, "cancelled", None)) == ("paid", False)
    assert len(model.requests) == 1


def test_a_second_cancellation_stops_waiting_and_leaves_the_call_in_doubt() -> None:
    entered, leave, ledger = threading.Event(), threading.Event(), MemoryLedger()

    def pay() -> str:
        entered.set()
        leave.wait(10)
        return "paid"

    builder, _ = describe([reply(calls=[call("1", "pay", {})])], pay, ledger=ledger)
    agent = builder.build()

    async def story() -> None:
        turn = asyncio.ensure_future(agent.run("go"))
        assert await asyncio.to_thread(entered.wait, 10)
        turn.cancel()
        await asyncio.sleep(0)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        leave.set()

    run(story())
    assert _kinds(ledger, agent)[-2:] == ["ToolIntended", "SegmentEnded"]


def test_an_interrupt_in_a_tool_ends_the_turn_and_is_raised() -> None:
    async def stops() -> None:
        raise KeyboardInterrupt

    ledger = MemoryLedger()
    builder, _ = describe([reply(calls=[call("1", "stops", {})])], stops, ledger=ledger)
    agent = builder.build()
    turn: Any = agent.run("go")
    with pytest.raises(KeyboardInterrupt):
        turn.send(None)
    assert _kinds(ledger, agent)[-3:] == ["ToolIntended", "ToolFinished", "SegmentEnded"]


def test_a_tool_that_would_end_the_program_is_answered_like_any_that_raised() -> None:
    def exits() -> None:
        raise SystemExit("usage: exits [-h]")

    builder, model = describe([reply(calls=[call("1", "exits", {})]), reply(text="done")], exits)
    assert answered(run(builder.build().run("go"))).text == "done"
    assert model.requests[1].messages[-1].text == "usage: exits [-h]"


def test_a_tool_that_raises_a_cancellation_by_itself_is_answered_like_any_that_raised() -> None:
    async def odd() -> None:
        raise asyncio.CancelledError

    builder, model = describe([reply(calls=[call("1", "odd", {})]), reply(text="done")], odd)
    assert answered(run(builder.build().run("go"))).text == "done"
    assert model.requests[1].messages[-1].text == "CancelledError"


def test_arguments_nested_deeper_than_anybody_reads_break_nothing() -> None:
    def look(q: Any) -> str:
        return "looked"

    for depth in (700, 5000):
        text = '{"q":' * depth + "1" + "}" * depth
        deep = ToolCall(id="1", name="look", args_json=text)
        builder, model = describe([reply(calls=[deep]), reply(text="done")], look)
        assert answered(run(builder.build().run("go"))).text == "done"
        assert isinstance(model.requests[1].messages[-1], ToolMessage)


@pytest.mark.parametrize("args", ["{", "[]", "3", "null", '"text"', ""])
def test_arguments_that_are_no_object_are_refused(args: str) -> None:
    odd = ToolCall(id="1", name="add", args_json=args)
    builder, model = describe([reply(calls=[odd]), reply(text="done")], add)
    assert answered(run(builder.build().run("go"))).text == "done"
    assert "expected a JSON object" in model.requests[1].messages[-1].text


def test_text_that_cannot_be_written_is_mended_where_it_enters() -> None:
    builder, model = describe([reply(text="bye \udc00")])
    agent = builder.system("be \ud800 kind").build()
    outcome = answered(run(agent.run("hi \ud800")))
    for text in (outcome.text, model.requests[0].system, model.requests[0].messages[0].text):
        assert text.encode().decode() == text


def refuses(value: int) -> int:
    raise RuntimeError(f"secret {value}")


def test_a_type_whose_validator_raises_anything_is_invalid_arguments() -> None:
    def pay(amount: Annotated[int, AfterValidator(refuses)]) -> str:
        return "paid"

    builder, model = describe([reply(calls=[call("1", "pay", {"amount": 41})]), reply(text="done")], pay)
    assert answered(run(builder.build().run("go"))).text == "done"
    text = model.requests[1].messages[-1].text
    assert "not valid" in text
    assert "41" not in text


class Hostile:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("mine")


class HostileDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("mine")


def _twice_within() -> Any:
    endless: list[Any] = []
    endless += [endless, endless]
    return endless


@pytest.mark.parametrize(
    "make",
    [Hostile, lambda: HostileDict(a=1), lambda: 10**6000, _twice_within, lambda: {"a": {1, 2}}],
)
def test_whatever_a_tool_returns_is_filed_and_read(make: Callable[[], Any]) -> None:
    def odd() -> Any:
        return make()

    builder, model = describe([reply(calls=[call("1", "odd", {})]), reply(text="done")], odd)
    assert answered(run(builder.build().run("go"))).text == "done"
    model.requests[1].messages[-1].text.encode()


def test_a_generator_is_refused_as_a_tool() -> None:
    def pages() -> Iterator[int]:
        yield 1

    with pytest.raises(BuilderError, match="generator"):
        describe([], pages)


def test_a_refusal_is_told_from_a_result_that_reads_the_same() -> None:
    says_the_same: Any = {"before_tool": [before_tool("no")(lambda _: deny("3"))]}
    for act, refused in ((says_the_same, True), (None, False)):
        builder, model = describe(
            [reply(calls=[call("1", "add", {"a": 2})]), reply(text="done")], add, act=act
        )
        run(builder.build().run("go"))
        message = model.requests[1].messages[-1]
        assert isinstance(message, ToolMessage)
        assert (message.text, message.refused) == ("3", refused)


def test_a_wrap_up_that_asks_for_tools_again_ends_the_turn() -> None:
    again = [reply(text=f"part {i}", calls=[call(str(i), "add", {"a": i})]) for i in range(3)]
    builder, model = describe(again, add, max_iterations=2)
    outcome = answered(run(builder.build().run("go")))
    assert outcome.text == "part 2"
    assert outcome.stopped_early is not None
    assert outcome.stopped_early.pending_tool_calls == 1
    assert len(model.requests) == 3


def test_a_tool_that_takes_any_object_gets_a_copy_of_its_own() -> None:
    async def scribbles(args: Any) -> str:
        args["x"] = "forged"
        return "ok"

    made = Tool(
        name="any",
        description="",
        schema={},
        keys=frozenset(),
        check=accept_any,
        body=scribbles,
        is_async=True,
    )
    ledger = MemoryLedger()
    builder, _ = describe(
        [reply(calls=[call("1", "any", {"x": 1})]), reply(text="done")], made, ledger=ledger
    )
    outcome = answered(run(builder.build().run("go")))
    intent = next(e.fact for e in ledger.entries(outcome.run_id) if type(e.fact).__name__ == "ToolIntended")
    assert getattr(intent, "args", None) == {"x": 1}


_ANY: Any = Completed


@pytest.mark.parametrize(
    "broken", [_ANY(text=None), _ANY(tool_calls=[]), _ANY(tool_calls=("call",)), _ANY(text=5)]
)
def test_a_provider_that_breaks_its_port_is_an_error_of_the_provider(broken: Completed) -> None:
    builder, _ = describe([broken])
    with pytest.raises(ProviderError, match="TypeError"):
        run(builder.build().run("go"))


def test_a_number_json_cannot_hold_is_no_argument() -> None:
    ran: list[Any] = []

    def refund(amount: float, more: Nested) -> str:
        ran.append(amount)
        return "refunded"

    wrong: list[Any] = [
        {"amount": "nan", "more": {"x": 1}},
        {"amount": "inf", "more": {"x": 1}},
        {"amount": 1, "more": {"x": "-inf"}},
    ]
    for args in wrong:
        builder, model = describe([reply(calls=[call("1", "refund", args)]), reply(text="done")], refund)
        assert answered(run(builder.build().run("go"))).text == "done"
        assert "not valid" in model.requests[1].messages[-1].text
    assert ran == []


class Nested(BaseModel):
    x: float


def test_a_field_as_a_default_is_refused_since_it_would_be_ignored() -> None:
    def pay(amount: int = Field(ge=0)) -> str:
        return "paid"

    with pytest.raises(BuilderError, match="Annotated"):
        describe([], pay)


def test_the_intent_holds_a_default_as_the_calls_before_it_left_it() -> None:
    def collect(x: int, seen: list[int] = []) -> str:  # noqa: B006 - what a user may write
        seen.append(x)
        return str(seen)

    ledger = MemoryLedger()
    calls = [call("1", "collect", {"x": 1}), call("2", "collect", {"x": 2})]
    builder, _ = describe([reply(calls=calls), reply(text="done")], collect, ledger=ledger)
    outcome = answered(run(builder.build().run("go")))
    intents = [e.fact for e in ledger.entries(outcome.run_id) if type(e.fact).__name__ == "ToolIntended"]
    assert [getattr(i, "args", None) for i in intents] == [{"seen": [], "x": 1}, {"seen": [1], "x": 2}]


def test_an_escape_of_half_a_character_is_still_an_object() -> None:
    odd = ToolCall(id="1", name="later", args_json='{"text":"a\\ud800"}')
    builder, model = describe([reply(calls=[odd]), reply(text="done")], later)
    assert answered(run(builder.build().run("go"))).text == "done"
    model.requests[1].messages[-1].text.encode()
    assert "not valid" not in model.requests[1].messages[-1].text


class Waits(MemoryLedger):
    """Takes the third append only when it is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.appends = 0
        self.at_third = asyncio.Event()

    def append_inline(self, batch: Batch, /) -> Any:
        self.appends += 1
        return None if self.appends == 3 else super().append_inline(batch)

    async def append(self, batch: Batch, /) -> Receipt:
        self.at_third.set()
        await asyncio.sleep(0)
        receipt: Receipt = MemoryLedger.append_inline(self, batch)
        return receipt


def test_a_turn_cancelled_before_a_tool_was_entered_leaves_no_doubt_about_it() -> None:
    ledger, ran = Waits(), list[int]()

    async def once(n: int) -> int:
        ran.append(n)
        return n

    builder, _ = describe([reply(calls=[call("1", "once", {"n": 1})])], once, ledger=ledger)
    agent = builder.build()

    async def story() -> None:
        turn = asyncio.ensure_future(agent.run("go"))
        await ledger.at_third.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    run(story())
    assert ran == []
    assert _kinds(ledger, agent)[-3:] == ["ToolIntended", "CallAnswered", "SegmentEnded"]
    told = ledger.entries(agent.last_run_id or "")[-2].fact
    assert (getattr(told, "status", None), getattr(told, "executed", None)) == ("cancelled", False)


def test_an_answer_that_is_on_record_belongs_to_the_conversation_also_when_its_caller_was_cancelled() -> None:
    ledger = Waits()
    builder, model = describe([reply(text="one"), reply(text="two")], ledger=ledger)
    agent = builder.build()

    async def story() -> None:
        turn = asyncio.ensure_future(agent.run("first"))
        await ledger.at_third.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await agent.follow_up("second")

    run(story())
    assert [m.text for m in model.requests[-1].messages] == ["first", "one", "second"]
