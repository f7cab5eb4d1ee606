"""Several clients at once, clients that leave, and what the server says of itself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client

from footprint_core import (
    MemoryLedger,
    Receipt,
)
from footprint_core.facts import RunConfigured, SegmentEnded, ToolFinished
from footprint_core.mcp import McpServing, mcp_serve
from served import DIALECTS, Ceiling, Dialect, Kept, read, refund, served
from story import Seen, run


@asynccontextmanager
async def calling(serving: McpServing, mode: Dialect, name: str) -> AsyncIterator[asyncio.Future[Any]]:
    """A call that is on its way."""
    async with Client(serving.server, mode=mode) as client:
        going = asyncio.ensure_future(client.call_tool(name, {}))
        yield going
        with pytest.raises(asyncio.CancelledError):
            await going
        # The session and the server are as good as before.
        assert read(await client.call_tool("refund", {"amount": 1}))[0] is False


@DIALECTS
def test_a_client_that_cancels_ends_an_async_tool_and_the_end_is_on_record(mode: Dialect) -> None:
    ledger = Kept()

    async def story() -> None:
        entered, left = asyncio.Event(), asyncio.Event()

        async def waits() -> None:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

        serving = mcp_serve(name="desk", tools=[waits, refund], ledger=ledger)
        async with calling(serving, mode, "waits") as going:
            await entered.wait()
            going.cancel()
            await left.wait()

    run(story())
    assert [fact.cancelled for fact in ledger.facts(ToolFinished)] == [True, False]
    assert [fact.outcome for fact in ledger.facts(SegmentEnded)] == ["cancelled", "answered"]


@DIALECTS
def test_a_client_that_cancels_is_not_the_end_of_a_tool_in_a_thread(mode: Dialect) -> None:
    ledger = Kept()
    may_end = threading.Event()

    async def story() -> None:
        loop, entered = asyncio.get_running_loop(), asyncio.Event()

        def works() -> str:
            loop.call_soon_threadsafe(entered.set)
            assert may_end.wait(20)
            return "done"

        serving = mcp_serve(name="desk", tools=[works, refund], ledger=ledger)
        async with calling(serving, mode, "works") as going:
            await entered.wait()
            going.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
            assert ledger.facts(ToolFinished) == []
            may_end.set()

    run(story())
    finished = [fact for fact in ledger.facts(ToolFinished) if fact.tool_name == "works"]
    assert [(fact.result, fact.failed) for fact in finished] == [("done", False)]
    assert sorted(fact.outcome for fact in ledger.facts(SegmentEnded)) == ["answered", "cancelled"]


def test_calls_of_several_clients_run_at_the_same_time() -> None:
    async def story() -> None:
        both = threading.Barrier(2)

        def meets(who: str) -> str:
            both.wait(20)
            return who

        serving = mcp_serve(name="desk", tools=[meets])
        one, two = await asyncio.gather(
            served(serving, "meets", {"who": "ada"}), served(serving, "meets", {"who": "bob"})
        )
        assert (one, two) == ((False, "ada"), (False, "bob"))

    run(story())


def test_a_server_without_a_ledger_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(*_: object) -> Receipt:
        raise AssertionError

    monkeypatch.setattr(MemoryLedger, "append_inline", kept)
    seen = Seen()
    serving = mcp_serve(name="desk", tools=[refund], tool_middleware=[Ceiling()], watch=[seen])
    assert run(served(serving, "refund", {"amount": 1}))[0] is False
    assert "middleware.decision" in seen.types


def test_a_server_says_how_its_watchers_do_and_closes_what_it_was_given() -> None:
    class Breaking(Seen):
        def on_event(self, event: Any, /) -> None:
            raise LookupError

    ledger = Kept()

    async def story() -> None:
        async with mcp_serve(name="desk", tools=[refund], ledger=ledger, watch=[Breaking()]) as serving:
            assert (await served(serving, "refund", {"amount": 1}))[0] is False
            (watcher,) = serving.health().watchers
            assert watcher.failures > 0
            assert ledger.runs[-1] != "closed"

    run(story())
    assert ledger.runs[-1] == "closed"


def test_a_served_run_says_that_no_model_asked() -> None:
    ledger = Kept()
    run(served(mcp_serve(name="desk", tools=[refund], ledger=ledger), "refund", {"amount": 1}))
    (configured,) = ledger.facts(RunConfigured)
    assert (configured.agent_name, configured.provider, configured.model) == ("desk", "mcp", "none")
