"""`footprint verify` as a person types it: what it says, and its exit codes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from footprint_observe.cli import main
from footprint_observe.store.verify import heads
from samples import FULL
from tampering import real_file, tampered

COUNT = len(FULL)


def footprint(*args: str) -> Result:
    result = CliRunner().invoke(main, ["verify", *args], env={"COLUMNS": "100"})
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_file(tmp_path_factory.mktemp("whole") / "l.db")


def test_a_file_that_follows_is_said_to_and_counted(whole: Path) -> None:
    result = footprint("--db", str(whole))
    assert result.exit_code == 0
    assert f"follows: {3 * COUNT} rows of 3 runs; " in result.stdout
    assert ", 0 erased" in result.stdout
    assert result.stderr == ""
    result = footprint("--db", str(whole), "--level", "1")
    assert result.stdout == f"follows: {3 * COUNT} rows of 3 runs\n"


def test_the_first_row_that_does_not_follow_is_named_with_the_reason(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "UPDATE facts SET kind = 'note' WHERE id IN (3, 5)")
    result = footprint("--db", str(path))
    assert result.exit_code == 1
    assert result.stdout == (
        f"does not follow: row 3 (position 3 of run {'a' * 32})\nIts hash is not that of its columns.\n"
    )
    result = footprint("--db", str(path), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "follows": False,
        "row": 3,
        "run_id": "a" * 32,
        "position": 3,
        "why": "Its hash is not that of its columns.",
    }


def test_one_run_can_be_meant_by_the_beginning_of_its_id(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "UPDATE facts SET kind = 'note' WHERE id = 3")
    assert footprint("--db", str(path), "--run", "b" * 32).exit_code == 0
    assert f"{COUNT} rows of 1 run;" in footprint("--db", str(path), "--run", "bbb").stdout
    assert footprint("--db", str(path), "--run", "aaa").exit_code == 1


def test_a_run_whose_first_row_was_changed_is_still_found_by_its_id(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "UPDATE facts SET kind = 'note' WHERE id = 1")
    result = footprint("--db", str(path), "--run", "a" * 32)
    assert result.exit_code == 1
    assert "row 1 " in result.stdout


def test_the_heads_are_printed_when_they_are_asked_for(whole: Path) -> None:
    kept = [(head.run_id, head.position, head.hash) for head in heads(whole)]
    connection = sqlite3.connect(whole)
    stored = connection.execute(
        "SELECT run_id, position, lower(hex(hash)) FROM facts WHERE position = ? ORDER BY run_id", (COUNT,)
    ).fetchall()
    connection.close()
    assert kept == stored
    lines = footprint("--db", str(whole), "--heads").stdout.splitlines()[1:]
    assert [line.split() for line in lines] == [[run, str(at), digest] for run, at, digest in kept]
    first, *found = map(json.loads, footprint("--db", str(whole), "--heads", "--json").stdout.splitlines())
    assert first["follows"] is True
    assert (first["rows"], first["runs"], first["erased"]) == (3 * COUNT, 3, 0)
    assert [(head["run_id"], head["position"], head["hash"]) for head in found] == kept
    assert footprint("--db", str(whole), "--heads", "--run", "bbb").stdout.splitlines()[1:] == [lines[1]]


def test_values_that_are_missing_are_counted_and_the_check_fails(whole: Path, tmp_path: Path) -> None:
    path = tampered(whole, tmp_path / "l.db", "DELETE FROM vals WHERE field = 'why'")
    connection = sqlite3.connect(path)
    (first,) = connection.execute("SELECT min(id) FROM facts WHERE commitments LIKE '%\"why\"%'").fetchone()
    connection.close()
    result = footprint("--db", str(path))
    assert result.exit_code == 1
    assert ", 3 erased" in result.stdout
    assert result.stdout.endswith(
        f"\n3 values, the first of row {first}, are not in the file, and no entry says who erased them.\n"
    )
    result = footprint("--db", str(path), "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["follows"], found["erased"], found["first_erased"]) == (False, 3, first)


def test_what_hides_rows_although_they_all_follow_is_named(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    path.write_bytes(whole.read_bytes())
    connection = sqlite3.connect(path)
    connection.execute("DROP VIEW decisions")
    connection.execute("CREATE VIEW decisions AS SELECT * FROM facts WHERE outcome <> 'deny'")
    connection.close()
    result = footprint("--db", str(path))
    assert result.exit_code == 1
    assert result.stdout == (
        "does not follow: the schema\nThe view 'decisions' is not the one this release makes.\n"
    )
    found = json.loads(footprint("--db", str(path), "--level", "1", "--json").stdout)
    assert (found["follows"], found["row"], found["run_id"]) == (False, None, None)


def test_what_cannot_be_read_or_understood_has_its_own_exit_codes(whole: Path, tmp_path: Path) -> None:
    assert footprint("--db", str(tmp_path / "none.db")).exit_code == 3
    assert footprint("--db", str(whole), "--run", "zzz").exit_code == 1
    assert footprint("--db", str(whole), "--level", "3").exit_code == 2
    other = tmp_path / "other.db"
    other.write_bytes(b"no database at all" * 100)
    assert footprint("--db", str(other)).exit_code == 3
