"""Model providers of one's own: one that streams, and one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import assert_never

from footprint_core import Agent, Answer
from footprint_core.facts import Usage
from footprint_core.providers import Chunk, Completed, ModelRequest, Provider, Scripted, Whole, reply


class Streaming:
    """An async generator is a reply."""

    name = "streaming"
    streaming = True
    server = "localhost:1"

    async def reply(self, request: ModelRequest) -> AsyncIterator[Chunk | Completed]:
        words = request.messages[-1].text.split()
        for word in words:
            yield Chunk(text=word)
        yield Completed(text=" ".join(words), usage=Usage(input=3, output=len(words)))


class Echo:
    """A reply in one piece."""

    @property
    def name(self) -> str:
        return "echo"

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        return Whole(Completed(text=request.messages[-1].text, stop_reason="stop"))


class Loud:
    """One that wraps another, and is one."""

    def __init__(self, inner: Provider) -> None:
        self.name = inner.name
        self._inner = inner

    async def reply(self, request: ModelRequest) -> AsyncIterator[Chunk | Completed]:
        async for piece in self._inner.reply(request):
            match piece:
                case Chunk(text=text):
                    yield Chunk(text=text.upper())
                case Completed(text=text):
                    yield Completed(text=text.upper(), tool_calls=piece.tool_calls, usage=piece.usage)
                case _:
                    assert_never(piece)


providers: tuple[Provider, ...] = (Streaming(), Echo(), Loud(Streaming()), Scripted([reply(text="say it")]))


async def main() -> None:
    said: list[str] = []
    for provider in providers:
        agent = Agent.create(provider=provider, model="m", name="echo").build()
        out = await agent.run("say it")
        assert isinstance(out, Answer)
        said.append(out.text)
    assert said == ["say it", "say it", "SAY IT", "say it"]


if __name__ == "__main__":
    asyncio.run(main())
