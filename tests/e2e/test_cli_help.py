"""What the commands say of themselves, and of an answer that has nothing in it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from commanded import demonstrate, footprint, records, refused
from footprint_observe import SqliteLedger


def test_the_help_of_sql_names_every_view(tmp_path: Path) -> None:
    with closing(sqlite3.connect(demonstrate(tmp_path / "l.db"))) as connection:
        views = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")]
    said = footprint("sql", "--help").stdout
    assert "disclosures" in views
    assert [name for name in views if name not in said] == []


def test_the_help_of_completion_has_a_line_for_each_shell() -> None:
    said = footprint("completion", "--help").stdout
    assert "\\b" not in said
    assert [
        line.split()[0] for line in said.splitlines() if line.startswith("  ") and "footprint comp" in line
    ] == [
        "bash:",
        "zsh:",
        "fish:",
    ]


def test_a_ledger_without_runs_says_so_and_filters_are_blamed_only_when_there_are_some(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "l.db")
    asyncio.run(SqliteLedger(path).close())
    assert footprint("runs", "--db", path).stderr == "This ledger has no runs yet.\n"
    for words in (("--rule", "none"), ("--ended", "open"), ("--since", "1d"), ("--no-shadow",)):
        assert footprint("runs", *words, "--db", path).stderr.startswith("No run of this ledger matches;")


def test_an_empty_list_is_an_answer_and_what_is_named_and_not_there_is_none(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    for words in (("decisions", "--rule", "none"), ("runs", "--rule", "none"), ("totals", "--rule", "none")):
        assert records(*words, "--db", path) == []
    footprint("find", "nowhere at all", "--db", path, code=1)
    refused("show", "fff", "--db", path, code=1)
    refused("why", "no-such-call", "--db", path, code=1)
    assert "also when a list is empty" in " ".join(footprint("--help").stdout.split())


@pytest.mark.parametrize("option", ["--by", "--reason"])
@pytest.mark.parametrize("blank", ["", "  "])
def test_who_gives_a_run_up_and_why_is_asked_for_by_the_option(
    tmp_path: Path, option: str, blank: str
) -> None:
    given = {"--by": "dana", "--reason": "a duplicate", option: blank}
    words = [word for pair in given.items() for word in pair]
    said = refused("abandon", "last", *words, "--db", demonstrate(tmp_path / "l.db"), code=2)
    assert f"Invalid value for '{option}': it is blank" in said
    assert "abandon(" not in said


def test_a_parameter_the_query_does_not_have_is_refused(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    said = refused("sql", "select :a", "-p", "a=1", "-p", "b=2", "--db", path, code=2)
    assert said == "Error: The query has no parameter :b; give only those it has.\n"
