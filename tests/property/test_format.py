"""The file format holds for any value: documents are canonical, values come back, changes are found."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from erasing import Erasing
from footprint_core.facts import Decided, Fact, ModelReplied, ToolFinished, ToolIntended
from footprint_core.ledger import Batch, Entry
from footprint_core.messages import ToolCall
from footprint_observe.store.hashing import document
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.schema import HASHED_COLUMNS
from footprint_observe.store.verify import Fault, Verified, verify
from independent import first_fault
from tampering import real_file, tampered, unguarded

AWKWARD = st.sampled_from(
    [
        "",
        ".",
        "\\",
        '"',
        "...",
        "\x00",
        "\x1f",
        "\x7f",
        "\u2028",
        "\ufeff",
        "\U0001f600",
        "0",
        "card",
        "é",
        "{",
        "[1]",
    ]
)
TEXT = AWKWARD | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INTEGERS = {
    "after_approval",
    "changed",
    "duration_us",
    "iteration",
    "position",
    "recorded_us",
    "segment",
    "shadow",
}
KEY = st.sampled_from(["card", "a", "b.c", "0", "...", "\\x"]) | TEXT
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEY, inner, max_size=3),
    max_leaves=8,
)
WITHIN = JSON | JSON.map(json.dumps) | st.fixed_dictionaries({"in": JSON.map(json.dumps), "card": JSON})
STEP = st.sampled_from(["*", "**", "card", "a", "0", "..."])
PATH = st.lists(STEP.filter(lambda step: "." not in step), min_size=1, max_size=3).map(".".join)
DECLARED = st.lists(
    st.sampled_from(["before", "result", "args", "calls", "**", "*"]).flatmap(
        lambda field: PATH.map(lambda path: f"{field}.{path}")
    ),
    min_size=1,
    max_size=3,
)


@given(st.data())
@settings(max_examples=200)
def test_the_document_of_a_row_is_that_of_a_library_for_rfc_8785(data: st.DataObject) -> None:
    whole = st.none() | st.integers(-(2**53) + 1, 2**53 - 1)
    row = {
        column: data.draw(whole if column in INTEGERS else st.none() | TEXT, label=column)
        for column in HASHED_COLUMNS
    }
    there = {column: value for column, value in row.items() if value is not None}
    assert document(tuple(row.values())) == rfc8785.dumps(there)


def facts(before: Any, args: Any, result: Any, asked: str) -> tuple[Fact, ...]:
    return (
        Decided(
            middleware="m",
            moment="before-tool",
            iteration=1,
            outcome="allow",
            changed=True,
            why="w",
            before=before,
            after=args,
        ),
        ToolIntended(iteration=1, call_id="c", tool_name="t", args=args),
        ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result=result),
        ModelReplied(
            iteration=1,
            call_count=1,
            stop_reason="tool_use",
            duration_us=1,
            route="tool-calls",
            calls=(ToolCall(id="c", name="t", args_json=asked),),
        ),
    )


SPACED = JSON.map(lambda value: json.dumps(value, indent=1)) | JSON.map(lambda v: f" {json.dumps(v)}\n")


@given(WITHIN, WITHIN, WITHIN, SPACED | TEXT, DECLARED, st.randoms(use_true_random=False))
@settings(max_examples=150)
@example({"a.b": {"card": 1}, "a": {"b": {"card": 2}}}, {}, "", "", ["before.**.card"], None)
def test_any_value_comes_back_whatever_is_declared_erasable_and_verifies_without_what_is_erased(
    before: Any, args: Any, result: Any, asked: str, declared: list[str], random: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "l.db"
        ledger = SqliteLedger(path, redact=Erasing(*declared), durability="process")
        given_facts = facts(before, args, result, asked)
        entries = tuple(Entry(position=at, time=at, fact=fact) for at, fact in enumerate(given_facts, 1))
        ledger.append_inline(Batch(run_id="run", segment=1, entries=entries))
        assert [entry.fact for entry in ledger.entries("run")] == list(given_facts)
        assert isinstance(verify(path), Verified)
        assert first_fault(path) is None
        connection = sqlite3.connect(path, isolation_level=None)
        fields = connection.execute("SELECT fact_id, field FROM vals").fetchall()
        gone = [one for one in fields if random is not None and random.random() < 0.3]
        connection.close()
        with unguarded(path) as hands:
            hands.executemany("DELETE FROM vals WHERE fact_id = ? AND field = ?", gone)
        found = verify(path)
        assert isinstance(found, Verified)
        assert (found.values, found.erased) == (len(fields) - len(gone), len(gone))
        kept = ledger.entries("run")
        assert {(entry.position, field) for entry in kept for field, _ in entry.marks} == set(gone)
        asyncio.run(ledger.close())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_file(tmp_path_factory.mktemp("whole") / "l.db")


@given(st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_one_changed_cell_is_found_at_its_row_or_before(whole: Path, random: Any) -> None:
    connection = sqlite3.connect(whole)
    table, key = random.choice([("facts", "id"), ("vals", "fact_id")])
    columns = connection.execute(f"SELECT name, type FROM pragma_table_info('{table}')").fetchall()
    column, kind = random.choice(columns)
    rows = connection.execute(f"SELECT {key}, {column} FROM {table} ORDER BY {key}").fetchall()
    at = random.randrange(len(rows))
    connection.close()
    row_id, old = rows[at]
    new = changed(old, kind, random)
    where = (
        f"rowid = {row_id}"
        if table == "facts"
        else "(fact_id, field) IN (SELECT fact_id, field FROM vals LIMIT 1 OFFSET ?)"
    )
    values = (new,) if table == "facts" else (new, at)

    def change(connection: sqlite3.Connection) -> None:
        try:
            assert connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", values).rowcount == 1
        except sqlite3.IntegrityError:
            # A key that another row has: the file itself refuses it.
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (beyond(kind), *values[1:]))

    with tempfile.TemporaryDirectory() as folder:
        path = tampered(whole, Path(folder) / "l.db", change)
        found = verify(path)
        if column == "fact_id":
            # The row it was of is one whose value is gone; it is found where it is now.
            assert isinstance(found, Fault)
        else:
            assert isinstance(found, Fault), (table, column)
            assert found.row is not None
            assert found.row <= row_id or column == "id"


def changed(old: object, kind: str, random: Any) -> object:
    if isinstance(old, int):
        return old + random.choice([-1, 1, 2**40])
    if isinstance(old, bytes):
        at = random.randrange(len(old))
        return old[:at] + bytes([old[at] ^ (1 << random.randrange(8))]) + old[at + 1 :]
    if isinstance(old, str) and old:
        at = random.randrange(len(old))
        return old[:at] + chr(ord(old[at]) ^ 1) + old[at + 1 :]
    return 0 if kind == "INTEGER" else b"" if kind == "BLOB" else "x"


def beyond(kind: str) -> object:
    return 10**6 if kind == "INTEGER" else "another"


def test_the_order_of_keys_is_no_part_of_what_a_document_is() -> None:
    columns = tuple(str(at) if column not in INTEGERS else at for at, column in enumerate(HASHED_COLUMNS))
    assert list(msgspec.json.decode(document(columns))) == sorted(HASHED_COLUMNS)
