"""No other program can rewrite or delete a row, through any statement and any key, with default settings."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from footprint_core.facts import (
    Decided,
    Fact,
    PauseAnswered,
    PauseClosed,
    PauseOpened,
    RunAbandoned,
    SegmentEnded,
)
from footprint_core.ledger import Batch, Entry, PauseBody
from footprint_observe.keyring import KeyRing
from footprint_observe.store.guards import base_tables, guards, order_guards, unique_keys
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.totals import SUMMING

ATTACK = """
import json, sqlite3, sys
path, statements = sys.argv[1], json.load(sys.stdin)
connection = sqlite3.connect(path)
out = []
for statement in statements:
    try:
        connection.execute(statement)
        connection.commit()
        out.append("done")
    except sqlite3.Error as error:
        connection.rollback()
        out.append(str(error))
print(json.dumps(out))
"""


def attacked(path: Path, statements: list[str]) -> list[str]:
    """What became of each statement in another process with default pragmas."""
    done = subprocess.run(
        [sys.executable, "-c", ATTACK, os.fspath(path)],
        input=json.dumps(statements),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answers = json.loads(done.stdout)
    assert len(answers) == len(statements)
    return [str(answer) for answer in answers]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = SqliteLedger(tmp_path / "l.db", keys=KeyRing.of({"k": bytes(32)}))
    entries = (
        Entry(
            position=1,
            time=1,
            fact=Decided(
                middleware="m", moment="input", iteration=0, outcome="deny", why="no", detail={"a": 1}
            ),
        ),
        Entry(
            position=2,
            time=2,
            fact=PauseOpened(
                pause_id="p",
                pause_kind="ask",
                iteration=1,
                call_id="c",
                tool_name="t",
                salt="00",
                digest="11",
            ),
        ),
    )
    body = PauseBody(pause_id="p", checkpoint={"version": 1})
    ledger.append_inline(Batch(run_id="run", segment=1, entries=entries, pause=body))
    asyncio.run(ledger.close())
    return tmp_path / "l.db"


def opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def dump(path: Path) -> list[str]:
    connection = opened(path)
    try:
        return list(connection.iterdump())
    finally:
        connection.close()


def columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def collisions(path: Path) -> list[str]:
    """For every table, every unique key and every row: statements that put another row in its place."""
    connection = opened(path)
    found: list[str] = []
    for table in base_tables(connection):
        names = columns(connection, table)
        keys = unique_keys(connection, table)
        assert keys
        rows = connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
        for row in rows:
            values = dict(zip(names, row, strict=True))
            for key in keys:
                other = {
                    name: value if name in key else (value + 1000 if isinstance(value, int) else value)
                    for name, value in values.items()
                }
                if table == "facts" and "run_id" not in key:
                    other["run_id"] = "another"
                if table == "facts" and "id" not in key:
                    # Without the id of the row in its way, the way a program that does not know it would.
                    del other["id"]
                listed = ", ".join(other)
                given = ", ".join(map(literal, other.values()))
                found += [
                    f"{verb} INTO {table} ({listed}) VALUES ({given})"
                    for verb in ("INSERT OR REPLACE", "REPLACE", "INSERT")
                ]
                same = " AND ".join(f"{name} = {literal(values[name])}" for name in key)
                found.append(
                    f"INSERT INTO {table} ({listed}) VALUES ({given}) "
                    f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {names[-1]} = {names[-1]}"
                )
                found.append(f"DELETE FROM {table} WHERE {same}")
                for name in names:
                    found.append(f"UPDATE {table} SET {name} = {name} WHERE {same}")
                    found.append(f"UPDATE OR REPLACE {table} SET {name} = {literal(values[name])}")
        if rows:
            found.append(f"DELETE FROM {table}")
    connection.close()
    return found


def test_every_table_and_all_their_keys_are_known(path: Path) -> None:
    connection = opened(path)
    assert base_tables(connection) == ("decision_totals", "facts", "pause_bodies", "vals")
    assert unique_keys(connection, "facts") == (("id",), ("run_id", "position"))
    assert unique_keys(connection, "vals") == (("fact_id", "field"),)
    assert unique_keys(connection, "pause_bodies") == (("pause_id",),)
    triggers = {row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE type = 'trigger'")}
    assert triggers == {*guards(connection), *order_guards(), SUMMING.strip()}
    connection.close()


def test_another_process_can_put_nothing_in_the_place_of_a_row(path: Path) -> None:
    statements = collisions(path)
    assert len(statements) > 300
    before = dump(path)
    for statement, answer in zip(statements, attacked(path, statements), strict=True):
        assert answer.startswith("footprint: "), statement
        assert "is append-only; " in answer, statement
    assert dump(path) == before


def test_a_key_spelled_in_another_type_is_the_same_key(path: Path) -> None:
    before = dump(path)
    row = "'run', 1, {position}, 'decision', 1, zeroblob(32), zeroblob(32)"
    statements = [
        "INSERT OR REPLACE INTO facts (id, run_id, segment, position, kind, recorded_us, prev_hash, hash) "
        f"VALUES ({key}, {row.format(position=position)})"
        for key, position in (("'1'", 99), ("1.0", 99), ("NULL", "'1'"), ("NULL", "2.0"), ("-1", 1))
    ]
    statements += [
        f"INSERT OR REPLACE INTO vals VALUES ({key}, 'why', 'null', zeroblob(16))" for key in ("'1'", "1.0")
    ]
    assert all("append-only" in answer for answer in attacked(path, statements))
    assert dump(path) == before


def test_a_new_row_is_still_taken(path: Path) -> None:
    insert = (
        "INSERT OR REPLACE INTO facts (run_id, segment, position, kind, recorded_us, prev_hash, hash) "
        "VALUES ('run', 1, 3, 'note', 1, zeroblob(32), zeroblob(32))"
    )
    assert attacked(path, [insert]) == ["done"]


@pytest.mark.parametrize(
    "insert",
    [
        # Values where the next row's would stand, and on a row that has none of that name.
        "INSERT INTO vals SELECT max(id) + 1, 'system', '\"x\"', zeroblob(16) FROM facts",
        "INSERT INTO vals VALUES (1, 'decided_by', '\"cfo@ops\"', zeroblob(16))",
        "INSERT INTO vals VALUES (1, 'before', '1', zeroblob(16))",
        """INSERT INTO vals VALUES (1, 'detail":"x","why', '1', zeroblob(16))""",
        "INSERT INTO vals VALUES (99, 'why', '1', zeroblob(16))",
        # Bodies of a pause that was never opened, or not in that run.
        "INSERT INTO pause_bodies VALUES ('q', 'run', 'k', x'00', x'00')",
        "INSERT INTO pause_bodies VALUES ('p', 'another', 'k', x'00', x'00')",
        # A row behind which no other has a place.
        *(
            "INSERT INTO facts (id, run_id, segment, position, kind, recorded_us, prev_hash, hash) "
            f"VALUES ({key}, 'other', 1, 1, 'note', 1, zeroblob(32), zeroblob(32))"
            for key in (9223372036854775807, 5)
        ),
    ],
)
def test_a_stray_row_is_refused_and_appending_goes_on(path: Path, insert: str) -> None:
    before = dump(path)
    (answer,) = attacked(path, [insert])
    assert answer.startswith("footprint: "), answer
    assert "is append-only" in answer
    assert dump(path) == before
    ledger = SqliteLedger(path)
    fact = Decided(middleware="m", moment="input", iteration=0, outcome="deny", why="no")
    assert ledger.append_inline(
        Batch(run_id="run", segment=1, entries=(Entry(position=3, time=3, fact=fact),))
    )
    asyncio.run(ledger.close())


@pytest.mark.parametrize(
    "end",
    [
        PauseAnswered(
            pause_id="p", pause_kind="ask", answer="approved", tool_name="t", call_id="c", paused_us=1
        ),
        PauseClosed(pause_id="p", reason="expired", tool_name="t", call_id="c"),
        RunAbandoned(by="dana", reason="old"),
    ],
)
def test_a_body_goes_with_what_ends_its_pause_and_never_comes_back(path: Path, end: Fact) -> None:
    taken = "DELETE FROM pause_bodies"
    back = "INSERT INTO pause_bodies VALUES ('p', 'run', 'k', x'00', x'00')"
    (answer,) = attacked(path, [taken])
    assert answer == "footprint: pause_bodies is append-only; a body goes with its answer"
    ledger = SqliteLedger(path)
    # The end of a pause of another run, and of a segment, is none of this one.
    others = (
        ("other", 1, end),
        ("run", 3, PauseClosed(pause_id="q", reason="expired", tool_name="t", call_id="c")),
        ("run", 4, abandoned_segment()),
    )
    for run_id, position, fact in others:
        entries = (Entry(position=position, time=3, fact=fact),)
        asyncio.run(ledger.append(Batch(run_id=run_id, segment=1, entries=entries)))
        assert attacked(path, [taken]) == [answer]
    asyncio.run(ledger.append(Batch(run_id="run", segment=1, entries=(Entry(position=5, time=3, fact=end),))))
    asyncio.run(ledger.close())
    assert not [line for line in dump(path) if line.startswith('INSERT INTO "pause_bodies"')]
    assert attacked(path, [back]) == [
        "footprint: pause_bodies is append-only; a body belongs to an open pause"
    ]


def abandoned_segment() -> SegmentEnded:
    """What closes a segment whose process died."""
    return SegmentEnded(outcome="abandoned", iterations=1, input_tokens=0, output_tokens=0, duration_us=1)


def test_views_take_no_writes(path: Path) -> None:
    connection = opened(path)
    views = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
    connection.close()
    assert len(views) == 8
    answers = attacked(path, [f"DELETE FROM {view}" for view in views])
    assert all("cannot modify" in answer for answer in answers)


def test_a_table_that_is_added_later_is_guarded_through_all_its_keys() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(
        "CREATE TABLE later (name TEXT PRIMARY KEY, a, b, c, UNIQUE (a, b)) STRICT".replace(
            "a, b, c", "a TEXT, b TEXT, c TEXT"
        )
    )
    connection.execute("CREATE UNIQUE INDEX later_c ON later (c)")
    assert unique_keys(connection, "later") == (("a", "b"), ("c",), ("name",), ("rowid",))
    for guard in guards(connection):
        connection.execute(guard)
    connection.execute("INSERT INTO later VALUES ('n', 'a', 'b', 'c')")
    for row in (
        "1, 'x', 'x', 'x', 'x'",
        "2, 'n', 'x', 'x', 'x'",
        "3, 'x', 'a', 'b', 'x'",
        "4, 'x', 'x', 'x', 'c'",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="later is append-only"):
            connection.execute(f"INSERT OR REPLACE INTO later (rowid, name, a, b, c) VALUES ({row})")
    connection.execute("INSERT INTO later VALUES ('m', 'a', 'c', NULL)")
    connection.close()
