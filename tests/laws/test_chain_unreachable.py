"""A refused answer is kept by the ledger and by nothing else that can be reached from a program.

Everything is walked that an error, an agent, an event, a checkpoint or an answer holds, at any depth: items,
attributes, closures, the locals of every frame of a traceback. Left out are the ledger, modules, classes,
and the frames of the test itself, which wrote the answer.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

import msgspec
import pytest

import footprint_core
from footprint_core import (
    Agent,
    AgentBuilder,
    AskPause,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    ToolCallContext,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
)
from footprint_core.facts import ModelReplied
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from leaks import is_ledger
from story import Seen, answered, run

CANARY = "canary-9e31"
REFUSED = f"the code is {CANARY}"
YES = check_in_approved(by="dana")
TESTS = Path(__file__).parent.parent
WORD = {"type": "object", "required": ["word"], "properties": {"word": {"type": "string"}}}


def reaches(root: object, text: str) -> list[str]:
    """Where a text is reached from an object: the types on the way to it."""
    modules = {id(getattr(module, "__dict__", None)) for module in list(sys.modules.values())}
    found: list[str] = []
    met: set[int] = {id(root)}
    todo: list[tuple[object, str]] = [(root, "")]
    while todo:
        one, way = todo.pop()
        if isinstance(one, str | bytes):
            if text in (one if isinstance(one, str) else one.decode(errors="replace")):
                found.append(way)
            continue
        if id(one) in modules or _left_out(one):
            continue
        for part in _parts(one):
            if id(part) not in met:
                met.add(id(part))
                todo.append((part, f"{way}/{type(one).__name__}"))
    return found


def _left_out(one: object) -> bool:
    if isinstance(one, FrameType):
        file = Path(one.f_code.co_filename)
        return TESTS in file.parents or "site-packages" in file.parts
    return isinstance(one, ModuleType | CodeType | type) or is_ledger(one)


def _parts(one: object) -> Iterator[object]:
    yield from gc.get_referents(one)
    if isinstance(one, msgspec.Struct):
        # Those that the collector does not track show it nothing.
        yield from (getattr(one, name) for name in one.__struct_fields__)
    if isinstance(one, FrameType):
        yield from one.f_locals.values()


PRETENDED = compile(
    "def work(local):\n    raise ValueError('refused')\n",
    str(Path(str(footprint_core.__file__)).parent / "pretended.py"),
    "exec",
)


class Holder:
    __slots__ = ("deep",)

    def __init__(self, deep: object) -> None:
        self.deep = deep


def raised(local: object) -> ValueError:
    names: dict[str, Any] = {}
    exec(PRETENDED, names)
    try:
        names["work"](local)
    except ValueError as error:
        return error
    raise AssertionError


def chained() -> Exception:
    error, cause = ValueError("refused"), ValueError(CANARY)
    error.__context__ = cause
    return error


HELD: list[object] = [
    CANARY,
    [{"a": (Holder([(lambda kept=CANARY: kept)]), Holder({"b": [[[[CANARY.encode()]]]]}))}],
    ToolCallContext(
        tool_name="t",
        tool_source=None,
        tool_call_id="c",
        iteration=1,
        args={"a": CANARY},
        history=footprint_core.Messages(),
        identity=None,
    ),
    footprint_core.Messages([footprint_core.UserMessage(text=CANARY)]),
    raised([Holder(CANARY)]),
    chained(),
]


@pytest.mark.parametrize("held", HELD, ids=lambda held: type(held).__name__)
def test_the_walk_finds_a_text_however_deep_it_is_held(held: object) -> None:
    assert reaches(held, CANARY)
    assert not reaches(held, "no such text")


class Model:
    """Says what comes next, keeps the requests, and nothing of what it said."""

    name = "forgetful"
    streaming = True

    def __init__(self, *said: str) -> None:
        self.said = list(said)
        self.requests: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self.requests.append(request)
        word = self.said.pop(0)
        if word == "call":
            yield reply(calls=[call("c1", "look", {})])
            return
        text = REFUSED if word == "refused" else word
        yield Chunk(text=text)
        await asyncio.sleep(0)
        yield reply(text=text)


async def look() -> str:
    """Look."""
    return "seen"


def hides(message: MessageContext) -> Any:
    return deny("not to be told") if CANARY in message.content else allow()


def adds(message: MessageContext) -> Any:
    return allow(f"{message.content}!", why="louder")


def breaks(message: MessageContext) -> Any:
    return message.content if CANARY in message.content else allow()


class Refusing:
    """An agent whose answers are refused, everybody who is told of them, and where they are kept."""

    def __init__(self, *said: str, rules: tuple[Any, ...] = (adds, hides), **options: Any) -> None:
        self.model, self.seen, self.ledger = Model(*said), Seen(), MemoryLedger()
        made: AgentBuilder = Agent.create(provider=self.model, model="m", name="a", **options)
        made.tool(look).watch(self.seen).ledger(self.ledger)
        self.builder = made.message_middleware(*(on_message(rule.__name__)(rule) for rule in rules))

    def nowhere(self, error: MessageDeniedError, *more: object) -> None:
        """Refuse a run that left its answer anywhere but in the ledger, where it has to be."""
        assert error.phase == "output"
        for root in (error, self.agent, self.seen.events, self.model.requests, *more):
            assert reaches(root, CANARY) == []
        facts = [entry.fact for entry in self.ledger.entries(self.agent.last_run_id or "")]
        assert [fact for fact in facts if isinstance(fact, ModelReplied) and fact.text == REFUSED]

    def build(self) -> Agent:
        self.agent = self.builder.build()
        return self.agent


@pytest.mark.parametrize(
    ("said", "rules"),
    [
        (("refused",), (hides,)),
        (("call", "refused"), (hides,)),
        (("call", "refused"), (adds, hides)),
        (("refused",), (adds, breaks)),
        (("refused",), (hides, adds)),
    ],
)
def test_a_refused_answer_is_reachable_nowhere_but_in_the_ledger(said: tuple[str, ...], rules: Any) -> None:
    refusing = Refusing(*said, rules=rules)
    with pytest.raises(MessageDeniedError) as caught:
        run(refusing.build().run("go"))
    refusing.nowhere(caught.value)


DOORS: dict[str, Callable[[Agent], object]] = {
    "run_sync": lambda agent: agent.run_sync("go"),
    "run_typed": lambda agent: run(agent.run_typed("go")),
    "session": lambda agent: run(agent.session().run("go")),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_door_of_an_agent_keeps_a_refused_answer(door: str) -> None:
    agent = Refusing("call", "refused").build()
    with pytest.raises(MessageDeniedError) as caught:
        DOORS[door](agent)
    assert reaches(caught.value, CANARY) == reaches(agent, CANARY) == []


def test_a_refused_answer_of_a_follow_up_or_a_resume_is_in_no_later_turn_checkpoint_or_answer() -> None:
    refusing = Refusing("hello", "refused", "call", "refused", "call", "bye")
    asks = before_tool("asks")(lambda _: ask("may I?"))
    refusing.builder.tool_middleware(asks)
    agent = refusing.build()
    kept: list[Any] = []

    async def story() -> None:
        kept.append(answered(await agent.run("go")))
        with pytest.raises(MessageDeniedError) as caught:
            await agent.follow_up("and?")
        refusing.nowhere(caught.value)
        paused = await agent.follow_up("look")
        assert isinstance(paused, AskPause)
        with pytest.raises(MessageDeniedError) as caught:
            await agent.resume(json.loads(json.dumps(paused.checkpoint)), YES)
        refusing.nowhere(caught.value, paused)
        later = await agent.follow_up("look again")
        assert isinstance(later, AskPause)
        kept.extend((paused, later, answered(await agent.resume(later.checkpoint, YES))))

    run(story())
    assert reaches(kept, CANARY) == reaches(agent, CANARY) == []
    texts = [message.text for message in refusing.model.requests[-1].messages]
    assert texts == ["go!", "hello!", "look again!", "", "seen"]


@pytest.mark.parametrize("budget", [1, 10])
def test_a_refused_wrap_up_or_retry_is_reachable_nowhere_but_in_the_ledger(budget: int) -> None:
    # The first answer of the two is put back into the conversation, and goes with it.
    said = ("call", "refused") if budget == 1 else ("no json", "refused")
    refusing = Refusing(*said, rules=(hides,), max_iterations=budget)
    refusing.builder.output_schema(WORD, retries=3)
    with pytest.raises(MessageDeniedError) as caught:
        run(refusing.build().run("go"))
    refusing.nowhere(caught.value)
    assert len(refusing.model.requests) == 2
