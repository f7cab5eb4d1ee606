"""A refused message or answer: the error says who refused it and why, and keeps nothing of it alive."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import footprint_core
from file_ledger import on_file
from footprint_core import (
    Agent,
    AskPause,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
)
from footprint_core.providers import call, reply
from leaks import LEVELS, frames, holds, leaks
from story import answered, describe, run

SECRET = "canary-4f1c"
PAYS = reply(calls=[call("c1", "pay", {"amount": 500})])

# Compiled under a name inside the package, so that its frames pass for the product's.
LEAKING = compile(
    """
def work(hold, self):
    local = hold(self)
    raise ValueError("refused")
""",
    str(Path(footprint_core.__file__).parent / "pretended.py"),
    "exec",
)


class Slotted:
    __slots__ = ("__hidden", "empty")

    def __init__(self, value: object) -> None:
        self.__hidden = value


class Struct(msgspec.Struct, frozen=True):
    field: object


class Open:
    def __init__(self, value: object) -> None:
        self.value = value

    def method(self) -> None: ...


def closure(value: object) -> Callable[[], object]:
    return lambda: value


def default(value: object) -> Callable[..., object]:
    def inner(x: object = value) -> object:
        return x

    return inner


async def suspended(value: object) -> None:
    await asyncio.sleep(0)


def half_way(value: object) -> Any:
    """A coroutine that has begun and not ended."""
    working = suspended(value)
    working.send(None)
    return working


def deep(levels: int) -> object:
    """The secret in that many lists."""
    value: object = SECRET
    for _ in range(levels):
        value = [value]
    return value


HELD: list[Callable[[Any], object]] = [
    lambda _: f"text with {SECRET} in it",
    lambda _: SECRET.encode(),
    lambda _: bytearray(SECRET.encode()),
    lambda _: {SECRET: 1},
    lambda _: {"key": [SECRET]},
    lambda _: ({SECRET},),
    lambda _: Slotted(SECRET),
    lambda _: Struct([SECRET]),
    lambda _: Open({"a": SECRET}),
    lambda _: Open(SECRET).method,
    lambda _: closure(SECRET),
    lambda _: default([SECRET]),
    lambda _: partial(dict, key=SECRET),
    lambda _: ValueError(SECRET),
    lambda _: half_way(SECRET),
    lambda _: deep(LEVELS),
]
NOT_HELD: list[Callable[[Any], object]] = [
    lambda _: "nothing",
    lambda this: this,
    lambda _: deep(LEVELS + 1),
    lambda _: _full_ledger(),
]


def _full_ledger() -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.__dict__["text"] = SECRET
    return ledger


def raised(hold: Callable[[Any], object]) -> ValueError:
    names: dict[str, Any] = {}
    exec(LEAKING, names)
    try:
        names["work"](hold, Open(SECRET))
    except ValueError as error:
        return error
    raise AssertionError


@pytest.mark.parametrize("hold", HELD)
def test_the_walk_finds_what_a_frame_of_the_product_holds(hold: Any) -> None:
    assert leaks(raised(hold), SECRET) == ["ValueError: pretended.py:work.local"]


@pytest.mark.parametrize("hold", NOT_HELD)
def test_the_walk_leaves_out_self_ledgers_and_what_is_deeper(hold: Any) -> None:
    error = raised(hold)
    assert leaks(error, SECRET) == []
    assert [frame.f_code.co_name for frame in frames(error.__traceback__)] == ["work"]


def test_the_walk_looks_at_the_error_and_whatever_it_is_chained_to() -> None:
    error = raised(lambda _: "nothing")
    error.add_note(f"note {SECRET}")
    assert leaks(error, SECRET) == ["ValueError.__notes__"]
    outer = RuntimeError("outer")
    outer.__cause__ = raised(lambda _: SECRET)
    outer.__context__ = KeyError(SECRET)
    vars(outer)["fact"] = [SECRET]
    assert sorted(leaks(outer, SECRET)) == [
        "KeyError.args",
        "KeyError.repr",
        "KeyError.str",
        "RuntimeError.fact",
        "ValueError: pretended.py:work.local",
    ]
    assert holds(outer, SECRET)


@on_message("gentle")
def gentle(message: MessageContext) -> MessageOutcome:
    return allow(f"{message.content} please", why="kinder")


@on_message("censor")
def censor(message: MessageContext) -> MessageOutcome:
    return deny("it names a project") if SECRET in message.content else allow()


@before_tool("four-eyes")
def four_eyes(call: ToolCallContext) -> ToolOutcome:
    return ask("Really?") if call.args["amount"] > 100 else allow()


def pay(amount: int) -> int:
    """Pay."""
    return amount


async def refused(work: Awaitable[Any]) -> MessageDeniedError:
    with pytest.raises(MessageDeniedError) as raised:
        await work
    assert type(raised.value) is MessageDeniedError
    return raised.value


def check(error: MessageDeniedError, agent: Agent, phase: str, *, segment: int = 1) -> None:
    assert (error.reason, error.phase, error.middleware) == ("it names a project", phase, "censor")
    assert vars(error) == {
        "reason": error.reason,
        "phase": phase,
        "middleware": "censor",
        "run_id": agent.last_run_id,
        "segment": segment,
    }
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "resume" not in str(error)
    assert list(frames(error.__traceback__))
    assert leaks(error, SECRET) == []


def censored(*texts: str, moment: str, ledger: Any = None, **options: Any) -> Agent:
    """An agent whose message rules are at one moment; it says the texts."""
    schema = options.pop("schema", None)
    act: Any = {moment: [gentle, censor], "before_tool": [four_eyes]}
    replies = [PAYS if text == "pay" else reply(text=text) for text in texts]
    builder, provider = describe(replies, pay, act=act, ledger=ledger, **options)
    if schema is not None:
        builder.output_schema(schema, retries=1)
    provider.streaming = True
    return builder.build()


MESSAGE = f"about {SECRET}"
AT_INPUT: dict[str, Callable[[Agent], Awaitable[Any]]] = {
    "run": lambda agent: agent.run(MESSAGE),
    "run with an identity": lambda agent: agent.run(MESSAGE, identity={"user": "ada"}),
    "follow_up": lambda agent: agent.follow_up(MESSAGE),
    "run_typed": lambda agent: agent.run_typed(MESSAGE),
}


@pytest.mark.parametrize("door", AT_INPUT)
def test_a_message_refused_at_input_is_nowhere_in_the_error(door: str) -> None:
    agent = censored("hello", moment="input")

    async def go() -> MessageDeniedError:
        answered(await agent.run("hello"))
        return await refused(AT_INPUT[door](agent))

    check(run(go()), agent, "input")


def test_a_message_refused_in_another_session_is_nowhere_in_the_error() -> None:
    agent = censored("hello", moment="input")
    session = agent.session()

    async def go() -> list[MessageDeniedError]:
        first = await refused(session.run(MESSAGE))
        answered(await session.run("hello"))
        return [first, await refused(session.follow_up(MESSAGE))]

    for error in run(go()):
        assert error.run_id is not None
        assert leaks(error, SECRET) == []
        assert (error.__cause__, error.__context__) == (None, None)


@pytest.mark.parametrize("of_the_agent", [True, False])
def test_a_message_refused_without_an_event_loop_is_nowhere_in_the_error(of_the_agent: bool) -> None:
    agent = censored("hello", moment="input")
    door = agent.run_sync if of_the_agent else agent.session().run_sync
    with pytest.raises(MessageDeniedError) as raised_here:
        door(MESSAGE)
    error = raised_here.value
    assert leaks(error, SECRET) == []
    assert (error.__cause__, error.__context__) == (None, None)
    assert (error.phase, error.segment) == ("input", 1)


ANSWER = f"the project {SECRET}"


@pytest.mark.parametrize("options", [{}, {"parallel_tools": True}, {"schema": int}])
def test_an_answer_refused_at_output_is_nowhere_in_the_error(tmp_path: Path, options: Any) -> None:
    agent = censored(ANSWER, moment="output", ledger=on_file(tmp_path / "l.db"), **options)

    async def go() -> MessageDeniedError:
        async with agent:
            return await refused(agent.run("hello"))

    check(run(go()), agent, "output")


def test_an_answer_refused_behind_tool_calls_and_a_pause_is_raised_bare(tmp_path: Path) -> None:
    agent = censored("pay", ANSWER, moment="output", ledger=on_file(tmp_path / "l.db"))

    async def go() -> MessageDeniedError:
        async with agent:
            pause = await agent.run("hello")
            assert isinstance(pause, AskPause)
            return await refused(agent.resume(pause.checkpoint, check_in_approved(by="dana")))

    check(run(go()), agent, "output", segment=2)


def test_an_answer_refused_by_a_rule_that_raises_or_answers_nonsense_is_raised_bare() -> None:
    for answer in (None, allow(5, why="no text"), ask("sure?"), ValueError("it broke")):

        @on_message("broken")
        def broken(message: MessageContext, answer: Any = answer) -> MessageOutcome:
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[no-any-return]

        builder, _ = describe([reply(text=ANSWER)], act={"output": [broken]})
        error = run(refused(builder.build().run("hello")))
        assert (error.middleware, error.phase) == ("broken", "output")
        assert (error.__cause__, error.__context__) == (None, None)
        assert leaks(error, SECRET) == []
