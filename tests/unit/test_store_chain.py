"""The chain, recomputed from the file's own columns by code that shares nothing with the store."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from footprint_core.errors import LedgerWriteError
from footprint_core.facts import CallTaken, Decided, Fact, SegmentEnded, ToolFinished, TraceRef
from footprint_core.ledger import Batch, Entry
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store import hashing, schema
from footprint_observe.store.ledger import SqliteLedger


def batch(run_id: str, *facts: Fact, first: int = 1) -> Batch:
    entries = tuple(
        Entry(position=place, time=1_700_000_000_123_456, fact=fact)
        for place, fact in enumerate(facts, first)
    )
    return Batch(
        run_id=run_id, segment=1, entries=entries, trace=TraceRef(trace_id="a" * 32, span_id="b" * 16)
    )


def facts() -> tuple[Fact, ...]:
    return (
        CallTaken(iteration=1, call_id='call-\u2028\x1f\x7f"\\é\U0001f600', tool_name="søk"),
        Decided(
            middleware="ceiling",
            moment="after-tool",
            iteration=1,
            outcome="allow",
            changed=True,
            why="too\nhigh",
            before={"z": 1.0, "a": [2**70]},
            after={"password": "correct horse"},
        ),
        ToolFinished(iteration=1, call_id="c", tool_name="t", failed=False, duration_us=7, result="x"),
        SegmentEnded(outcome="answered", iterations=1, input_tokens=1, output_tokens=2, duration_us=3),
    )


def rows(path: Path) -> list[dict[str, Any]]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    try:
        stored = [row[1] for row in connection.execute("PRAGMA table_info(facts)")]
        return [dict(row) for row in connection.execute(f"SELECT {', '.join(stored)} FROM facts ORDER BY id")]
    finally:
        connection.close()


def values(path: Path) -> list[tuple[int, str, str, bytes]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT fact_id, field, json, salt FROM vals").fetchall()
    finally:
        connection.close()


def recomputed(row: dict[str, Any], before: bytes) -> bytes:
    document = {k: v for k, v in row.items() if v is not None and k not in {"id", "prev_hash", "hash"}}
    # For ASCII keys, texts and whole numbers within 2^53, this is RFC 8785.
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"footprint:row:1\n" + before + text.encode()).digest()


def written(path: Path) -> SqliteLedger:
    ledger = SqliteLedger(path)
    for run in ("run-1", "run-2"):
        ledger.append_inline(batch(run, *facts()[:2]))
    for run in ("run-1", "run-2"):
        ledger.append_inline(batch(run, *facts()[2:], first=3))
    return ledger


def test_each_run_is_one_chain_over_the_columns_of_the_file(tmp_path: Path) -> None:
    ledger = written(tmp_path / "l.db")
    heads: dict[str, bytes] = {}
    found = rows(tmp_path / "l.db")
    assert [row["id"] for row in found] == list(range(1, 9))
    for row in found:
        before = heads.get(row["run_id"], bytes(32))
        assert row["prev_hash"] == before
        assert row["hash"] == recomputed(row, before)
        heads[row["run_id"]] = row["hash"]
    assert heads["run-1"] != heads["run-2"]
    asyncio.run(ledger.close())


def test_every_value_is_committed_to_by_its_row(tmp_path: Path) -> None:
    ledger = written(tmp_path / "l.db")
    committed = {
        (row["id"], field): digest
        for row in rows(tmp_path / "l.db")
        for field, digest in json.loads(row["commitments"] or "{}").items()
    }
    found = values(tmp_path / "l.db")
    assert {(fact_id, field) for fact_id, field, _, _ in found} == set(committed)
    assert len({salt for _, _, _, salt in found}) == len(found) == 8
    for fact_id, field, text, salt in found:
        assert len(salt) == 16
        name = field.encode()
        data = b"footprint:value:1\n" + salt + len(name).to_bytes(4, "big") + name + text.encode()
        assert hashlib.sha256(data).hexdigest() == committed[fact_id, field]
    asyncio.run(ledger.close())


def test_equal_values_have_different_commitments(tmp_path: Path) -> None:
    ledger = written(tmp_path / "l.db")
    found = [row["commitments"] for row in rows(tmp_path / "l.db") if row["commitments"]]
    assert len(set(found)) == len(found) == 4
    asyncio.run(ledger.close())


def test_a_row_verifies_without_the_values_that_were_erased(tmp_path: Path) -> None:
    asyncio.run(written(tmp_path / "l.db").close())
    connection = sqlite3.connect(tmp_path / "l.db", isolation_level=None)
    connection.execute("DROP TRIGGER vals_no_delete")
    connection.execute("DELETE FROM vals")
    connection.close()
    before = bytes(32)
    for row in rows(tmp_path / "l.db"):
        if row["run_id"] == "run-1":
            before = recomputed(row, before)
            assert row["hash"] == before


@pytest.mark.parametrize("column", ["kind", "changed", "commitments", "recorded_us", "extra", "redacted"])
def test_a_column_that_was_edited_no_longer_verifies(tmp_path: Path, column: str) -> None:
    asyncio.run(written(tmp_path / "l.db").close())
    edited = 0
    for row in rows(tmp_path / "l.db"):
        if row[column] is not None:
            other = row | {column: row[column] + (1 if isinstance(row[column], int) else " ")}
            assert recomputed(other, row["prev_hash"]) != row["hash"]
            edited += 1
    assert edited


def test_the_hash_is_over_every_stored_column_there_is(tmp_path: Path) -> None:
    asyncio.run(written(tmp_path / "l.db").close())
    stored = set(rows(tmp_path / "l.db")[0]) - {"id", "prev_hash", "hash"}
    assert list(schema.HASHED_COLUMNS) == sorted(stored)


def rfc_8785(text: str) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return "".join(short.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text)


def test_text_is_escaped_as_rfc_8785_says_for_every_character() -> None:
    every = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x10000), 0x10000, 0x1F600, 0x10FFFF)))
    columns: list[str | int | None] = [None] * len(schema.HASHED_COLUMNS)
    columns[schema.HASHED_COLUMNS.index("kind")] = every
    assert hashing.document(tuple(columns)) == f'{{"kind":"{rfc_8785(every)}"}}'.encode()


def test_a_whole_number_beyond_2_53_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    good = CallTaken(iteration=2**53 - 1, call_id="c", tool_name="t")
    bad = CallTaken(iteration=2**53, call_id="c", tool_name="t")
    with pytest.raises(LedgerWriteError) as caught:
        ledger.append_inline(batch("run", good, bad))
    assert (caught.value.run_id, caught.value.segment) == ("run", 1)
    assert rows(tmp_path / "l.db") == []
    ledger.append_inline(batch("run", good))
    assert rows(tmp_path / "l.db")[0]["iteration"] == 2**53 - 1
    asyncio.run(ledger.close())


def test_a_text_no_file_can_hold_fails_the_batch_and_is_not_in_the_error(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db", redact=Redaction.none())
    bad = ToolFinished(
        iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result="SECRET\ud800"
    )
    with pytest.raises(LedgerWriteError) as caught:
        ledger.append_inline(batch("run", bad))
    assert "could not be encoded (UnicodeEncodeError)" in str(caught.value)
    assert "disk" not in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        assert "SECRET" not in repr(error)
        assert "SECRET" not in repr(vars(error))
        error = error.__cause__ or error.__context__
    assert ledger.entries("run") == ()
    asyncio.run(ledger.close())


def test_columns_that_are_null_are_not_in_the_document() -> None:
    columns = tuple("x" if name == "kind" else None for name in schema.HASHED_COLUMNS)
    assert msgspec.json.decode(hashing.document(columns)) == {"kind": "x"}
