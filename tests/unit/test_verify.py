"""A file that was changed in any way is told, by its first row that does not follow."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from footprint_core.errors import LedgerOpenError, LedgerReadError
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.hashing import commitment, value_prefix
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.schema import HASHED_COLUMNS
from footprint_observe.store.verify import Fault, Verified, heads, verify
from independent import first_fault
from samples import FULL
from tampering import real_file, rehashed, tampered

ROWS = 3 * len(FULL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_file(tmp_path_factory.mktemp("whole") / "l.db")


@pytest.fixture(scope="module")
def summed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_file(tmp_path_factory.mktemp("summed") / "l.db", decisions=1500)


def fault(path: Path, run_id: str | None = None, level: int = 2) -> Fault:
    found = verify(path, run_id, level=2 if level > 1 else 1)
    assert isinstance(found, Fault), found
    assert "because" not in found.why
    return found


def test_a_file_as_it_was_written_follows(whole: Path) -> None:
    found = verify(whole)
    assert isinstance(found, Verified)
    connection = sqlite3.connect(whole)
    (values,) = connection.execute("SELECT count(*) FROM vals").fetchone()
    connection.close()
    assert (found.rows, found.runs, found.values, found.erased) == (ROWS, 3, values, 0)
    assert verify(whole, level=1) == Verified(rows=ROWS, runs=3, values=0, erased=0)
    of_run = verify(whole, "b" * 32)
    assert isinstance(of_run, Verified)
    assert (of_run.rows, of_run.runs, of_run.values) == (ROWS // 3, 1, values // 3)
    assert verify(whole, "none") == Verified(rows=0, runs=0, values=0, erased=0)
    assert first_fault(whole) is None


@pytest.mark.parametrize("column", [*HASHED_COLUMNS, "prev_hash", "hash"])
def test_a_column_of_any_row_that_was_changed_is_found_at_that_row(
    whole: Path, tmp_path: Path, column: str
) -> None:
    def changed(row_id: int) -> Path:
        return tampered(
            whole,
            tmp_path / f"{row_id}.db",
            f"UPDATE facts SET {column} = CASE typeof({column}) WHEN 'integer' THEN {column} + 1007 "
            f"WHEN 'blob' THEN randomblob(32) WHEN 'text' THEN {column} || ' ' "
            f"ELSE CASE '{column}' IN (SELECT name FROM pragma_table_info('facts') WHERE type = 'TEXT') "
            f"WHEN 1 THEN '' ELSE 0 END END WHERE id = {row_id}",
        )

    connection = sqlite3.connect(whole)
    query = f"SELECT min(id), max(id) FROM facts WHERE {column} IS NOT NULL"
    ids = {*connection.execute(query).fetchone(), 1, ROWS // 2, ROWS} - {None}
    connection.close()
    for row_id in ids:
        path = changed(row_id)
        for level in (1, 2):
            assert fault(path, level=level).row == row_id
        assert first_fault(path) == row_id


@pytest.mark.parametrize(
    ("tamper", "why"),
    [
        ("UPDATE vals SET json = '1' WHERE fact_id = 7 AND field = 'before'", "'before' is not the one"),
        (
            "UPDATE vals SET json = json || ' ' WHERE fact_id = 7 AND field = 'before'",
            "'before' is not the one",
        ),
        ("UPDATE vals SET salt = zeroblob(16) WHERE fact_id = 7 AND field = 'why'", "'why' is not the one"),
        (
            "UPDATE vals SET json = '1' WHERE fact_id = 7 AND field = 'after.zulu'",
            "'after.zulu' is not the one",
        ),
        (
            "UPDATE vals SET json = '1' WHERE fact_id = 7 AND field = 'after.zulu.3'",
            "'after.zulu.3' is not the",
        ),
        ("UPDATE vals SET field = 'x' WHERE fact_id = 7 AND field = 'why'", "commits to no value 'x'"),
        ("INSERT INTO vals VALUES (7, 'x.y', '1', zeroblob(16))", "commits to no value 'x.y'"),
        ("INSERT INTO vals SELECT 20, field, json, salt FROM vals WHERE fact_id = 7", "commits to no value"),
    ],
)
def test_a_value_that_was_changed_added_or_moved_is_found(
    whole: Path, tmp_path: Path, tamper: str, why: str
) -> None:
    connection = sqlite3.connect(whole)
    (decided,) = connection.execute("SELECT min(id) FROM facts WHERE kind = 'decision'").fetchone()
    connection.close()
    tamper = tamper.replace("= 7", f"= {decided}").replace("(7,", f"({decided},")
    path = tampered(whole, tmp_path / "l.db", tamper)
    found = fault(path)
    assert why in found.why
    assert found.row == (20 if "SELECT 20" in tamper else decided) == first_fault(path)
    assert isinstance(verify(path, level=1), Verified)


def test_a_value_of_no_row_is_found(whole: Path, tmp_path: Path) -> None:
    for row_id in (0, -5, ROWS + 1):
        path = tampered(
            whole, tmp_path / "l.db", f"INSERT INTO vals VALUES ({row_id}, 'why', '1', zeroblob(16))"
        )
        assert fault(path) == Fault(
            row=row_id, run_id=None, position=None, why="The file has a value of it, and not the row."
        )


def test_a_value_that_is_gone_is_counted_and_the_rows_follow(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "DELETE FROM vals WHERE field = 'after.zulu'")
    found, before = verify(path), verify(whole)
    assert isinstance(found, Verified)
    assert isinstance(before, Verified)
    assert (found.values, found.erased) == (before.values - 3, 3)
    assert before.first_erased is None
    assert found.first_erased == min(row for row, fields in commitments(whole) if "after.zulu" in fields)
    # What was cut out of it, and what held it, may go too.
    tampered(path, tmp_path / "2.db", "DELETE FROM vals WHERE field IN ('after', 'after.zulu.3')")
    found = verify(tmp_path / "2.db")
    assert isinstance(found, Verified)
    assert found.erased == 9


def test_a_row_that_is_missing_is_named_by_the_row_behind_it(whole: Path, tmp_path: Path) -> None:
    for row_id in (1, 2, 30, ROWS - 1):
        path = tampered(whole, tmp_path / f"{row_id}.db", f"DELETE FROM facts WHERE id = {row_id}")
        found = fault(path, level=1)
        assert (found.row, found.why) == (row_id + 1, f"The row {row_id} before it is missing.")
        assert first_fault(path) == row_id + 1


def test_ids_closed_up_behind_a_missing_row_do_not_hide_it(whole: Path, tmp_path: Path) -> None:
    def remove(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM vals WHERE fact_id = 30")
        connection.execute("DELETE FROM facts WHERE id = 30")
        for row_id in range(31, ROWS + 1):
            connection.execute(f"UPDATE facts SET id = {row_id - 1} WHERE id = {row_id}")
            connection.execute(f"UPDATE vals SET fact_id = {row_id - 1} WHERE fact_id = {row_id}")

    path = tampered(whole, tmp_path / "l.db", remove)
    connection = sqlite3.connect(whole)
    run_id, position = connection.execute("SELECT run_id, position FROM facts WHERE id = 30").fetchone()
    (behind,) = connection.execute(
        "SELECT id - 1 FROM facts WHERE run_id = ? AND position = ?", (run_id, position + 1)
    ).fetchone()
    connection.close()
    found = fault(path)
    assert (found.row, found.run_id, found.position) == (behind, run_id, position + 1)
    assert f"behind a row with position {position - 1}" in found.why
    assert fault(path, run_id).row == behind
    assert isinstance(verify(path, next(r for r in ("a" * 32, "b" * 32) if r != run_id)), Verified)


def test_two_rows_that_were_swapped_are_found(whole: Path, tmp_path: Path) -> None:
    def swap(connection: sqlite3.Connection) -> None:
        for table, column in (("facts", "id"), ("vals", "fact_id")):
            for old, new in ((9, 10_000), (12, 9), (10_000, 12)):
                connection.execute(f"UPDATE {table} SET {column} = {new} WHERE {column} = {old}")

    path = tampered(whole, tmp_path / "l.db", swap)
    assert fault(path).row == 9 == first_fault(path)
    # Of one run, too, the order of its rows in the file counts.
    assert fault(path, "b" * 32).row == 10
    assert isinstance(verify(path, "a" * 32), Verified)


def test_a_changed_row_with_a_hash_that_fits_is_given_away_by_the_row_behind_it(
    whole: Path, tmp_path: Path
) -> None:
    def forge(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE facts SET tool_name = 'x' WHERE id = 40")
        rehashed(connection, 40, follow=False)

    path = tampered(whole, tmp_path / "l.db", forge)
    found = fault(path)
    connection = sqlite3.connect(path)
    (behind,) = connection.execute(
        "SELECT b.id FROM facts AS a JOIN facts AS b ON b.run_id = a.run_id AND b.position = a.position + 1 "
        "WHERE a.id = 40"
    ).fetchone()
    connection.close()
    assert found.row == behind == first_fault(path)
    assert "The hash it holds of the row before it" in found.why


def test_what_cannot_be_seen_from_the_file_is_told_by_a_head_that_was_kept(
    whole: Path, tmp_path: Path
) -> None:
    kept = {head.run_id: head for head in heads(whole)}

    def rewrite(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE facts SET tool_name = 'x' WHERE id = 40")
        rehashed(connection, 40, follow=True)

    def cut(connection: sqlite3.Connection) -> None:
        connection.execute(f"DELETE FROM vals WHERE fact_id = {ROWS}")
        connection.execute(f"DELETE FROM facts WHERE id = {ROWS}")

    for name, tamper in (("rewritten", rewrite), ("cut", cut)):
        path = tampered(whole, tmp_path / f"{name}.db", tamper)
        assert isinstance(verify(path), Verified)
        assert first_fault(path) is None
        now = {head.run_id: head for head in heads(path)}
        assert sum(now[run] != head for run, head in kept.items()) == 1
    assert [head.position for head in kept.values()] == [ROWS // 3] * 3


def test_a_value_that_no_longer_shows_where_another_was_cut_out_is_found(whole: Path, tmp_path: Path) -> None:
    def misplace(connection: sqlite3.Connection) -> None:
        row_id, text = connection.execute(
            "SELECT id, commitments FROM facts WHERE kind = 'decision'"
        ).fetchone()
        committed = json.loads(text)
        (kept, salt) = connection.execute(
            "SELECT json, salt FROM vals WHERE fact_id = ? AND field = 'after'", (row_id,)
        ).fetchone()
        moved = kept.replace(committed["after.zulu"], "A" * 43)
        committed["after"] = commitment(salt, value_prefix("after"), moved.encode())
        connection.execute("UPDATE vals SET json = ? WHERE fact_id = ? AND field = 'after'", (moved, row_id))
        connection.execute("UPDATE facts SET commitments = ? WHERE id = ?", (json.dumps(committed), row_id))
        rehashed(connection, row_id, follow=True)

    found = fault(tampered(whole, tmp_path / "l.db", misplace))
    assert found.why == "A value that was cut out of 'after' has no place in it."


def test_a_row_that_was_put_in_is_found(whole: Path, tmp_path: Path) -> None:
    for row_id, run_id, position, row in (
        (ROWS + 1, "a" * 32, ROWS // 3 + 1, ROWS + 1),
        (ROWS + 1, "new", 2, ROWS + 1),
        (ROWS + 2, "new", 1, ROWS + 2),
        (0, "new", 1, 0),
        (2**63 - 1, "new", 1, 2**63 - 1),
    ):
        path = tampered(
            whole,
            tmp_path / "l.db",
            "INSERT INTO facts (id, run_id, segment, position, kind, recorded_us, prev_hash, hash) "
            f"VALUES ({row_id}, '{run_id}', 1, {position}, 'note', 1, zeroblob(32), zeroblob(32))",
        )
        assert fault(path, level=1).row == row


@pytest.mark.parametrize(
    "tamper",
    [
        "UPDATE decision_totals SET n = n + 1 WHERE rowid_of_one",
        "UPDATE decision_totals SET outcome = 'ask' WHERE rowid_of_one",
        "DELETE FROM decision_totals WHERE rowid_of_one",
        "DELETE FROM decision_totals",
        "INSERT INTO decision_totals VALUES (4096, 4096, '2026-01-01', 'x', '', 'input', '', 'deny', 0, 1)",
        "INSERT INTO decision_totals VALUES (4096, 8192, '2026-01-01', 'x', '', 'input', '', 'deny', 0, 1)",
        "INSERT INTO decision_totals VALUES (262144, 4096, '2026-01-01', 'x', '', 'input', '', 'deny', 0, 1)",
        "INSERT INTO decision_totals VALUES (1, 17, '2026-01-01', 'x', '', 'input', '', 'deny', 0, 1)",
    ],
)
def test_a_sum_that_is_not_that_of_the_rows_is_found(summed: Path, tmp_path: Path, tamper: str) -> None:
    assert isinstance(verify(summed), Verified)
    one = "(day, middleware, outcome) = (SELECT day, middleware, outcome FROM decision_totals LIMIT 1)"
    path = tampered(summed, tmp_path / "l.db", tamper.replace("rowid_of_one", one))
    found = fault(path)
    assert "sum" in found.why
    assert found.row in {17, 4096, 8192}
    assert isinstance(verify(path, level=1), Verified)


def test_a_decision_that_was_changed_is_found_at_its_row_and_not_at_the_sum(
    summed: Path, tmp_path: Path
) -> None:
    path = tampered(summed, tmp_path / "l.db", "UPDATE facts SET outcome = 'ask' WHERE id = 4096")
    assert fault(path).row == 4096
    assert "hash" in fault(path).why


def test_a_text_that_is_no_utf_8_any_more_is_found(whole: Path, tmp_path: Path) -> None:
    for tamper, row in (
        ("UPDATE facts SET tool_name = CAST(x'ff41' AS TEXT) WHERE id = 40", 40),
        ("UPDATE vals SET json = CAST(x'22ff22' AS TEXT) WHERE fact_id = 1 AND field = 'system'", 1),
        ("UPDATE vals SET field = CAST(x'ff' AS TEXT) WHERE fact_id = 1 AND field = 'system'", 1),
        ("UPDATE facts SET run_id = CAST(x'ff' AS TEXT) WHERE id = 40", 40),
    ):
        found = fault(tampered(whole, tmp_path / "l.db", tamper))
        assert found.row == row
        found.why.encode()


def test_a_row_appended_meanwhile_is_left_for_the_next_time(tmp_path: Path) -> None:
    path = real_file(tmp_path / "l.db", decisions=1500)
    ledger = SqliteLedger(path)
    seen: list[tuple[int, int]] = []
    writer = sqlite3.connect(path)

    def append(done: int, of: int) -> None:
        seen.append((done, of))
        # No read is open between two chunks, so that the log can be emptied.
        (busy, *_) = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert busy == 0
        fact = CallTaken(iteration=1, call_id="c", tool_name="t")
        entry = Entry(position=len(seen), time=1, fact=fact)
        assert ledger.append_inline(Batch(run_id="d" * 32, segment=1, entries=(entry,)))

    found = verify(path, progress=append)
    assert isinstance(found, Verified)
    assert len(seen) > 1
    assert {of for _, of in seen} == {found.rows}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    again = verify(path)
    assert isinstance(again, Verified)
    assert again.rows == found.rows + len(seen)
    writer.close()
    asyncio.run(ledger.close())


def test_more_runs_than_are_remembered_are_looked_up(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footprint_observe.store.verify._MAX_HEADS", 1)
    assert isinstance(verify(whole), Verified)
    path = tampered(whole, tmp_path / "l.db", "UPDATE facts SET hash = zeroblob(32) WHERE id = 40")
    assert fault(path).row == 40


def test_a_damaged_page_is_told_as_damage(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    data = bytearray(whole.read_bytes())
    connection = sqlite3.connect(whole)
    (page_size,) = connection.execute("PRAGMA page_size").fetchone()
    pages = [
        root
        for (root,) in connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name IN ('facts', 'vals')"
        )
    ]
    connection.close()
    for page in pages:
        start = (page - 1) * page_size
        data[start : start + 100] = b"\xff" * 100
    path.write_bytes(data)
    with pytest.raises((LedgerReadError, LedgerOpenError), match="damaged"):
        verify(path)


def test_nothing_is_written_and_no_writer_waits(whole: Path) -> None:
    before = whole.read_bytes()
    writer = sqlite3.connect(whole, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    assert isinstance(verify(whole), Verified)
    writer.execute("ROLLBACK")
    writer.close()
    assert whole.read_bytes() == before


def commitments(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    connection = sqlite3.connect(path)
    for row_id, text in connection.execute("SELECT id, commitments FROM facts WHERE commitments IS NOT NULL"):
        yield row_id, json.loads(text)
    connection.close()


def test_the_real_file_has_values_cut_out_of_values_that_were_cut_out(whole: Path) -> None:
    paths = {path for _, committed in commitments(whole) for path in committed if "." in path}
    assert {"after.zulu", "after.zulu.3", "after.alpha.b"} <= paths
