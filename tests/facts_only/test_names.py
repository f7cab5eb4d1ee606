"""A secret that could pass for a name: no recorder ships it as that of a tool, a call, a class or a reply."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from facts_only.shipping import RECORDERS
from facts_only.sweep import leaks, swept
from footprint_core import allow, ask, before_tool, check_in_approved
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from planted import ANSWER, Story, World, breaks, calls, pays

KEY = "sk-live-42fG7hJ9kL1mN3pQ"
WORDS = "парольотбанковскогосейфа"
CLASS = "Token 42fG7hJ9kL1mN3pQ of a customer"

asks = before_tool("asks")(lambda _: ask("Really?"))
passes = before_tool("passes")(lambda _: allow(why="seen"))


def told(*names: tuple[str, str]) -> Story:
    """Calls of these tools under these ids, together and one after another, let through and asked about."""

    async def story(world: World) -> None:
        batch = [call(id, name, {"note": "a"}) for name, id in names]
        for rule in (passes, asks):
            for together in (False, True):
                builder = world.builder([reply(calls=batch), ANSWER], breaks, parallel_tools=together)
                agent = builder.tool_middleware(rule).build()
                paused: Any = await agent.run("hello")
                while hasattr(paused, "checkpoint"):
                    paused = await agent.resume(paused.checkpoint, check_in_approved(by="dana@ops"))

    return story


async def of_a_class(world: World) -> None:
    """An error of a class that was made at run time, raised in every place there is."""
    error: Any = type(CLASS, (Exception,), {})

    def raises(_: object) -> Any:
        raise error

    def breaks(note: str) -> str:
        raise error

    class Fails:
        name = "fails"

        async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
            yield Chunk(text="")
            raise error

    await world.builder([reply(calls=[calls("breaks")]), ANSWER], breaks).build().run("hello")
    await world.builder([pays(1), ANSWER]).tool_middleware(before_tool("r")(raises)).build().run("hello")
    agent = world.builder([ANSWER]).build()
    agent.on("*", raises)
    await agent.run("hello")
    with pytest.raises(Exception, match="fails"):
        await world.builder([], provider=Fails()).build().run("hello")


async def of_a_reply(world: World) -> None:
    """A provider that gives a text for an id and for the name of its model."""
    text = f"as you said: {KEY}"
    odd = msgspec.structs.replace(ANSWER, response_id=text, response_model=text)
    await world.builder([odd]).build().run("hello")


CASES: dict[str, tuple[str, Story]] = {
    "a tool's name": (KEY, told((KEY, "c1"), ("breaks", "c2"))),
    "a call's id": (KEY, told(("breaks", KEY), ("breaks", f"{KEY}-2"), ("breaks", "c2"))),
    "a call's id in other letters": (WORDS, told(("breaks", WORDS))),
    "a class": (CLASS, of_a_class),
    "a reply": (KEY, of_a_reply),
}


TOLD_HERE = {"a class": {"events", "log records"}}
"""Who is told in this process is told what the laws say; what is shipped is less."""


@pytest.mark.parametrize("case", [case for case in CASES if case != "a reply"])
def test_a_secret_that_could_be_a_name_is_shipped_by_no_recorder(case: str, tmp_path: Path) -> None:
    secret, story = CASES[case]
    held = swept(tmp_path, {case: story}).held
    shipped = {name: data for name, data in held.items() if name not in TOLD_HERE.get(case, {"events"})}
    assert leaks(shipped, secret) == []
    assert all(b"planted" in held[name] for name in RECORDERS)


def test_a_text_that_a_provider_gives_for_an_id_is_in_no_event(tmp_path: Path) -> None:
    secret, story = CASES["a reply"]
    assert leaks(swept(tmp_path, {"a reply": story}).held, secret) == []
