"""How SQLite finds what is asked: by a key or an index, never by reading the whole file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from footprint_observe.store.ledger import SqliteLedger


@pytest.fixture
def ledger(tmp_path: Path) -> Generator[SqliteLedger]:
    ledger = SqliteLedger(tmp_path / "l.db")
    yield ledger
    asyncio.run(ledger.close())


def ask(ledger: SqliteLedger, sql: str, *params: Any) -> list[dict[str, Any]]:
    connection = sqlite3.connect(f"{ledger.path.as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql, params)]
    finally:
        connection.close()


def plan(ledger: SqliteLedger, sql: str) -> str:
    return "\n".join(row["detail"] for row in ask(ledger, f"EXPLAIN QUERY PLAN {sql}"))


@pytest.mark.parametrize(
    "view", ["decisions", "runs", "tool_calls", "model_calls", "pauses", "window_records"]
)
def test_the_rows_of_one_run_are_found_by_key_everywhere(ledger: SqliteLedger, view: str) -> None:
    assert "SCAN" not in plan(ledger, f"SELECT * FROM {view} WHERE run_id = 'run'")


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        ("SELECT * FROM decisions WHERE outcome = 'deny' ORDER BY id DESC LIMIT 50", "facts_denials"),
        ("SELECT * FROM runs ORDER BY id DESC LIMIT 50", "facts_runs"),
        ("SELECT * FROM runs WHERE conversation_id = 'c'", "facts_conversations"),
        ("SELECT * FROM pauses WHERE open", "facts_pauses"),
        ("SELECT * FROM pauses WHERE pause_id = 'p'", "facts_pauses"),
    ],
)
def test_what_is_asked_often_has_an_index(ledger: SqliteLedger, sql: str, index: str) -> None:
    lines = plan(ledger, sql).splitlines()
    assert f"USING INDEX {index}" in lines[0]
    assert not any(line.startswith("SCAN") for line in lines[1:])


def test_the_latest_of_anything_is_read_from_the_end_without_a_sort(ledger: SqliteLedger) -> None:
    for view in ("decisions", "runs", "tool_calls", "model_calls", "window_records"):
        assert "TEMP B-TREE" not in plan(ledger, f"SELECT * FROM {view} ORDER BY id DESC LIMIT 50")
    assert "TEMP B-TREE" not in plan(
        ledger, "SELECT * FROM decisions WHERE outcome = 'deny' ORDER BY id DESC LIMIT 50"
    )
