"""No row of a ledger file can be rewritten, replaced or deleted by another program, whatever table it is in.

Tables and keys are listed here, from SQLite's own catalogue and not with the product's functions, so that a
table somebody adds is attacked too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from footprint_core import AskPause, check_in_approved
from footprint_core.facts import Decided
from footprint_core.ledger import Batch, Entry
from footprint_observe import KeyRing, SqliteLedger
from footprint_observe.demo.refunds import refund_agent
from footprint_observe.demo.story import MESSAGE, StoryModel
from footprint_observe.store.totals import BLOCK

ATTACK = """
import json, sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)


def ask(sql, *values):
    return connection.execute(sql, values).fetchall()


def rows(table):
    # With the types, and blobs in hex, so that the same means the same bytes.
    names = [name for (name,) in ask("SELECT name FROM pragma_table_xinfo(?)", table)]
    listed = ", ".join(f'typeof("{name}"), hex("{name}")' for name in names)
    return sorted(ask(f'SELECT {listed} FROM "{table}"'))


def keys(table):
    primary = ask("SELECT name FROM pragma_table_xinfo(?) WHERE pk ORDER BY pk", table)
    found = [[name for (name,) in primary]]
    for (index,) in ask('SELECT name FROM pragma_index_list(?) WHERE "unique"', table):
        found.append([name for (name,) in ask("SELECT name FROM pragma_index_info(?) ORDER BY seqno", index)])
    ((without_rowid,),) = ask("SELECT wr FROM pragma_table_list(?)", table)
    if not without_rowid:
        found.append(["rowid"])
    return [key for at, key in enumerate(found) if key and key not in found[:at]]


def attempt(what, sql, *values):
    try:
        ask(sql, *values)
    except sqlite3.Error as error:
        answer = str(error)
    else:
        answer = "done"
    return {"what": what, "answer": answer}


def other(value):
    if isinstance(value, bytes):
        return value + b"x"
    return value + 1_000_000 if isinstance(value, int) else f"{value}x"


def given_by_sqlite(table):
    # The column SQLite gives a number when an insert leaves it out.
    primary = ask("SELECT name, upper(type) FROM pragma_table_xinfo(?) WHERE pk", table)
    return [name for name, kind in primary if len(primary) == 1 and kind == "INTEGER"]


def attack(table):
    names = [name for (name,) in ask("SELECT name FROM pragma_table_xinfo(?)", table)]
    listed = ", ".join(f'"{name}"' for name in names)
    numbered = given_by_sqlite(table)
    tried = [attempt("DELETE", f'DELETE FROM "{table}"')]
    for name in names:
        for verb in ("UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"):
            tried.append(attempt(f"{verb} {name}", f'UPDATE{verb[6:]} "{table}" SET "{name}" = "{name}"'))
    for key in keys(table):
        same = " AND ".join(f'"{name}" IS ?' for name in key)
        for row in ask(f'SELECT {", ".join(key)}, {listed} FROM "{table}"')[:20]:
            held = dict(zip(key, row))
            old = dict(zip(names, row[len(key):]))
            given = {name: other(value) for name, value in old.items() if value is not None} | held
            # The key that is attacked is all that the new row shares with the old one.
            # It is put there with an id of its own, and with the one SQLite gives it.
            shorter = {name: value for name, value in given.items() if name in key or name not in numbered}
            for values in (given, shorter):
                columns, marks = ", ".join(f'"{name}"' for name in values), ", ".join("?" * len(values))
                for verb in ("INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE"):
                    sql = f'{verb} INTO "{table}" ({columns}) VALUES ({marks})'
                    tried.append(attempt(f"{verb} through {key}", sql, *values.values()))
            tried.append(attempt(f"DELETE by {key}", f'DELETE FROM "{table}" WHERE {same}', *held.values()))
    return tried


tables = [
    name
    for (name,) in ask("SELECT name FROM sqlite_schema WHERE type = 'table'")
    if not name.startswith("sqlite_")
]
print(json.dumps({
    table: {"before": rows(table), "keys": keys(table), "tried": attack(table), "after": rows(table)}
    for table in tables
}))
"""


def attacked(path: Path) -> dict[str, dict[str, Any]]:
    """For every table: its rows before and after, and what became of each statement, from another process."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", ATTACK, os.fspath(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


def broken_into(found: dict[str, dict[str, Any]]) -> list[str]:
    """What was not refused by a trigger, and the tables whose rows are not what they were."""
    taken = [
        f"{table}: {tried['what']}: {tried['answer']}"
        for table, what in found.items()
        for tried in what["tried"]
        if "is append-only" not in tried["answer"]
    ]
    return taken + [
        f"{table}: other rows" for table, what in found.items() if what["before"] != what["after"]
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = SqliteLedger(tmp_path / "l.db", keys=KeyRing.of({"one": bytes(32)}))

    async def story() -> None:
        async with ledger, refund_agent(StoryModel(), ledger) as agent:
            outcome = await agent.run(MESSAGE)
            while isinstance(outcome, AskPause):
                outcome = await agent.resume(outcome.checkpoint, check_in_approved(by="dana@ops"))
            # A question that stays open, whose body is kept; and as many decisions as are summed at once.
            async with refund_agent(StoryModel(), ledger) as other:
                assert isinstance(await other.run(MESSAGE), AskPause)
            fact = Decided(middleware="m", moment="input", iteration=0, outcome="allow")
            entries = tuple(Entry(position=at, time=at, fact=fact) for at in range(1, BLOCK + 1))
            await ledger.append(Batch(run_id="many", segment=1, entries=entries))

    asyncio.run(story())
    return tmp_path / "l.db"


def test_every_statement_that_would_change_a_row_of_any_table_is_refused(path: Path) -> None:
    found = attacked(path)
    assert set(found) >= {"facts", "vals", "pause_bodies", "decision_totals"}
    for table, what in found.items():
        assert what["before"], f"{table} has no row to attack; let the story write one"
        assert what["keys"], table
        assert len(what["tried"]) > 20
    assert ["run_id", "position"] in found["facts"]["keys"]
    assert broken_into(found) == []


def test_a_table_without_guards_does_not_pass(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE later (name TEXT PRIMARY KEY, code INTEGER UNIQUE, text TEXT)")
    connection.execute("INSERT INTO later VALUES ('n', 1, 't'), ('m', 2, 't')")
    connection.close()
    broken = broken_into(attacked(path))
    assert broken
    assert all(line.startswith("later: ") for line in broken)


@pytest.mark.parametrize(
    "trigger", ["facts_no_replace", "facts_no_delete", "facts_no_update", "vals_no_replace"]
)
def test_a_table_that_lacks_a_guard_does_not_pass(path: Path, trigger: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"DROP TRIGGER {trigger}")
    connection.close()
    assert broken_into(attacked(path))
