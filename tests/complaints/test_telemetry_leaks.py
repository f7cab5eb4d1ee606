"""One channel at a time: whatever carries content in a run, none of it is in what recorders ship."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import pytest

from facts_only.sweep import Swept, leaks, swept
from footprint_core import (
    FootprintError,
    Permission,
    allow,
    ask,
    ask_human,
    before_tool,
    check_in_approved,
    deny,
    sliding_window,
    static_credentials,
    summarize_oldest,
    tool,
)
from footprint_core.providers import Chunk, Completed, ModelRequest, Scripted, call, reply
from permits import Checker
from planted import OVER, Story, World

DONE = reply(text="done")
EMPTY = reply(text="{}")


def _tool(name: str, body: Callable[[str], Any], **options: Any) -> Any:
    def made(note: str) -> Any:
        return body(note)

    return tool(name=name, **options)(made)


def _raises(error: BaseException) -> Callable[..., Any]:
    def raising(*_: object) -> Any:
        raise error

    return raising


class Fails:
    """A provider that fails with a text."""

    name = "fails"

    def __init__(self, text: str) -> None:
        self._text = text

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        yield Chunk(text="as")
        raise OSError(self._text)


class Shaped:
    """A schema with an instruction and an error of its own."""

    def __init__(self, instruction: str, error: str) -> None:
        self.instruction = instruction
        self._error = error

    def check(self, value: Any, /) -> object:
        raise ValueError(self._error)


def _asked(note: str = "a") -> Completed:
    return reply(calls=[call("c1", "works", {"note": note})], usage=OVER)


WORKS = _tool("works", lambda note: "worked")
Built: TypeAlias = Callable[[Any], Any]
Carried: TypeAlias = Callable[[str], Story]


def _story(
    *replies: Completed,
    work: Any = WORKS,
    build: Built | None = None,
    message: str = "hello",
    note: str = "",
    **given: Any,
) -> Story:
    """A run in which one thing carries a text; a question is approved with a note."""

    async def story(world: World) -> None:
        builder = world.builder(replies, work, **given)
        agent = (builder if build is None else build(builder)).build()
        with suppress(FootprintError):
            paused: Any = await agent.run(message)
            if hasattr(paused, "checkpoint"):
                await agent.resume(paused.checkpoint, check_in_approved(by="dana", note=note))

    return story


def _before(hook: Callable[[Any], Any]) -> Built:
    return lambda builder: builder.tool_middleware(before_tool("r")(hook))


def _schema(instruction: str, error: str) -> Built:
    return lambda builder: builder.output_schema(Shaped(instruction, error), retries=1)


def _permission(answer: Any) -> Built:
    return lambda builder: builder.permission(Checker(answer))


def _summarized(text: str) -> Built:
    said = Scripted([reply(text=text)] * 3)
    window = summarize_oldest(threshold_tokens=10, keep_recent_turns=1, summarizer=said, model="s")
    return lambda builder: builder.window(window)


SLIDING: Built = lambda builder: builder.window(sliding_window(keep_recent_turns=1))  # noqa: E731 - as the others

CHANNELS: dict[str, Carried] = {
    "message": lambda text: _story(DONE, message=text),
    "instructions": lambda text: _story(DONE, build=lambda builder: builder.system(text)),
    "answer": lambda text: _story(reply(text=text)),
    "chunks of a stream": lambda text: _story(reply(tokens=["so: ", text]), streaming=True),
    "thought beside a call": lambda text: _story(reply(text=text, calls=_asked().tool_calls), DONE),
    "arguments": lambda text: _story(_asked(text), DONE),
    "result": lambda text: _story(_asked(), DONE, work=_tool("works", lambda note: text)),
    "exception of a tool": lambda text: _story(
        _asked(), DONE, work=_tool("works", _raises(LookupError(text)))
    ),
    "exception of a provider": lambda text: _story(provider=Fails(text)),
    "exception of a rule": lambda text: _story(_asked(), DONE, build=_before(_raises(ValueError(text)))),
    "exception of a checker": lambda text: _story(_asked(), DONE, build=_permission(RuntimeError(text))),
    "retry prompt": lambda text: _story(EMPTY, EMPTY, build=_schema("x", text)),
    "output template": lambda text: _story(DONE, DONE, build=_schema(text, "x")),
    "arguments that do not fit": lambda text: _story(
        reply(calls=[call("c1", "works", {"note": [text]})]), DONE
    ),
    "reason of a denial": lambda text: _story(_asked(), DONE, build=_before(lambda _: deny(text))),
    "why": lambda text: _story(_asked(), DONE, build=_before(lambda _: allow(why=text))),
    "arguments a rule made": lambda text: _story(
        _asked(), DONE, build=_before(lambda _: allow({"note": text}, why="w"))
    ),
    "question": lambda text: _story(_asked(), DONE, build=_before(lambda _: ask(text))),
    "detail of a question": lambda text: _story(
        _asked(), DONE, build=_before(lambda _: ask("ok?", detail={"of": text}))
    ),
    "note of who answers": lambda text: _story(
        _asked(), DONE, build=_before(lambda _: ask("ok?")), note=text
    ),
    "question of a tool": lambda text: _story(_asked(), DONE, work=_tool("works", lambda _: ask_human(text))),
    "evidence for a consent": lambda text: _story(
        _asked(), DONE, work=_tool("works", str, check_in="always", evidence=lambda args: {"of": text})
    ),
    "rationale": lambda text: _story(
        _asked(), DONE, build=_permission(Permission(result="deny", rationale=text))
    ),
    "credential": lambda text: _story(
        _asked(),
        DONE,
        work=_tool("works", str, needs="bank"),
        build=lambda builder: builder.credentials(static_credentials({"bank": text})),
    ),
    "summary": lambda text: _story(
        *[_asked()] * 3,
        DONE,
        work=_tool("works", lambda _: "long " * 200),
        keep_last_tool_results=0,
        build=_summarized(text),
    ),
    "what left the window": lambda text: _story(
        *[_asked(text * 40)] * 3, DONE, keep_last_tool_results=0, build=SLIDING
    ),
}
"""What carries content in a run, each alone."""

KEPT_NOWHERE = {"exception of a provider", "question of a tool", "credential"}
"""What not even the ledger has."""


def _text(channel: str) -> str:
    """A text of a channel that no other one shares a piece with."""
    return hashlib.sha256(channel.encode()).hexdigest()[:24]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """What came of a run for each channel."""
    stories = {name: carried(_text(name)) for name, carried in CHANNELS.items()}
    return swept(tmp_path_factory.mktemp("channels"), stories)


@pytest.mark.parametrize("channel", CHANNELS)
def test_c082_no_channel_that_carries_content_reaches_a_recorder(channel: str, played: Swept) -> None:
    kept = _text(channel).encode() in played.kept[channel]
    assert kept == (channel not in KEPT_NOWHERE)
    assert [missing for missing in played.untold if missing.startswith(f"{channel}:")] == []
    assert leaks(played.held, _text(channel)) == []
