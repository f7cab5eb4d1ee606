"""A ledger that somebody changed by hand is asked about without a crash, and what is wrong is said."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from commanded import demonstrate, footprint, records, refused
from tampering import unguarded

ASKED: tuple[tuple[str, ...], ...] = (
    ("runs",),
    ("show", "last"),
    ("timeline", "last"),
    ("decisions",),
    ("why", "call-1"),
    ("totals",),
    ("find", "refund"),
    ("pending",),
)


def changed(path: Path, *statements: str) -> str:
    demonstrate(path)
    with unguarded(path) as connection:
        for statement in statements:
            connection.execute(statement)
    return str(path)


@pytest.mark.parametrize("time", [9_000_000_000_000_000_000, -9_000_000_000_000_000_000])
def test_a_time_no_calendar_has_is_shown_as_the_number_it_is(tmp_path: Path, time: int) -> None:
    path = changed(
        tmp_path / "l.db",
        # An answered question is open again, so that it is asked about.
        "DELETE FROM facts WHERE kind IN ('pause.answered', 'pause.closed')",
        f"UPDATE facts SET recorded_us = {time}",
    )
    for words in ASKED:
        footprint(*words, "--db", path)
        for record in records(*words, "--db", path):
            assert record.get("recorded_at", str(time)) == str(time)
    assert str(time) in footprint("runs", "--db", path).stdout
    assert str(time) in footprint("timeline", "last", "--db", path).stdout
    assert str(time) in footprint("pending", "--db", path).stdout
    assert str(time) in footprint("find", "refund", "--db", path).stdout
    assert "no day" in footprint("totals", "--db", path).stdout


def test_a_nul_behind_a_json_value_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = changed(tmp_path / "l.db", "UPDATE vals SET json = json || char(0) || 'x'")
    for words in ASKED:
        if words[0] not in {"totals", "pending"}:
            assert "cannot be read as it stands in the file" in refused(*words, "--db", path, code=3)
    assert footprint("verify", "--db", path, code=1).stdout.startswith("does not follow: row 1 ")


def test_a_view_that_is_missing_is_named(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP VIEW runs")
    assert refused("runs", "--db", path, code=3) == (
        "Error: The ledger file lacks the table or view runs, so it was changed; run `footprint verify` on "
        "it.\n"
    )
    found = json.loads(footprint("verify", "--json", "--db", path, code=1).stdout)
    assert found["why"] == "The view 'runs' is missing."
