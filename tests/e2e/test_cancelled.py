"""What a file says of a call whose turn was cancelled: whether it ran, and whether anybody can know."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from footprint_core import after_tool, allow
from footprint_core.providers import call, reply
from footprint_observe import SqliteLedger
from story import describe, run

CALLS = "select status, executed, in_doubt, result from tool_calls"


def _rows(path: Path) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(path)
    rows = db.execute(CALLS).fetchall()
    db.close()
    return rows


def _cancelled_at(reached: asyncio.Event, builder: Any) -> None:
    async def story() -> None:
        async with builder.build() as agent:
            turn = asyncio.ensure_future(agent.run("go"))
            await reached.wait()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn

    run(story())


def test_a_tool_that_was_cancelled_while_it_ran_is_in_doubt(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def pay() -> str:
        reached.set()
        await asyncio.Event().wait()
        return "paid"

    ledger = SqliteLedger(tmp_path / "f.db")
    _cancelled_at(reached, describe([reply(calls=[call("1", "pay", {})])], pay, ledger=ledger)[0])
    assert _rows(tmp_path / "f.db") == [("cancelled", 1, 1, None)]


def test_a_tool_that_had_run_before_a_rule_was_cancelled_ran(tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def pay() -> str:
        return "paid"

    @after_tool("slow")
    async def slow(context: Any) -> Any:
        reached.set()
        await asyncio.Event().wait()
        return allow()

    ledger = SqliteLedger(tmp_path / "f.db")
    builder, _ = describe(
        [reply(calls=[call("1", "pay", {})])], pay, ledger=ledger, act={"after_tool": [slow]}
    )
    _cancelled_at(reached, builder)
    assert _rows(tmp_path / "f.db") == [("ran", 1, 0, '"paid"')]


def test_a_tool_that_was_never_entered_is_in_no_doubt(tmp_path: Path) -> None:
    path, reached, ran = tmp_path / "f.db", asyncio.Event(), list[str]()

    async def pay() -> str:
        ran.append("paid")
        return "paid"

    class Waits(SqliteLedger):
        """Hands the third commit, the one of the intent, to the writer thread."""

        commits = 0

        def append_inline(self, batch: Any, /) -> Any:
            self.commits += 1
            return None if self.commits == 3 else super().append_inline(batch)

        async def append(self, batch: Any, /) -> Any:
            if self.commits == 3:
                # An earlier one comes here too where the disk is slow.
                reached.set()
            return await super().append(batch)

    ledger = Waits(path)
    _cancelled_at(reached, describe([reply(calls=[call("1", "pay", {})])], pay, ledger=ledger)[0])
    assert ran == []
    assert _rows(path) == [("cancelled", 0, 0, None)]
