"""What a tool that is not there, or that raises, comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from footprint_core import (
    MemoryLedger,
    ToolCallContext,
    ToolMessage,
    after_tool,
    allow,
    before_tool,
    tool,
)
from footprint_core.events import ToolCallEnded
from footprint_core.facts import CallAnswered, ToolFinished, ToolIntended
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run

ODD_NAMES = ["nobody", "", " ", "pay ", "PAY", "x" * 500, "drop table; --", "p\u00e4y"]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: repr(name[:12]))
def test_c009_a_call_of_no_tool_is_a_refusal_on_record_that_the_model_reads(
    name: str, streaming: bool
) -> None:
    asked: list[str] = []

    def look(context: ToolCallContext) -> Any:
        asked.append(context.tool_name)
        return allow()

    paid: list[int] = []

    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    seen, ledger = Seen(), MemoryLedger()
    builder, model = describe(
        [reply(calls=[call("c1", name, {"n": 1}), call("c2", "pay", {"amount": 5})]), reply(text="done")],
        pay,
        watch=[seen],
        ledger=ledger,
        act={"before_tool": [before_tool("before")(look)], "after_tool": [after_tool("after")(look)]},
    )
    model.streaming = streaming
    outcome = answered(run(builder.build().run("go")))
    assert outcome.text == "done"
    # The rules before it are asked about every call; those behind it only about the one that ran.
    assert asked == [name, "pay", "pay"]
    assert paid == [5]
    refusal = model.requests[1].messages[2]
    assert isinstance(refusal, ToolMessage)
    assert refusal.refused
    assert refusal.call_id == "c1"
    assert "There is no tool called" in refusal.text
    facts = [entry.fact for entry in ledger.entries(outcome.run_id)]
    assert [f.status for f in facts if isinstance(f, CallAnswered)] == ["unknown", "ran"]
    assert [f.call_id for f in facts if isinstance(f, ToolIntended)] == ["c2"]
    assert [(e.status, e.executed) for e in seen.of(ToolCallEnded)] == [("unknown", False), ("ran", True)]


class MuteError(Exception):
    """Its text raises."""

    def __str__(self) -> str:
        raise RuntimeError("mute")


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "a message": (lambda: ValueError("the till is closed"), "the till is closed"),
    "no message": (KeyError, "KeyError"),
    "a mute error": (MuteError, "MuteError"),
    "a group": (lambda: ExceptionGroup("several", [ValueError("one")]), "several (1 sub-exception)"),
    "the end of an iteration": (lambda: StopIteration("over"), "over"),
    "the end of an async iteration": (lambda: StopAsyncIteration("over"), "over"),
    "the end of a generator": (lambda: GeneratorExit("closed"), "closed"),
    "an assertion": (lambda: AssertionError("broken"), "broken"),
    "out of time": (lambda: TimeoutError("too late"), "too late"),
}


def _plain(make: Callable[[], BaseException]) -> Any:
    def act() -> None:
        raise make()

    return act


def _inline(make: Callable[[], BaseException]) -> Any:
    return tool(inline=True)(_plain(make))


def _async(make: Callable[[], BaseException]) -> Any:
    async def act() -> None:
        raise make()

    return act


KINDS = {"plain": _plain, "inline": _inline, "async": _async}
# Python itself lets no coroutine raise a StopIteration.
RAISING = [
    pytest.param(make, text, kind, id=f"{what}-{name}")
    for what, (make, text) in RAISED.items()
    for name, kind in KINDS.items()
    if (what, name) != ("the end of an iteration", "async")
]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize(("make", "text", "kind"), RAISING)
def test_c010_a_tool_that_raises_is_answered_with_its_message_and_the_turn_goes_on(
    make: Callable[[], BaseException], text: str, kind: Any, parallel: bool
) -> None:
    told: list[tuple[bool, Any]] = []

    def look(ended: Any) -> Any:
        told.append((ended.failed, ended.result))
        return allow()

    ledger = MemoryLedger()
    builder, model = describe(
        [reply(calls=[call("c1", "act", {}), call("c2", "act", {})]), reply(text="done")],
        kind(make),
        ledger=ledger,
        act={"after_tool": [after_tool("look")(look)]},
        parallel_tools=parallel,
    )
    outcome = answered(run(builder.build().run("go")))
    assert outcome.text == "done"
    assert [message.text for message in model.requests[1].messages[2:]] == [text, text]
    assert told == [(True, text), (True, text)]
    facts = [entry.fact for entry in ledger.entries(outcome.run_id)]
    assert [f.status for f in facts if isinstance(f, CallAnswered)] == ["failed", "failed"]
    kinds = {f.error_class for f in facts if isinstance(f, ToolFinished)}
    assert kinds == {type(make()).__name__}


def test_c010_an_interrupt_of_the_program_is_no_failure_of_the_tool() -> None:
    act = _plain(KeyboardInterrupt)
    builder, model = describe([reply(calls=[call("c1", "act", {})]), reply(text="done")], act)
    with pytest.raises(KeyboardInterrupt):
        builder.build().run_sync("go")
    assert len(model.requests) == 1


def test_c010_what_a_tool_that_raises_comes_to_is_in_the_documentation() -> None:
    documented = " ".join((tool.__doc__ or "").split())
    assert "What the function raises is answered with the exception's message" in documented
