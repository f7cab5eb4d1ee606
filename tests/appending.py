"""What tests append to a ledger: batches of a run that begins, calls tools and ends, as a run does."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from footprint_core.facts import CallTaken, Decided, Fact, RunConfigured, SegmentEnded, ToolFinished
from footprint_core.ledger import Batch, Entry, Receipt
from footprint_observe import SqliteLedger
from footprint_observe.store.append import Appender

TAKEN = CallTaken(iteration=1, call_id="c", tool_name="t")
CONFIGURED = RunConfigured(
    agent_id="a", agent_name="a", provider="p", model="m", rules={}, tools=(), turn_index=1
)
ENDED = SegmentEnded(outcome="answered", iterations=1, input_tokens=1, output_tokens=1, duration_us=1)
DECIDED = Decided(middleware="r", moment="before-tool", iteration=1, outcome="allow", why="because")
LARGE = ToolFinished(
    iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result="long" * 30_000
)


def batch(run: str, first: int, *facts: Fact) -> Batch:
    """A batch of a run whose first entry has that position."""
    entries = tuple(Entry(position=at, time=at, fact=fact) for at, fact in enumerate(facts, first))
    return Batch(run_id=run, segment=1, entries=entries)


async def append(ledger: SqliteLedger, given: Batch) -> Receipt:
    """Append as a run does: inline when that is possible now."""
    return ledger.append_inline(given) or await ledger.append(given)


async def whole_run(ledger: SqliteLedger, run: str, calls: int) -> None:
    """A run of `calls` tool calls: `2 + 2 * calls` batches and `2 + 3 * calls` rows."""
    await append(ledger, batch(run, 1, CONFIGURED))
    for call in range(calls):
        # Its model: a run that never waits for anything is over before another one begins.
        await asyncio.sleep(0)
        await append(ledger, batch(run, 2 + 3 * call, DECIDED, TAKEN))
        await append(ledger, batch(run, 4 + 3 * call, TAKEN))
    await append(ledger, batch(run, 2 + 3 * calls, ENDED))


def appender_of(ledger: SqliteLedger) -> Appender:
    """What appends to the file in this process, seen from inside."""
    (opened,) = ledger._by_process.values()
    return opened.appender


def connection_of(ledger: SqliteLedger) -> sqlite3.Connection:
    """The connection it appends with."""
    connection = appender_of(ledger)._connection
    assert connection is not None
    return connection


def whole(path: Path, runs: Sequence[str], rows: int) -> None:
    """Assert that a file has those runs, `rows` rows of each, nothing else, no gap and unbroken chains."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        heads: dict[str, tuple[int, bytes]] = {}
        for at, row in enumerate(connection.execute("SELECT * FROM facts ORDER BY id"), 1):
            position, head = heads.get(row["run_id"], (0, bytes(32)))
            assert (row["id"], row["position"], row["prev_hash"]) == (at, position + 1, head)
            heads[row["run_id"]] = (row["position"], row["hash"])
        assert {run: position for run, (position, _) in heads.items()} == dict.fromkeys(runs, rows)
    finally:
        connection.close()


def statements(connection: sqlite3.Connection) -> list[str]:
    """The statements that a connection runs from now on, as they come."""
    found: list[str] = []
    connection.set_trace_callback(found.append)
    return found
