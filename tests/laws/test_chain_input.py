"""The input moment: only what its chain produced enters a conversation, and by one door."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import footprint_core
from footprint_core import (
    Agent,
    Answer,
    AskPause,
    MemoryLedger,
    MessageContext,
    MessageDeniedError,
    Permission,
    PolicyHaltError,
    ProviderError,
    ToolCallContext,
    ToolResultContext,
    WindowPlan,
    WindowView,
    allow,
    ask,
    check_in_approved,
    deny,
)
from footprint_core.events import TurnStarted
from footprint_core.facts import ModelAsked
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from story import Seen, answered, describe, run

CANARY = "canary-7d21"
TYPED = f"my pin is {CANARY}"
MADE = "my pin is [pin]"
YES = check_in_approved(by="dana")


class Scrubs:
    """A rule that takes a pin out of messages and refuses what it is told to; it keeps what it is shown."""

    name = "scrubs"

    def __init__(self, *refused: str, asks: bool = False) -> None:
        self.shown: list[str] = []
        self._refused, self._asks = refused, asks

    def _keep(self, *contexts: Any) -> None:
        self.shown += [m.text for context in contexts for m in context.history]

    def on_message(self, message: MessageContext) -> Any:
        self._keep(message)
        if message.content in self._refused:
            return deny("not that")
        return allow(message.content.replace(CANARY, "[pin]"), why="a pin")

    def on_tool_call(self, asked: ToolCallContext) -> Any:
        self._keep(asked)
        return ask("may I?") if self._asks else allow()

    def on_tool_result(self, ended: ToolResultContext) -> Any:
        self._keep(ended)
        return allow()

    def plan(self, view: WindowView, /) -> WindowPlan | None:
        self.shown += [message.text for message in view.messages]
        return None


async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def scrubbing(rule: Scrubs, replies: Any, **options: Any) -> Any:
    builder, model = describe(replies, pay, **options)
    return builder.message_middleware(rule).tool_middleware(rule).window(rule).build(), model


def asked_texts(model: Any) -> list[list[str]]:
    return [[message.text for message in request.messages] for request in model.requests]


PAYS = reply(calls=[call("c1", "pay", {"amount": 5})])


def test_everybody_sees_only_what_the_input_chain_made_of_a_message() -> None:
    rule, seen, ledger = Scrubs(), Seen(), MemoryLedger()
    agent, model = scrubbing(
        rule, [PAYS, reply(text="done"), reply(text="again")], watch=[seen], ledger=ledger
    )

    async def story() -> None:
        await agent.run(TYPED)
        await agent.follow_up(f"once more, {TYPED}")

    run(story())
    assert asked_texts(model)[0] == [MADE]
    assert asked_texts(model)[2] == [MADE, "", "paid 5", "done", f"once more, {MADE}"]
    assert CANARY not in repr(asked_texts(model)) + repr(rule.shown) + repr(seen.events)
    assert MADE in rule.shown
    assert [event.message_chars for event in seen.of(TurnStarted)] == [
        len(MADE),
        len(f"once more, {MADE}"),
    ]
    entries = ledger.entries(agent.last_run_id)
    chars = [entry.fact.message_chars for entry in entries if isinstance(entry.fact, ModelAsked)]
    assert chars == [len(MADE) + len("paid 5") + len("done") + len(f"once more, {MADE}")]


def test_a_run_a_follow_up_and_a_resume_go_on_with_the_made_text() -> None:
    rule = Scrubs(asks=True)
    agent, model = scrubbing(rule, [reply(text="hello"), PAYS, reply(text="done"), reply(text="bye")])

    async def story() -> None:
        await agent.run(TYPED)
        paused = await agent.follow_up(TYPED)
        assert isinstance(paused, AskPause)
        assert CANARY not in json.dumps({**paused.checkpoint, "rows": []})
        await agent.resume(json.loads(json.dumps(paused.checkpoint)), YES)
        await agent.follow_up(TYPED)

    run(story())
    assert asked_texts(model) == [
        [MADE],
        [MADE, "hello", MADE],
        [MADE, "hello", MADE, "", "paid 5"],
        [MADE, "hello", MADE, "", "paid 5", "done", MADE],
    ]


def _places(name: str) -> list[tuple[str, ast.Call]]:
    """Where the product calls something, by file."""
    root = Path(str(footprint_core.__file__)).parent
    texts = {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.py"))}
    return [
        (file, node)
        for file, text in texts.items()
        if f"{name}(" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and _called(node.func) == name
    ]


def _called(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def test_a_users_message_enters_a_conversation_at_one_place_behind_the_chain() -> None:
    requests = [file for file, made in _places("UserMessage") if "kind" not in _words(made)]
    # A summarizer is asked in a conversation of its own, about messages that came in before.
    assert requests == ["state.py", "window/fold.py"]
    taken = [made for file, made in _places("MessageTaken") if file == "loop/take_message.py"]
    assert len(taken) == len(_places("MessageTaken"))
    texts = [ast.unparse(word.value) for made in taken for word in made.keywords if word.arg == "text"]
    assert sorted(texts) == ["msgspec.UNSET", "walked.text"]
    assert [file for file, _ in _places("take_message")] == ["loop/run.py"]


def _words(made: ast.Call) -> set[str | None]:
    return {word.arg for word in made.keywords}


def test_a_refused_message_calls_no_model_and_is_decided_before_the_turn_starts() -> None:
    rule, seen = Scrubs(TYPED), Seen()
    agent, model = scrubbing(rule, [PAYS], watch=[seen])
    with pytest.raises(MessageDeniedError) as refused:
        run(agent.run(TYPED))
    assert (refused.value.phase, refused.value.reason) == ("input", "not that")
    assert model.requests == []
    assert seen.types == [
        "agent.run_configured",
        "middleware.decision",
        "agent.turn_start",
        "agent.turn_end",
    ]


def test_the_input_decisions_come_before_the_turn_starts() -> None:
    seen = Seen()
    builder, _ = describe([reply(text="done")], watch=[seen])
    run(builder.message_middleware(Scrubs(), _named("second")).build().run("go"))
    assert seen.types[:4] == ["agent.run_configured", *["middleware.decision"] * 2, "agent.turn_start"]


def _named(name: str) -> Any:
    rule = Scrubs()
    rule.name = name
    return rule


def test_a_refused_message_leaves_no_trace_in_a_later_turn_or_checkpoint() -> None:
    rule = Scrubs(TYPED, asks=True)
    agent, model = scrubbing(rule, [reply(text="hello"), PAYS, reply(text="done")])

    async def story() -> None:
        await agent.run("hi")
        with pytest.raises(MessageDeniedError):
            await agent.follow_up(TYPED)
        with pytest.raises(MessageDeniedError):
            await agent.run(TYPED)
        paused = await agent.follow_up("and now?")
        assert isinstance(paused, AskPause)
        assert CANARY not in json.dumps(paused.checkpoint)
        assert "my pin" not in json.dumps(paused.checkpoint)
        await agent.resume(paused.checkpoint, YES)

    run(story())
    assert asked_texts(model)[-1] == ["hi", "hello", "and now?", "", "paid 5"]
    assert "my pin" not in repr(asked_texts(model)) + repr(rule.shown)


class Ends:
    """A model, a checker and a rule that bring the second turn to the end they are told."""

    name = "ends"

    def __init__(self, end: str) -> None:
        self.end = end
        self.requests: list[ModelRequest] = []
        self.reached = asyncio.Event()

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self.requests.append(request)
        last = request.messages[-1].text
        if last == "second":
            yield PAYS
        elif last == "paid 5" and self.end == "failed":
            raise OSError("gone")
        elif last == "paid 5" and self.end == "cancelled":
            self.reached.set()
            await asyncio.Event().wait()
        else:
            yield reply(text=f"to {last}")

    def check(self, asked: ToolCallContext) -> Permission:
        return Permission(result="halt" if self.end == "halted" else "allow")

    def on_message(self, message: MessageContext) -> Any:
        second = {"denied at input": "second", "denied at output": "to paid 5"}.get(self.end)
        return deny("no") if message.content == second else allow()


ENDS: dict[str, type[BaseException]] = {
    "denied at input": MessageDeniedError,
    "denied at output": MessageDeniedError,
    "halted": PolicyHaltError,
    "failed": ProviderError,
    "cancelled": asyncio.CancelledError,
}


async def _second_turn(agent: Agent, ends: Ends, *, anew: bool) -> None:
    turn = asyncio.ensure_future(agent.run("second") if anew else agent.follow_up("second"))
    reached = asyncio.ensure_future(ends.reached.wait())
    await asyncio.wait({turn, reached}, return_when=asyncio.FIRST_COMPLETED)
    reached.cancel()
    if ends.end == "cancelled":
        turn.cancel()
    with pytest.raises(ENDS[ends.end]):
        await turn


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("end", ENDS)
def test_a_turn_that_came_to_no_answer_leaves_the_conversation_as_it_was(end: str, anew: bool) -> None:
    ends = Ends(end)
    builder = Agent.create(provider=ends, model="m", name="a").tool(pay)
    agent = builder.permission(ends).message_middleware(ends).build()

    async def story() -> Answer:
        await agent.run("first")
        await _second_turn(agent, ends, anew=anew)
        return answered(await agent.follow_up("third"))

    assert run(story()).text == "to third"
    texts = [message.text for message in ends.requests[-1].messages]
    assert texts == ["first", "to first", "third"]


@pytest.mark.parametrize("end", ENDS)
def test_a_first_turn_that_came_to_no_answer_leaves_nothing_to_follow_up_on(end: str) -> None:
    ends = Ends(end)
    builder = Agent.create(provider=ends, model="m", name="a").tool(pay)
    agent = builder.permission(ends).message_middleware(ends).build()

    async def story() -> None:
        await _second_turn(agent, ends, anew=True)
        with pytest.raises(footprint_core.NoConversationError):
            await agent.follow_up("third")

    run(story())


@pytest.mark.parametrize("end", ["denied at output", "halted", "failed"])
def test_a_paused_turn_that_came_to_no_answer_leaves_the_conversation_as_it_was(end: str) -> None:
    ends, asks = Ends("answered"), Scrubs(asks=True)
    builder = Agent.create(provider=ends, model="m", name="a").tool(pay).tool_middleware(asks)
    agent = builder.permission(ends).message_middleware(ends).build()

    async def story() -> None:
        await agent.run("first")
        paused = await agent.follow_up("second")
        assert isinstance(paused, AskPause)
        ends.end = end
        with pytest.raises(ENDS[end]):
            await agent.resume(paused.checkpoint, YES)
        await agent.follow_up("third")

    run(story())
    assert [message.text for message in ends.requests[-1].messages] == ["first", "to first", "third"]
