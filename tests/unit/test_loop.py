"""One turn, from message to answer."""

from __future__ import annotations

import asyncio

import pytest

from footprint_core import (
    AssistantMessage,
    InvalidRunInputError,
    MemoryLedger,
    NoConversationError,
    ProviderError,
    RunError,
    RunInFlightError,
    ToolContext,
    ToolMessage,
    tool,
)
from footprint_core.providers import call, reply
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
    import threading

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
    import threading

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
