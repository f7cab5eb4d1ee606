"""A real file, and hands on it that no trigger holds."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from erasing import Erasing
from footprint_core.facts import Decided, Fact
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.hashing import document, link
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.schema import HASHED_COLUMNS
from samples import FULL, TRACE

Tamper = Callable[[sqlite3.Connection], object]


def decision(at: int) -> Decided:
    return Decided(
        middleware=f"rule-{at % 3}",
        moment="before-tool",
        iteration=1,
        outcome="deny" if at % 5 == 0 else "allow",
        shadow=at % 7 == 0,
        tool_name="t",
        call_id="c",
        why="because" if at % 5 == 0 else "",
    )


def real_file(path: Path, *, decisions: int = 0) -> Path:
    """Three runs whose rows alternate, a fact of every kind in each, with values that were cut out."""
    ledger = SqliteLedger(path, redact=Erasing("**.zulu", "**.alpha.b", "**.zulu.3"), durability="process")
    facts: tuple[Fact, ...] = (*FULL, *map(decision, range(decisions)))
    for first in range(0, len(facts), 7):
        for run in ("a" * 32, "b" * 32, "c" * 32):
            entries = tuple(
                Entry(position=place, time=1_780_000_000_000_000 + place * 20_000_000, fact=fact)
                for place, fact in enumerate(facts[first : first + 7], first + 1)
            )
            ledger.append_inline(Batch(run_id=run, segment=1, entries=entries, trace=TRACE))
    asyncio.run(ledger.close())
    return path


@contextmanager
def unguarded(path: Path) -> Generator[sqlite3.Connection]:
    """A connection to a file without triggers, whose rows can be written at will; then it has them again."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        yield connection
        for _, sql in triggers:
            connection.execute(sql)
    finally:
        connection.close()


def tampered(path: Path, into: Path, tamper: str | Tamper) -> Path:
    """A copy of a file, changed."""
    shutil.copy(path, into)
    with unguarded(into) as connection:
        if isinstance(tamper, str):
            assert connection.execute(tamper).rowcount > 0, tamper
        else:
            tamper(connection)
    return into


def rehashed(connection: sqlite3.Connection, row_id: int, follow: bool) -> None:
    """Give a changed row a hash that fits; with `follow`, all rows of its run behind it too."""
    columns = ", ".join(HASHED_COLUMNS)
    run_id, position = connection.execute(
        "SELECT run_id, position FROM facts WHERE id = ?", (row_id,)
    ).fetchone()
    rows = connection.execute(
        f"SELECT id, prev_hash, {columns} FROM facts WHERE run_id = ? AND position >= ? ORDER BY position",
        (run_id, position),
    ).fetchall()
    before = rows[0][1]
    for behind, _, *values in rows if follow else rows[:1]:
        digest = link(before, document(tuple(values)))
        connection.execute("UPDATE facts SET prev_hash = ?, hash = ? WHERE id = ?", (before, digest, behind))
        before = digest
