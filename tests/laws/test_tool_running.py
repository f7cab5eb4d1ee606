"""A tool runs: what it is told, where it runs, and what becomes of what it raises."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from footprint_core import (
    AskPause,
    Credential,
    HumanPause,
    MemoryLedger,
    ToolCallContext,
    ToolContext,
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
    static_credentials,
    tool,
)
from footprint_core.events import RouteDecided, ToolCallEnded
from footprint_core.facts import StopReason, ToolIntended
from footprint_core.providers import Scripted, call, reply
from story import Seen, answered, describe, run

DONE = reply(text="done")


def read(model: Scripted) -> list[str]:
    return [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]


def test_a_tool_that_raises_is_answered_with_the_message_of_its_exception_and_nothing_else() -> None:
    def deep() -> None:
        inner = KeyError("inner secret")
        error = LookupError("order 41 is not known")
        error.add_note("noted secret")
        raise error from inner

    @tool(name="plain")
    def plain() -> None:
        deep()

    @tool(name="later")
    async def later() -> None:
        await asyncio.sleep(0)
        deep()

    @tool(name="silent")
    async def silent() -> None:
        raise LookupError

    seen = Seen()
    calls = [call(name, name, {}) for name in ("plain", "later", "silent")]
    builder, model = describe([reply(calls=calls), DONE], plain, later, silent, watch=[seen])
    assert answered(run(builder.build().run("go"))).text == "done"
    assert read(model) == ["order 41 is not known"] * 2 + ["LookupError"]
    ended = [(e.status, e.executed, e.error_class) for e in seen.of(ToolCallEnded)]
    assert ended == [("failed", True, "LookupError")] * 3
    assert "not known" not in repr(seen.events)


@pytest.mark.parametrize("identity", [None, {"user": "ada", "roles": ["a"]}, "ada"])
def test_the_context_tells_a_tool_its_call_its_run_who_asks_and_its_credential(identity: Any) -> None:
    told: list[ToolContext] = []

    @tool(name="needy", needs="bank")
    async def needy(context: ToolContext) -> None:
        """Needs the bank."""
        told.append(context)
        if isinstance(context.identity, dict):
            context.identity["roles"].append("root")

    @tool(name="plain")
    async def plain(context: ToolContext) -> None:
        """Needs nothing."""
        told.append(context)

    calls = [call("c1", "needy", {}), call("c2", "plain", {})]
    builder, model = describe([reply(calls=calls), reply(calls=calls[1:]), DONE], needy, plain)
    builder.credentials(static_credentials({"bank": "hunter2"}))
    answer = answered(run(builder.build().run("go", identity=identity)))
    assert [(one.run_id, one.call_id, one.iteration) for one in told] == [
        (answer.run_id, "c1", 1),
        (answer.run_id, "c2", 1),
        (answer.run_id, "c2", 2),
    ]
    assert isinstance(told[0].credential, Credential)
    assert told[0].credential.secret == "hunter2"
    assert [one.credential for one in told[1:]] == [None, None]
    # What one call does to it, the next is not told.
    assert [one.identity for one in told[1:]] == [identity, identity]
    assert all(offer.schema["properties"] == {} for offer in model.requests[0].tools)


STOPS: tuple[StopReason | None, ...] = ("stop", "tool_use", "max_tokens", "refusal", "other", None)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("asks", [True, False])
def test_the_calls_alone_decide_the_route_whatever_the_stop_reason_says(
    stop: StopReason | None, asks: bool
) -> None:
    ran: list[int] = []
    seen = Seen()
    tap = tool(name="tap")(lambda: ran.append(1))
    said = reply(text="final", calls=[call("c1", "tap", {})] if asks else [])
    first = msgspec.structs.replace(said, stop_reason=stop)
    builder, _ = describe([first, msgspec.structs.replace(DONE, stop_reason="tool_use")], tap, watch=[seen])
    answer = answered(run(builder.build().run("go")))
    assert answer.text == ("done" if asks else "final")
    assert ran == ([1] if asks else [])
    assert [e.chosen for e in seen.of(RouteDecided)] == (["tool-calls", "final"] if asks else ["final"])


NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")


def test_a_plain_tool_runs_beside_the_loop_in_a_daemon_thread_with_the_callers_context() -> None:
    found: list[object] = []
    tell: list[Callable[[], object]] = []
    may_end = threading.Event()

    @tool(name="works")
    def works() -> str:
        tell[0]()
        # The loop goes on meanwhile, or nobody would ever let this end.
        assert may_end.wait(10)
        found.extend([threading.current_thread().daemon, NAME.get(), threading.get_ident()])
        return "worked"

    builder, model = describe([reply(calls=[call("c1", "works", {})]), DONE], works)

    async def story() -> None:
        NAME.set("ada")
        loop, entered = asyncio.get_running_loop(), asyncio.Event()
        tell.append(lambda: loop.call_soon_threadsafe(entered.set))
        turn = asyncio.ensure_future(builder.build().run("go"))
        await entered.wait()
        may_end.set()
        answered(await turn)

    run(story())
    assert found[:2] == [True, "ada"]
    assert found[2] != threading.get_ident()
    assert read(model) == ["worked"]


def where(threads: list[int]) -> Callable[[], str]:
    def body() -> str:
        threads.append(threading.get_ident())
        return "here"

    return body


def test_an_async_tool_and_one_declared_inline_run_on_the_loops_own_thread() -> None:
    threads: list[int] = []
    here = where(threads)

    @tool(name="later")
    async def later() -> str:
        await asyncio.sleep(0)
        return here()

    @tool(name="handed")
    def handed() -> Awaitable[str]:
        async def hands() -> str:
            return here()

        return hands()

    tools = [later, tool(name="inline", inline=True)(here), handed]
    calls = [call(made.name, made.name, {}) for made in tools]
    builder, model = describe([reply(calls=calls), DONE], *tools)
    answered(run(builder.build().run("go")))
    assert read(model) == ["here"] * 3
    assert set(threads) == {threading.get_ident()}


def test_run_sync_runs_plain_tools_and_rules_in_the_calling_thread() -> None:
    threads: list[int] = []
    here = where(threads)

    @before_tool("before")
    def before(asked: ToolCallContext) -> ToolOutcome:
        here()
        return allow()

    @after_tool("after")
    def after(ended: ToolResultContext) -> ToolResultOutcome:
        here()
        return allow()

    builder, model = describe([reply(calls=[call("c1", "tap", {})]), DONE], tool(name="tap")(here))
    agent = builder.act(before_tool=[before], after_tool=[after]).build()
    assert answered(agent.run_sync("go")).text == "done"
    assert threads == [threading.get_ident()] * 3
    assert read(model) == ["here"]


@before_tool("four-eyes")
def four_eyes(asked: ToolCallContext) -> ToolOutcome:
    return ask("Really?") if asked.args.get("n") == 2 else allow()


@pytest.mark.parametrize("parallel", [False, True])
def test_a_call_has_one_idempotency_key_which_names_its_intent_and_no_other_call_has(parallel: bool) -> None:
    keys: list[str] = []
    ledger = MemoryLedger()

    @tool(name="pay", idempotent=True)
    async def pay(n: int, context: ToolContext) -> None:
        """Pay."""
        keys.extend([context.idempotency_key, context.idempotency_key])
        if n == 3:
            ask_human("sure?")

    batch = [call(f"c{n}", "pay", {"n": n}) for n in range(4)]
    # The same ids and args again: another attempt of the model is another call.
    builder, _ = describe(
        [reply(calls=batch), reply(calls=batch[:2]), DONE, *[reply(calls=batch[:1]), DONE]],
        pay,
        ledger=ledger,
        parallel_tools=parallel,
    )
    agent = builder.act(before_tool=[four_eyes]).build()

    async def story() -> list[str]:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        pause = await agent.resume(pause.checkpoint, check_in_approved(by="dana"))
        assert isinstance(pause, HumanPause)
        first = answered(await agent.resume(pause.checkpoint, "yes")).run_id
        return [first, answered(await agent.run("again")).run_id]

    expected = [
        f"{run_id}:{entry.position}"
        for run_id in run(story())
        for entry in ledger.entries(run_id)
        if isinstance(entry.fact, ToolIntended)
    ]
    assert len(expected) == 7
    assert keys[::2] == keys[1::2]
    assert sorted(keys[::2]) == sorted(expected)
    assert len(set(keys)) == 7


class OddError(BaseException):
    """No Exception, and nobody's."""


@pytest.mark.parametrize(
    "error",
    [
        StopIteration("odd"),
        StopAsyncIteration("odd"),
        GeneratorExit("odd"),
        OddError("odd"),
        BaseExceptionGroup("odd", [OddError("inner")]),
        TimeoutError("odd"),
        asyncio.CancelledError("odd"),
        RecursionError("odd"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("parallel", [False, True])
def test_an_unusual_exception_is_answered_like_any_other_and_hangs_nothing(
    error: BaseException, parallel: bool
) -> None:
    failed: list[bool] = []

    @after_tool("look")
    def look(ended: ToolResultContext) -> ToolResultOutcome:
        failed.append(ended.failed)
        return allow()

    @tool(name="plain")
    def plain() -> None:
        raise error

    @tool(name="inline", inline=True)
    def inline() -> None:
        raise error

    @tool(name="later")
    async def later() -> None:
        await asyncio.sleep(0)
        raise error

    tools = [plain, inline, later, tool(name="fine")(lambda: "fine")]
    calls = [call(made.name, made.name, {}) for made in tools]
    for sync in (False, True):
        failed.clear()
        builder, model = describe([reply(calls=calls), DONE], *tools, parallel_tools=parallel)
        agent = builder.act(after_tool=[look]).build()
        outcome = agent.run_sync("go") if sync else run(agent.run("go"))
        assert answered(outcome).text == "done"
        *odd, fine = read(model)
        assert all("odd" in text or type(error).__name__ in text for text in odd)
        assert fine == "fine"
        assert failed == [True, True, True, False]
