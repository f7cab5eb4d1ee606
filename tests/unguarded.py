"""What somebody can do who has the file and knows SQLite: a ledger without its triggers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

RENAMED = {"call_id": "tool_call_id"}
"""Fields whose column is called otherwise."""


@contextmanager
def unguarded(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that commits each statement, after every trigger was dropped."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection


def fields_of(connection: sqlite3.Connection, fact_id: int) -> dict[str, Any]:
    """What a fact says that is no value: its columns, and what its `extra` holds."""
    connection.row_factory = sqlite3.Row
    row: dict[str, Any] = dict(connection.execute("SELECT * FROM facts WHERE id = ?", (fact_id,)).fetchone())
    connection.row_factory = None
    extra: dict[str, Any] = json.loads(row["extra"] or "{}")
    return row | extra


@contextmanager
def altered(connection: sqlite3.Connection, fact_id: int, field: str, value: Any) -> Iterator[None]:
    """A fact that says something else for a while."""
    columns = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info('facts')")}
    column = RENAMED.get(field, field)
    if column in columns:
        statement = f"UPDATE facts SET {column} = ? WHERE id = ?"
        (before,) = connection.execute(f"SELECT {column} FROM facts WHERE id = ?", (fact_id,)).fetchone()
        after = value
    else:
        statement = "UPDATE facts SET extra = ? WHERE id = ?"
        (before,) = connection.execute("SELECT extra FROM facts WHERE id = ?", (fact_id,)).fetchone()
        after = json.dumps(json.loads(before or "{}") | {field: value})
    connection.execute(statement, (after, fact_id))
    try:
        yield
    finally:
        connection.execute(statement, (before, fact_id))


def cut_off(connection: sqlite3.Connection, run_id: str, position: int) -> None:
    """Take away all that is behind a position of a run which is the last in its file, as a crash does."""
    behind = "SELECT id FROM facts WHERE run_id = ? AND position > ?"
    connection.execute(f"DELETE FROM vals WHERE fact_id IN ({behind})", (run_id, position))
    connection.execute(f"DELETE FROM facts WHERE id IN ({behind})", (run_id, position))
