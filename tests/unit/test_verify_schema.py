"""A file whose rows all follow is still told when its tables, indexes, triggers or views are others."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from footprint_observe.store.verify import Fault, Level, Verified, verify
from tampering import real_file


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return real_file(tmp_path_factory.mktemp("whole") / "l.db")


def after(whole: Path, into: Path, *statements: str, level: Level = 1) -> Verified | Fault:
    shutil.copy(whole, into)
    with closing(sqlite3.connect(into, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return verify(into, level=level)


def objects(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL AND type <> 'table'"
        ).fetchall()


def test_every_index_trigger_and_view_that_is_missing_is_named(whole: Path, tmp_path: Path) -> None:
    found = objects(whole)
    assert {kind for kind, _ in found} == {"index", "trigger", "view"}
    for kind, name in found:
        assert after(whole, tmp_path / "l.db", f"DROP {kind} {name}") == Fault(
            row=None, run_id=None, position=None, why=f"The {kind} {name!r} is missing."
        )


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (
            (
                "DROP VIEW decisions",
                "CREATE VIEW decisions AS SELECT * FROM facts WHERE kind = 'decision' AND outcome <> 'deny'",
            ),
            "The view 'decisions' is not the one this release makes.",
        ),
        (
            (
                "DROP TRIGGER facts_no_delete",
                "CREATE TRIGGER facts_no_delete BEFORE DELETE ON facts WHEN 0 BEGIN SELECT 1; END",
            ),
            "The trigger 'facts_no_delete' is not the one this release makes.",
        ),
        (
            (
                "DROP INDEX facts_denials",
                "CREATE INDEX facts_denials ON facts (id) WHERE kind = 'decision' AND outcome = 'allow'",
            ),
            "The index 'facts_denials' is not the one this release makes.",
        ),
        (
            ("DROP VIEW runs", "CREATE TABLE runs (id INTEGER)"),
            "The view 'runs' is not the one this release makes.",
        ),
        (
            ("CREATE TRIGGER quiet BEFORE INSERT ON FACTS BEGIN SELECT RAISE(IGNORE); END",),
            "The trigger 'quiet' on 'facts' is none that this release makes.",
        ),
        (("DROP TABLE pause_bodies",), "The table 'pause_bodies' is missing."),
        (("ALTER TABLE vals RENAME TO other",), "The table 'vals' is missing."),
        (
            ("ALTER TABLE pause_bodies ADD COLUMN more TEXT",),
            "The table 'pause_bodies' is not the one this release makes.",
        ),
    ],
)
def test_what_is_other_than_this_release_makes_it_is_named(
    whole: Path, tmp_path: Path, statements: tuple[str, ...], why: str, level: Level
) -> None:
    found = after(whole, tmp_path / "l.db", *statements, level=level)
    assert isinstance(found, Fault)
    assert (found.row, found.why.replace("FACTS", "facts")) == (None, why)
    assert verify(tmp_path / "l.db", "a" * 32, level=level) == found


def test_tables_views_indexes_and_triggers_that_somebody_added_for_themselves_are_theirs(
    whole: Path, tmp_path: Path
) -> None:
    found = after(
        whole,
        tmp_path / "l.db",
        "CREATE TABLE notes (fact_id INTEGER, text TEXT)",
        "CREATE INDEX notes_facts ON notes (fact_id)",
        "CREATE INDEX facts_tools ON facts (tool_name)",
        "CREATE VIEW denied AS SELECT * FROM decisions WHERE outcome = 'deny'",
        "CREATE TRIGGER notes_kept BEFORE DELETE ON notes BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    assert isinstance(found, Verified)


def test_a_row_that_does_not_follow_is_told_before_the_schema(whole: Path, tmp_path: Path) -> None:
    found = after(
        whole,
        tmp_path / "l.db",
        "DROP TRIGGER facts_no_update",
        "UPDATE facts SET kind = 'note' WHERE id = 3",
        level=2,
    )
    assert isinstance(found, Fault)
    assert found.row == 3
