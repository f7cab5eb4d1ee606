"""Random agents with random secrets in every place: what hypothesis draws, and how it is played."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Literal, TypeAlias, cast

import msgspec
from hypothesis import strategies as st

from facts_only.verbs import Said, rules, tools
from footprint_core import (
    Agent,
    Answer,
    FootprintError,
    MemoryLedger,
    Outcome,
    Permission,
    Watcher,
    check_in_approved,
    check_in_declined,
    sliding_window,
    static_credentials,
    summarize_oldest,
    token_budget,
)
from footprint_core.facts import Usage
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, call, reply
from permits import Checker

ALPHABETS = {
    "a key": "sk_live-0123456789abcdefABCDEF",
    "digits": "0123456789",
    "base64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
    "quotes and percents": "\"'`%\\{}<>&$ ;:\n\t\x00abcxyz",
    "letters": "äöüßéñçøå żółćабвгдежзийклмноп",
    "beyond": "日本語漢字秘密鍵😀🔑🗝🏦𐍈𠜎𝄞",
}
_LENGTH = 20


def secrets(alphabet: str) -> st.SearchStrategy[str]:
    """Texts in the letters of an alphabet."""
    letters = ALPHABETS[alphabet]

    def made(seed: int) -> str:
        # Not drawn letter by letter: what is shrunk to twenty equal letters stands in any bytes by chance.
        drawn = hashlib.shake_128(f"{alphabet} {seed}".encode()).digest(_LENGTH)
        return "".join(letters[byte % len(letters)] for byte in drawn)

    return st.integers(0, 2**32).map(made)


Door: TypeAlias = Literal["run", "run_sync", "run_typed", "session"]
Asked: TypeAlias = tuple[str, str]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is, what its model says, and how a person answers.

    Attributes:
        door: How the first turn begins; a second one follows it.
        replies: The calls of each reply: a tool, and what its arguments are like. A text ends a turn.
        verbs: What the rules answer, moment by moment.
        permission: What a checker says; None without a checker.
        window: What shortens the conversation.
        answers: How its questions are answered, one after another; the last one for all others.
        by_id: Whether they are answered by their id, on another agent.
        options: Streaming, a schema, tools together, a credential that is there, a provider that fails.
    """

    door: Door
    replies: list[list[Asked]]
    verbs: dict[str, list[str]]
    permission: str | None
    window: str | None
    answers: list[str]
    by_id: bool
    options: dict[str, bool]


TOOLS = ("echo", "echo", "breaks", "wonders", "wires", "pay", "pay", "anything", "no such tool")
ARGUMENTS = ("right", "right", "right", "right", "unknown key", "wrong type", "no JSON", "same id", "odd id")
LETS_PASS = ("pass", "why", "change")
REFUSES = ("deny", "raise", "junk", "late")


def _verbs(*often: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from((*LETS_PASS * 5, *often, *REFUSES)), max_size=2)


def _one_of(*words: str | None) -> st.SearchStrategy[Any]:
    return st.sampled_from(words)


_calls = st.tuples(st.sampled_from(TOOLS), st.sampled_from(ARGUMENTS))
_options = ("streams", "schema", "together", "credential", "fails")
plans = st.builds(
    Plan,
    door=_one_of("run", "run_sync", "run_typed", "session"),
    replies=st.lists(st.lists(_calls, min_size=1, max_size=3), max_size=3),
    verbs=st.fixed_dictionaries(
        {
            "input": _verbs(),
            "before_tool": _verbs("ask", "ask", "ask"),
            "after_tool": _verbs(),
            "output": _verbs(),
        }
    ),
    permission=_one_of(*[None] * 8, "gate_open", "gate_open", "deny", "halt", "raise"),
    window=_one_of(None, None, "sliding", "budget", "summary"),
    answers=st.lists(st.sampled_from(("yes", "yes", "no", "junk")), min_size=1, max_size=3),
    by_id=st.booleans(),
    options=st.fixed_dictionaries({name: st.booleans() for name in _options}),
)
"""Agents, and what becomes of them."""


def _replies(plan: Plan, said: Said) -> list[Completed]:
    turn = [
        reply(
            tokens=[said("thought"), said("token")],
            calls=[_call(said, tool, like, f"c{i}-{j}") for j, (tool, like) in enumerate(batch)],
            usage=Usage(input=1000, output=5),
        )
        for i, batch in enumerate(plan.replies)
    ]
    ending = reply(tokens=[said("answer"), said("last token")], usage=Usage(input=1000, output=5))
    return [*turn, ending, *[ending] * (0 if plan.options["fails"] else 4)]


def _call(said: Said, tool: str, like: str, id: str) -> Any:
    # The bare secret could be a name, in some alphabets; what stands for a name has no room for more.
    name = said.secret if tool == "no such tool" else tool
    note: dict[str, Any] = {"note": said("argument")}
    match like:
        case "unknown key":
            note |= {said("key of an argument"): said("argument")}
        case "wrong type":
            note = {"note": [{said("key"): said("argument")}]}
        case "same id":
            id = "same"
        case "odd id":
            id = said.secret
        case _:
            pass
    made = call(id, name, note)
    if like == "no JSON":
        return msgspec.structs.replace(made, args_json=f'{{"note": {json.dumps(said("argument"))[:-1]}')
    return made


class Model:
    """Says what it was told to, and fails in the middle of a chunk when it has nothing left."""

    name = "random"

    def __init__(self, replies: Sequence[Completed], said: Said, *, streaming: bool) -> None:
        self._model = Scripted(replies, streaming=streaming)
        self._said = said
        self._left = len(replies)

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        self._left -= 1
        if self._left < 0:
            yield Chunk(text=self._said("chunk"))
            raise OSError(self._said("error of the provider"))
        async for piece in self._model.reply(request):
            yield piece


class _Shaped:
    def __init__(self, said: Said) -> None:
        self.instruction = said("instruction")
        self._said = said

    def check(self, value: Any, /) -> object:
        raise ValueError(self._said(f"error of the schema: {value}"))


def _agent(plan: Plan, said: Said, watchers: Sequence[Watcher], ledger: MemoryLedger, model: Model) -> Agent:
    builder = Agent.create(
        provider=model,
        model="m",
        name="random",
        max_iterations=4,
        parallel_tools=plan.options["together"],
        keep_last_tool_results=0,
    )
    builder.system(said("system prompt")).tool(*tools(said)).ledger(ledger).watch(*watchers)
    builder.act(**cast("Any", rules(plan.verbs, said)))
    if plan.options["credential"]:
        builder.credentials(static_credentials({"bank": said("credential")}))
    if plan.options["schema"]:
        builder.output_schema(_Shaped(said), retries=1)
    if plan.permission is not None:
        told: Any = {"rationale": said("rationale"), "reason": said("reason")}
        raising = RuntimeError(said("error of the checker"))
        builder.permission(
            Checker(
                raising
                if plan.permission == "raise"
                else Permission(result=cast("Any", plan.permission), **told)
            )
        )
    window = _window(plan.window, said)
    return (builder if window is None else builder.window(window)).build()


def _window(name: str | None, said: Said) -> Any:
    match name:
        case "sliding":
            return sliding_window(keep_recent_turns=1)
        case "budget":
            return token_budget(threshold_tokens=10, keep_recent_turns=1)
        case "summary":
            summarizer = Model([reply(text=said("summary"))], said, streaming=False)
            return summarize_oldest(
                threshold_tokens=10, keep_recent_turns=1, summarizer=summarizer, model="s"
            )
        case _:
            return None


async def play(plan: Plan, secret: str, watchers: Sequence[Watcher]) -> MemoryLedger:
    """Play a turn, its questions and a second turn; what is left is the ledger."""
    said = Said(secret)
    ledger = MemoryLedger()
    model = Model(_replies(plan, said), said, streaming=plan.options["streams"])
    agent = _agent(plan, said, watchers, ledger, model)
    other = _agent(plan, said, watchers, ledger, model) if plan.by_id else agent
    who: Any = {said("key of who"): said("who")}
    session: Any = agent.session() if plan.door == "session" else agent
    with suppress(FootprintError):
        outcome: Outcome = await _begin(plan.door, session, said("message"), who)
        await _answer(plan, other if plan.by_id else session, outcome, said)
    with suppress(FootprintError):
        await session.follow_up(said("second message"), identity=who)
    return ledger


async def _begin(door: Door, session: Any, message: str, who: Any) -> Outcome:
    match door:
        case "run_sync":
            return cast("Outcome", await asyncio.to_thread(session.run_sync, message, identity=who))
        case "run_typed":
            return cast("Outcome", await session.run_typed(message, identity=who))
        case "run" | "session":
            return cast("Outcome", await session.run(message, identity=who))


async def _answer(plan: Plan, session: Any, outcome: Outcome, said: Said) -> None:
    person: Any = {"by": said("person"), "note": said("note")}
    given: Any = {
        "yes": check_in_approved(**person),
        "no": check_in_declined(**person),
        "junk": {said("key of an answer"): said("answer of a person")},
    }
    for number in range(8):
        if isinstance(outcome, Answer):
            return
        answer = given[plan.answers[min(number, len(plan.answers) - 1)]]
        with suppress(FootprintError):
            if plan.by_id:
                outcome = await session.resume(pause_id=outcome.pause_id, answer=answer)
            else:
                outcome = await session.resume(json.loads(json.dumps(outcome.checkpoint)), answer)
