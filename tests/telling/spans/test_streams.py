"""Models that stream: nothing is left attached, whoever stops in the middle, and chunks are no spans."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry.context import get_current
from opentelemetry.trace import get_current_span

from footprint_core import Agent, ProviderError
from footprint_core.providers import Chunk, Completed, ModelRequest, call, reply
from story import answered, run
from traced import Traced, context, said


class Streams:
    """A model that traces its own request across its chunks, as SDKs do."""

    name, streaming = "streams", True

    def __init__(self, traced: Traced, *, stops_at: int | None = None, hangs_at: int | None = None) -> None:
        self.traced, self.stops_at, self.hangs_at = traced, stops_at, hangs_at
        self.reached = asyncio.Event()
        self.closed = 0

    async def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        try:
            with self.traced.tracer.start_as_current_span("POST"):
                for number in range(5):
                    if number == self.stops_at:
                        raise OSError("PLANTED")
                    if number == self.hangs_at:
                        self.reached.set()
                        await asyncio.Event().wait()
                    yield Chunk(text=str(number))
                    await asyncio.sleep(0)
            if len(request.messages) == 1:
                yield reply(calls=[call("c1", "look", {})])
            else:
                yield reply(text="01234")
        finally:
            self.closed += 1


def streamed(traced: Traced, model: Streams) -> Agent:
    def look() -> str:
        """Look up."""
        with traced.tracer.start_as_current_span("own"):
            return "found"

    return Agent.create(provider=model, model="m", name="refunds").tool(look).watch(traced.watcher).build()


@pytest.mark.parametrize("sync", [True, False], ids=["run_sync", "run"])
def test_what_a_model_traces_across_its_chunks_hangs_below_its_call(sync: bool) -> None:
    traced = Traced()
    agent = streamed(traced, Streams(traced))
    before = get_current()
    answered(agent.run_sync("go") if sync else run(agent.run("go")))
    assert get_current() is before
    assert traced.tree() == [
        [
            "invoke_agent refunds",
            ["chat m", "POST"],
            ["execute_tool look", "own"],
            ["chat m", "POST"],
        ]
    ]
    assert all("gen_ai.response.time_to_first_chunk" in said(span) for span in traced.all_named("chat m"))


def test_streams_of_conversations_in_one_loop_keep_apart() -> None:
    traced = Traced()
    agent = streamed(traced, Streams(traced))

    async def story() -> None:
        async def one() -> None:
            before = get_current()
            answered(await agent.session().run("go"))
            assert get_current() is before

        await asyncio.gather(*(one() for _ in range(8)))

    run(story())
    chats = {context(span).span_id: span for span in traced.all_named("chat m")}
    posts = traced.all_named("POST")
    assert {span.parent.span_id for span in posts if span.parent} == chats.keys()
    assert len({context(span).trace_id for span in traced.spans}) == 8


def test_a_stream_that_breaks_is_an_error_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    traced = Traced()
    agent = streamed(traced, Streams(traced, stops_at=3))

    async def story() -> None:
        before = get_current()
        with pytest.raises(ProviderError):
            await agent.run("go")
        assert get_current() is before

    run(story())
    chat = traced.named("chat m")
    assert (chat.status.status_code.name, chat.status.description) == ("ERROR", None)
    assert said(chat)["error.type"] == "OSError"
    ours = [span for span in traced.spans if span.name != "POST"]
    assert "PLANTED" not in str([span.to_json() for span in ours])
    assert "detach" not in caplog.text


def test_who_stops_in_the_middle_of_a_stream_leaves_nothing_attached(
    caplog: pytest.LogCaptureFixture,
) -> None:
    traced = Traced()

    async def story() -> None:
        model = Streams(traced, hangs_at=2)
        before = get_current()
        running = asyncio.ensure_future(streamed(traced, model).run("go"))
        await model.reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert get_current() is before
        assert model.closed == 1

    with caplog.at_level(logging.DEBUG):
        run(story())
        gc.collect()
    assert [span.name for span in traced.spans] == ["invoke_agent refunds", "chat m", "POST"]
    assert traced.named("chat m").status.status_code.name == "UNSET"
    assert "detach" not in caplog.text


def test_an_async_generator_of_the_application_around_runs_keeps_its_own_context(
    caplog: pytest.LogCaptureFixture,
) -> None:
    traced = Traced()

    async def answers(agent: Any) -> AsyncIterator[str]:
        for _ in range(3):
            yield answered(await agent.session().run("go")).text

    async def story() -> None:
        before = get_current()
        agent = streamed(traced, Streams(traced))
        async for _ in answers(agent):
            assert get_current() is before
            break
        gc.collect()
        await asyncio.sleep(0)
        assert get_current() is before
        assert not get_current_span().get_span_context().is_valid

    run(story())
    assert len(traced.all_named("invoke_agent refunds")) == 1
    assert traced.watcher._segments.found == {}
    assert "detach" not in caplog.text
