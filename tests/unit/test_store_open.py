"""Opening: a file that is not ours is refused in one sentence and not a byte of it, or beside it, changes."""

# A few seams are counted from inside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from footprint_core.errors import LedgerOpenError
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store import read, schema
from footprint_observe.store.connect import open_reader
from footprint_observe.store.ledger import SqliteLedger


def snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


def pragma(path: Path, name: str) -> Any:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


def made_by_another(path: Path, *, wal: bool = False, application_id: int = 0, schema_sql: str = "") -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    if wal:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA application_id = {application_id}")
    if schema_sql:
        connection.execute(schema_sql)
    connection.close()


def foreign(path: Path) -> None:
    made_by_another(path, schema_sql="CREATE TABLE facts (id INTEGER PRIMARY KEY)")


def foreign_in_wal(path: Path) -> None:
    made_by_another(path, wal=True, schema_sql="CREATE TABLE t (x)")


def foreign_by_id_only(path: Path) -> None:
    made_by_another(path, application_id=7)


def no_database(path: Path) -> None:
    path.write_bytes(b"These are my notes, and not a database.\n" * 100)


def short_text(path: Path) -> None:
    path.write_bytes(b"hello")


def newer(path: Path) -> None:
    asyncio.run(SqliteLedger(path).close())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()


def truncated(path: Path) -> None:
    asyncio.run(SqliteLedger(path).close())
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 4096)


def foreign_after_a_crash(path: Path, *, last_in_file: str = "CREATE TABLE t (x)") -> None:
    connection = sqlite3.connect(path.with_name("copied"), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(last_in_file)
    connection.execute("PRAGMA wal_checkpoint")
    connection.execute("CREATE TABLE u (x)")
    path.write_bytes(path.with_name("copied").read_bytes())
    path.with_name(f"{path.name}-wal").write_bytes(path.with_name("copied-wal").read_bytes())
    connection.close()
    path.with_name("copied").unlink()


def foreign_with_all_of_it_in_its_log(path: Path) -> None:
    foreign_after_a_crash(path, last_in_file="SELECT 1")


BAD = [
    foreign,
    foreign_after_a_crash,
    foreign_with_all_of_it_in_its_log,
    foreign_in_wal,
    foreign_by_id_only,
    no_database,
    short_text,
    newer,
]


@pytest.mark.parametrize("make", BAD)
def test_a_file_that_is_no_ledger_is_refused_and_stays_as_it_is(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "x.db")
    before = snapshot(tmp_path)
    with pytest.raises(LedgerOpenError) as caught:
        SqliteLedger(tmp_path / "x.db")
    assert snapshot(tmp_path) == before
    assert str(tmp_path / "x.db") in str(caught.value)
    assert str(caught.value).count(".") == str(tmp_path / "x.db").count(".") + 1
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("make", BAD)
def test_a_reader_refuses_it_too(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "x.db")
    before = snapshot(tmp_path)
    with pytest.raises(LedgerOpenError):
        open_reader(tmp_path / "x.db")
    assert snapshot(tmp_path) == before


def test_what_another_program_has_only_in_its_log_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE theirs (x)")
    with pytest.raises(LedgerOpenError, match="another program"):
        SqliteLedger(path)
    assert other.execute("SELECT name FROM sqlite_schema").fetchall() == [("theirs",)]
    other.close()


def test_a_broken_ledger_is_refused(tmp_path: Path) -> None:
    truncated(tmp_path / "x.db")
    with pytest.raises(LedgerOpenError, match="SQLITE_"):
        SqliteLedger(tmp_path / "x.db")


def crashed_while_the_log_was_moved(path: Path, pages: int) -> None:
    """What a process leaves that dies when it has moved the first pages of its log into the file."""
    lives = path.with_name("lives.db")
    ledger = SqliteLedger(lives)
    fact = CallTaken(iteration=1, call_id="c" * 2000, tool_name="t")
    for first in range(1, 31):
        ledger.append_inline(
            Batch(run_id="run", segment=1, entries=(Entry(position=first, time=1, fact=fact),))
        )
    path.write_bytes(lives.read_bytes())
    log = lives.with_name("lives.db-wal").read_bytes()
    path.with_name(f"{path.name}-wal").write_bytes(log)
    asyncio.run(ledger.close())
    lives.unlink()
    newest: dict[int, bytes] = {}
    frames = range(32, len(log) - 4119, 24 + 4096)
    for at in frames:
        # The log was filled in advance; what belongs to it has its salt.
        if log[at + 8 : at + 16] == log[16:24]:
            newest[int.from_bytes(log[at : at + 4], "big")] = log[at + 24 : at + 24 + 4096]
    with path.open("r+b") as file:
        for number in sorted(newest)[:pages]:
            file.seek((number - 1) * 4096)
            file.write(newest[number])


@pytest.mark.parametrize("pages", [1, 3, 8])
def test_a_ledger_whose_process_died_while_the_log_was_moved_is_opened(tmp_path: Path, pages: int) -> None:
    crashed_while_the_log_was_moved(tmp_path / "l.db", pages)
    assert len(read.entries(open_reader(tmp_path / "l.db"), "run")) == 30
    ledger = SqliteLedger(tmp_path / "l.db")
    assert len(ledger.entries("run")) == 30
    asyncio.run(ledger.close())
    assert pragma(tmp_path / "l.db", "integrity_check") == "ok"


def test_a_database_of_another_program_in_that_state_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    crashed_while_the_log_was_moved(path, 1)
    with path.open("r+b") as file:
        file.seek(68)
        file.write(bytes(4))
    before = snapshot(tmp_path)
    for opens in (SqliteLedger, open_reader):
        with pytest.raises(LedgerOpenError):
            opens(path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("path", ["a\0b.db", "\ud800.db"])
def test_a_path_no_file_can_have_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(LedgerOpenError, match="none a file can have"):
        SqliteLedger(tmp_path / path)


def test_the_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(LedgerOpenError, match="does not exist; make it first"):
        SqliteLedger(tmp_path / "no" / "l.db")
    assert not (tmp_path / "no").exists()


def test_a_folder_is_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerOpenError, match="is a folder"):
        SqliteLedger(tmp_path)


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="needs a folder where nobody, root included, can write"
)
def test_the_folder_must_be_writable() -> None:
    with pytest.raises(LedgerOpenError, match="The folder /proc/self cannot be written to"):
        SqliteLedger("/proc/self/l.db")


@pytest.mark.parametrize("path", [":memory:", ""])
def test_memory_is_another_ledger(path: str) -> None:
    with pytest.raises(LedgerOpenError, match="MemoryLedger"):
        SqliteLedger(path)


def test_wrong_arguments_fail_where_they_are_written(tmp_path: Path) -> None:
    with pytest.raises(LedgerOpenError, match='"power" or "process"'):
        SqliteLedger(tmp_path / "l.db", durability="forever")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    for seconds in (-1.0, float("nan"), float("inf")):
        with pytest.raises(LedgerOpenError, match="busy_timeout"):
            SqliteLedger(tmp_path / "l.db", busy_timeout=seconds)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_needs_a_file(tmp_path: Path) -> None:
    with pytest.raises(LedgerOpenError, match="There is no ledger file"):
        open_reader(tmp_path / "l.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(LedgerOpenError, match="empty database"):
        open_reader(tmp_path / "empty.db")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.db"]


@pytest.mark.parametrize("make", [Path.touch, made_by_another])
def test_an_empty_file_becomes_a_ledger(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "l.db")
    asyncio.run(SqliteLedger(tmp_path / "l.db").close())
    assert pragma(tmp_path / "l.db", "application_id") == schema.APPLICATION_ID
    assert pragma(tmp_path / "l.db", "user_version") == schema.VERSION


def test_a_file_is_opened_again_with_what_it_holds(tmp_path: Path) -> None:
    fact = CallTaken(iteration=1, call_id="c", tool_name="t")
    for first in (1, 2, 3):
        ledger = SqliteLedger(str(tmp_path / "l.db"))
        entry = Entry(position=first, time=first, fact=fact)
        assert ledger.append_inline(Batch(run_id="run", segment=1, entries=(entry,))) is not None
        asyncio.run(ledger.close())
    assert [entry.position for entry in SqliteLedger(tmp_path / "l.db").entries("run")] == [1, 2, 3]


@pytest.mark.parametrize(("durability", "synchronous"), [("power", 2), ("process", 1)])
def test_the_log_is_on_grown_and_synced_as_asked(tmp_path: Path, durability: Any, synchronous: int) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", durability=durability)
    (opened,) = ledger._by_process.values()
    connection = opened.appender._connection
    assert connection is not None

    def says(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    assert says("journal_mode") == "wal"
    assert says("synchronous") == synchronous
    assert says("secure_delete") == 1
    assert says("busy_timeout") == 0
    assert says("journal_size_limit") == 4 * 1024 * 1024
    assert (tmp_path / "l.db-wal").stat().st_size >= 4 * 1024 * 1024
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    assert {name for (name,) in tables} == {"facts", "vals", "pause_bodies", "decision_totals"}
    asyncio.run(ledger.close())
    assert [path.name for path in tmp_path.iterdir()] == ["l.db"]


def test_the_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = SqliteLedger("l.db")
    monkeypatch.chdir("/")
    assert ledger.path == tmp_path / "l.db"
    assert ledger.decisions("run") == ()
    asyncio.run(ledger.close())


def test_a_name_that_looks_like_an_address_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "what?mode=memory&x=%41#1.db"
    ledger = SqliteLedger(path)
    assert ledger.entries("run") == ()
    asyncio.run(ledger.close())
    assert path.is_file()
