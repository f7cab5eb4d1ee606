"""A file of an older schema becomes one of this release when it is opened, all of it or not at all."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlite_utils import Database

from file_ledger import on_file, select
from footprint_core.errors import LedgerOpenError
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store import migrations, objects, schema
from footprint_observe.store.connect import open_reader
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.verify import Verified, verify
from independent import first_fault
from tampering import real_file

TAKEN = CallTaken(iteration=1, call_id="c", tool_name="t")


def schema_2(db: Database) -> None:
    """A made-up next schema: a column, an index and a table more."""
    db.execute("ALTER TABLE facts ADD COLUMN weight INTEGER")
    db.execute("CREATE INDEX facts_weight ON facts (weight) WHERE weight IS NOT NULL")
    db.create_table("seals", {"id": int, "body": bytes}, pk="id", strict=True)


def schema_3(db: Database) -> None:
    """A made-up schema behind that one."""
    db.execute("ALTER TABLE seals ADD COLUMN note TEXT")


# What a process of the next release does, its step ending as it is told.
NEXT_RELEASE = """
import os, signal, sys, time
from pathlib import Path
from footprint_observe.store import migrations, schema
from footprint_observe.store.ledger import SqliteLedger
path, how = sys.argv[1:]

def schema_2(db):
    db.execute("ALTER TABLE facts ADD COLUMN weight INTEGER")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    with open(path + ".steps", "a") as steps:
        steps.write("x")
    if how == "wait":
        print("begun", flush=True)
        sys.stdin.readline()

migrations.STEPS = (schema_2,)
schema.VERSION = 2
SqliteLedger(path)
print("opened", flush=True)
"""


def process(path: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", NEXT_RELEASE, os.fspath(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def next_release(monkeypatch: pytest.MonkeyPatch, *steps: migrations.Step) -> None:
    monkeypatch.setattr(migrations, "STEPS", steps)
    monkeypatch.setattr(schema, "VERSION", 1 + len(steps))


def made_with(*steps: migrations.Step) -> objects.Objects:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.create(connection)
    for step in steps:
        step(Database(connection))
    schema.renew(connection)
    found = objects.objects_of(connection)
    connection.close()
    return found


def version(path: Path) -> int:
    return int(select(path, "PRAGMA user_version")[0][0])


def test_there_is_a_step_to_every_schema_behind_the_first() -> None:
    assert len(migrations.STEPS) == schema.VERSION - 1
    assert [step.__name__ for step in migrations.STEPS] == [
        f"schema_{n}" for n in range(2, schema.VERSION + 1)
    ]


def test_opening_an_older_file_brings_it_up_to_date_and_keeps_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = real_file(tmp_path / "l.db")
    ledger = SqliteLedger(path)
    before = ledger.entries("a" * 32)
    asyncio.run(ledger.close())
    rows = select(path, "SELECT id, hash FROM facts")
    next_release(monkeypatch, schema_2, schema_3)
    ledger = SqliteLedger(path)
    assert version(path) == 3
    assert ledger.entries("a" * 32) == before
    assert select(path, "SELECT id, hash FROM facts") == rows
    entry = Entry(position=len(before) + 1, time=1, fact=TAKEN)
    assert ledger.append_inline(Batch(run_id="a" * 32, segment=1, entries=(entry,)))
    asyncio.run(ledger.close())
    # A release writes into a new file what its steps leave in an older one.
    monkeypatch.setattr(objects, "made", lambda: made_with(schema_2, schema_3))
    found = verify(path)
    assert isinstance(found, Verified)
    assert found.rows == len(rows) + 1
    assert first_fault(path) is None
    assert [name for (name,) in select(path, "SELECT name FROM _sqlite_migrations ORDER BY id")] == [
        "schema_2",
        "schema_3",
    ]


def test_what_a_step_adds_is_guarded_and_so_is_the_note_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(on_file(tmp_path / "l.db").close())
    next_release(monkeypatch, schema_2)
    asyncio.run(SqliteLedger(tmp_path / "l.db").close())
    connection = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    connection.execute("INSERT INTO seals VALUES (1, x'00')")
    for table in ("seals", "_sqlite_migrations"):
        with pytest.raises(sqlite3.IntegrityError, match=f"{table} is append-only"):
            connection.execute(f"DELETE FROM {table}")
        with pytest.raises(sqlite3.IntegrityError, match=f"{table} is append-only"):
            connection.execute(f"UPDATE {table} SET id = id")
    connection.close()


def test_a_new_file_has_this_schema_and_no_notes_of_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(on_file(tmp_path / "l.db").close())
    assert version(tmp_path / "l.db") == schema.VERSION
    assert select(tmp_path / "l.db", "SELECT name FROM sqlite_schema WHERE name LIKE '%migrations%'") == []


def test_only_the_steps_behind_the_schema_a_file_was_made_with_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_again(db: Database) -> None:
        raise AssertionError(db)

    next_release(monkeypatch, not_again)
    asyncio.run(on_file(tmp_path / "l.db").close())
    assert version(tmp_path / "l.db") == 2
    next_release(monkeypatch, not_again, schema_2)
    asyncio.run(on_file(tmp_path / "l.db").close())
    assert version(tmp_path / "l.db") == 3
    assert select(tmp_path / "l.db", "SELECT count(*) FROM seals") == [(0,)]


def test_a_file_of_this_schema_is_opened_without_a_lock(tmp_path: Path) -> None:
    asyncio.run(on_file(tmp_path / "l.db").close())
    writer = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    asyncio.run(SqliteLedger(tmp_path / "l.db", busy_timeout=0.0).close())
    writer.close()


def test_views_and_triggers_of_the_older_release_give_way_and_those_of_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(on_file(tmp_path / "l.db").close())
    connection = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    connection.execute("DROP VIEW decisions")
    connection.execute("CREATE VIEW decisions AS SELECT 1 AS old")
    connection.execute("DROP TRIGGER facts_no_update")
    connection.execute("CREATE VIEW mine AS SELECT 1 AS one")
    connection.close()
    next_release(monkeypatch, schema_2)
    asyncio.run(SqliteLedger(tmp_path / "l.db").close())
    assert select(tmp_path / "l.db", "SELECT middleware FROM decisions") == []
    assert select(tmp_path / "l.db", "SELECT one FROM mine") == [(1,)]
    assert select(tmp_path / "l.db", "SELECT 1 FROM sqlite_schema WHERE name = 'facts_no_update'") == [(1,)]


def test_a_schema_that_there_never_was_is_refused(tmp_path: Path) -> None:
    asyncio.run(on_file(tmp_path / "l.db").close())
    connection = sqlite3.connect(tmp_path / "l.db")
    connection.execute("PRAGMA user_version = 0")
    connection.close()
    with pytest.raises(LedgerOpenError, match="schema 0, which there never was"):
        SqliteLedger(tmp_path / "l.db")
    assert version(tmp_path / "l.db") == 0


def test_a_step_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = real_file(tmp_path / "l.db")
    dump = select(path, "SELECT type, name, sql FROM sqlite_schema")

    def fails(db: Database) -> None:
        schema_2(db)
        db.execute("INSERT INTO nowhere VALUES ('SECRET')")

    with monkeypatch.context() as patched:
        next_release(patched, fails)
        with pytest.raises(LedgerOpenError, match="from schema 1 to 2") as caught:
            SqliteLedger(path)
        assert "SECRET" not in repr(caught.value.__context__)
    assert version(path) == 1
    assert select(path, "SELECT type, name, sql FROM sqlite_schema") == dump
    asyncio.run(SqliteLedger(path).close())
    assert isinstance(verify(path), Verified)


def test_a_process_that_dies_in_a_step_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = real_file(tmp_path / "l.db")
    dump = select(path, "SELECT type, name, sql FROM sqlite_schema")
    died = process(path, "kill")
    died.communicate(timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert version(path) == 1
    assert select(path, "SELECT type, name, sql FROM sqlite_schema") == dump
    assert isinstance(verify(path), Verified)
    done = process(path, "at once")
    assert "opened" in done.communicate(timeout=60)[0]
    assert version(path) == 2


def test_of_two_processes_that_open_it_one_takes_the_step(tmp_path: Path) -> None:
    path = real_file(tmp_path / "l.db")
    first = process(path, "wait")
    assert first.stdout is not None
    assert first.stdout.readline() == "begun\n"
    second = process(path, "at once")
    assert version(path) == 1
    assert "opened" in first.communicate("go\n", timeout=60)[0]
    assert "opened" in second.communicate(timeout=60)[0]
    assert (first.returncode, second.returncode) == (0, 0)
    assert version(path) == 2
    assert Path(f"{path}.steps").read_text() == "x"


def test_reading_an_older_file_says_what_to_do_and_a_newer_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = real_file(tmp_path / "l.db")
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        next_release(patched, schema_2)
        with pytest.raises(LedgerOpenError, match=r"older release \(schema 1, this one reads 2\); copy"):
            open_reader(path)
        with pytest.raises(LedgerOpenError, match="older release"):
            verify(path)
        assert path.read_bytes() == before
        asyncio.run(SqliteLedger(path).close())
    for opens in (open_reader, SqliteLedger):
        with pytest.raises(LedgerOpenError, match=r"newer release \(schema 2, this one knows 1\); update"):
            opens(path)
