"""Decisions are counted by day, rule and outcome in sums that are always those of the rows."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from file_ledger import on_file, select
from footprint_core.errors import RunTakenOverError
from footprint_core.facts import CallTaken, Decided, Fact
from footprint_core.ledger import Batch, Entry
from footprint_observe.store import schema
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.recount import Recount
from footprint_observe.store.totals import BLOCK, BY_DAY, LARGE, SUMMING, TOTALS

DAY_US = 86_400_000_000
SUMMED = (
    "SELECT day, middleware, version, moment, tool_name, outcome, shadow, sum(n) FROM decisions_by_day "
    "GROUP BY 1, 2, 3, 4, 5, 6, 7"
)
COUNTED = (
    "SELECT date(recorded_us / 1000000, 'unixepoch'), middleware, version, moment, tool_name, outcome, "
    "shadow, count(*) FROM facts WHERE kind = 'decision' GROUP BY 1, 2, 3, 4, 5, 6, 7"
)


def decided(at: int, **fields: Any) -> Decided:
    given: dict[str, Any] = {
        "middleware": f"rule-{at % 3}",
        "moment": "input" if at % 4 == 0 else "before-tool",
        "iteration": 1,
        "outcome": "deny" if at % 5 == 0 else "allow",
        "version": None if at % 3 == 0 else "v1",
        "shadow": at % 7 == 0,
        "tool_name": None if at % 4 == 0 else f"t-{at % 2}",
        "imported": () if at % 11 == 0 else None,
    }
    return Decided(**(given | fields))


def facts(count: int, first: int = 0) -> list[Fact]:
    taken = CallTaken(iteration=1, call_id="c", tool_name="t")
    return [taken if at % 2 else decided(at) for at in range(first, first + count)]


def append(ledger: SqliteLedger, run_id: str, given: Sequence[Fact], first: int = 1) -> None:
    entries = tuple(
        Entry(position=place, time=1_780_000_000_000_000 + place * DAY_US // 1500, fact=fact)
        for place, fact in enumerate(given, first)
    )
    assert ledger.append_inline(Batch(run_id=run_id, segment=1, entries=entries))


def by_day(path: Path) -> list[tuple[Any, ...]]:
    return select(path, SUMMED)


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 700])
def test_every_decision_is_counted_once_wherever_a_block_ends(tmp_path: Path, size: int) -> None:
    ledger = on_file(tmp_path / "l.db")
    given = facts(size)
    for at, first in enumerate(range(0, size, 1000)):
        append(ledger, f"run-{at}", given[first : first + 1000])
    asyncio.run(ledger.close())
    counted = by_day(tmp_path / "l.db")
    assert Counter(counted) == Counter(select(tmp_path / "l.db", COUNTED))
    assert (
        sum(row[-1] for row in counted) == select(tmp_path / "l.db", "SELECT count(*) FROM decisions")[0][0]
    )
    blocks = select(tmp_path / "l.db", "SELECT DISTINCT span, last_id FROM decision_totals")
    assert blocks == [(BLOCK, last) for last in range(BLOCK, size + 1, BLOCK)]


def test_one_batch_may_fill_several_blocks(tmp_path: Path) -> None:
    ledger = on_file(tmp_path / "l.db")
    append(ledger, "run", facts(3 * BLOCK))
    asyncio.run(ledger.close())
    assert Counter(by_day(tmp_path / "l.db")) == Counter(select(tmp_path / "l.db", COUNTED))
    assert select(tmp_path / "l.db", "SELECT count(DISTINCT last_id) FROM decision_totals") == [(3,)]


def test_a_file_without_decisions_has_no_sums(tmp_path: Path) -> None:
    ledger = on_file(tmp_path / "l.db")
    assert by_day(tmp_path / "l.db") == []
    append(ledger, "run", [CallTaken(iteration=1, call_id="c", tool_name="t")] * BLOCK)
    assert by_day(tmp_path / "l.db") == []
    asyncio.run(ledger.close())


def test_a_batch_that_fails_leaves_no_sum(tmp_path: Path) -> None:
    ledger = on_file(tmp_path / "l.db")
    append(ledger, "run", facts(BLOCK - 1))
    with pytest.raises(RunTakenOverError):
        append(ledger, "run", facts(1), first=7)
    assert select(tmp_path / "l.db", "SELECT count(*) FROM decision_totals") == [(0,)]
    append(ledger, "run", facts(1), first=BLOCK)
    assert select(tmp_path / "l.db", "SELECT min(last_id), max(last_id) FROM decision_totals") == [
        (BLOCK, BLOCK)
    ]
    asyncio.run(ledger.close())


def small(statement: str) -> str:
    """A statement of the schema with blocks of 4 ids, and large ones of 8."""
    return statement.replace(str(LARGE), "8").replace(str(BLOCK), "4")


def test_large_blocks_are_the_sums_of_small_ones_and_are_counted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in (*schema.TABLES, small(SUMMING), small(BY_DAY)):
        connection.execute(statement)
    assert small(TOTALS) == TOTALS
    for row_id in range(1, 32):
        fact = decided(row_id)
        connection.execute(
            "INSERT INTO facts (id, run_id, segment, position, kind, recorded_us, middleware, version, "
            "moment, tool_name, outcome, shadow, prev_hash, hash) "
            "VALUES (?, 'r', 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'', x'')",
            (
                row_id, row_id, "decision" if row_id % 3 else "note", (row_id - 9) * DAY_US // 5 + 7,
                fact.middleware, fact.version, fact.moment, fact.tool_name, fact.outcome, fact.shadow,
            ),
        )  # fmt: skip
        counted = connection.execute(SUMMED).fetchall()
        assert Counter(counted) == Counter(connection.execute(COUNTED).fetchall()), row_id
    spans = connection.execute(
        "SELECT span, count(DISTINCT last_id) FROM decision_totals GROUP BY 1"
    ).fetchall()
    assert spans == [(4, 7), (8, 3)]
    for name, value in (("BLOCK", 4), ("LARGE", 8)):
        monkeypatch.setattr(f"footprint_observe.store.recount.{name}", value)
    assert recounted(connection) is None
    for span, last_id in ((8, 16), (4, 12)):
        connection.execute(
            "UPDATE decision_totals SET n = n + 1 WHERE (span, last_id) = (?, ?)", (span, last_id)
        )
        assert recounted(connection) == last_id
    connection.close()


def recounted(connection: sqlite3.Connection) -> int | None:
    """The row up to which the first sum is that does not fit."""
    recount = Recount(connection)
    rows = connection.execute(
        f"SELECT id, {', '.join(schema.HASHED_COLUMNS)} FROM facts ORDER BY id"
    ).fetchall()
    return next(
        (row_id for row_id, *columns in rows if recount.check(row_id, tuple(columns)) is not None), None
    )


@pytest.mark.parametrize("behind", [0, 1])
def test_a_sum_cannot_be_added_changed_or_removed(tmp_path: Path, behind: int) -> None:
    ledger = on_file(tmp_path / "l.db")
    append(ledger, "run", facts(BLOCK + behind))
    asyncio.run(ledger.close())
    row = "'2026-01-01', 'x', '', 'input', '', 'deny', 0, 1"
    statements = [
        "UPDATE decision_totals SET n = n + 1",
        "DELETE FROM decision_totals",
        "INSERT OR REPLACE INTO decision_totals SELECT * FROM decision_totals",
        f"INSERT INTO decision_totals VALUES ({BLOCK}, {2 * BLOCK}, {row})",
        f"INSERT INTO decision_totals VALUES ({BLOCK}, 0, {row})",
        f"INSERT INTO decision_totals VALUES ({LARGE}, {BLOCK}, {row})",
        f"INSERT INTO decision_totals VALUES (1, {BLOCK}, {row})",
        f"INSERT INTO decision_totals VALUES (0, {BLOCK}, {row})",
    ]
    if behind:
        # In the moment a block is full, what is due cannot be told from what is not; `verify` finds it.
        statements.append(f"INSERT INTO decision_totals VALUES ({BLOCK}, {BLOCK}, {row})")
    connection = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    before = connection.execute("SELECT * FROM decision_totals").fetchall()
    for statement in statements:
        with pytest.raises(sqlite3.IntegrityError, match="decision_totals is append-only"):
            connection.execute(statement)
    assert connection.execute("SELECT * FROM decision_totals").fetchall() == before
    connection.close()


def test_an_empty_file_takes_no_sum(tmp_path: Path) -> None:
    asyncio.run(on_file(tmp_path / "l.db").close())
    connection = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    row = f"{BLOCK}, {BLOCK}, '2026-01-01', 'x', '', 'input', '', 'deny', 0, 1"
    with pytest.raises(sqlite3.IntegrityError, match="decision_totals is append-only"):
        connection.execute(f"INSERT INTO decision_totals VALUES ({row})")
    connection.close()


def test_the_sums_are_read_and_not_the_rows_they_are_of(tmp_path: Path) -> None:
    asyncio.run(on_file(tmp_path / "l.db").close())
    plan = [row[3] for row in select(tmp_path / "l.db", "EXPLAIN QUERY PLAN SELECT * FROM decisions_by_day")]
    assert not [step for step in plan if step.startswith("SCAN facts")]
    assert [step for step in plan if step.startswith("SEARCH facts USING INTEGER PRIMARY KEY")]
