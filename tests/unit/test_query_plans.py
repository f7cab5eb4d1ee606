"""How the questions find their rows: by a key or an index, never by reading the whole file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import many_decisions
from footprint_observe import query
from footprint_observe.query.calls import calls
from footprint_observe.store.connect import open_reader

RUN = f"{2:032x}"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_decisions.write(tmp_path_factory.mktemp("many") / "l.db")


class Plans:
    """Every statement a question runs, and how SQLite finds its rows."""

    def __init__(self, path: Path) -> None:
        self._asking = sqlite3.connect(path)
        self.statements: list[str] = []

    def note(self, statement: str) -> None:
        """A statement ran, with its parameters put in."""
        self.statements.append(statement)

    @property
    def lines(self) -> list[str]:
        """The plans of all of them."""
        found: list[str] = []
        for statement in self.statements:
            if statement.lstrip().upper().startswith(("SELECT", "WITH")):
                found += [row[3] for row in self._asking.execute(f"EXPLAIN QUERY PLAN {statement}")]
        return found

    @property
    def scans(self) -> list[str]:
        """Where a whole table is read."""
        return [line for line in self.lines if line.startswith("SCAN") and " USING " not in line]


@pytest.fixture
def plans(many: Path, monkeypatch: pytest.MonkeyPatch) -> Plans:
    plans = Plans(many)
    real = open_reader

    def opened(path: Path, **how: Any) -> sqlite3.Connection:
        connection = real(path, **how)
        connection.set_trace_callback(plans.note)
        return connection

    monkeypatch.setattr("footprint_observe.query.database.open_reader", opened)
    return plans


QUESTIONS: dict[str, Callable[[Path], Any]] = {
    "one run": lambda path: query.decisions(path, run=RUN),
    "denials of one run": lambda path: query.decisions(path, run=RUN, outcome="deny"),
    "a whole run": lambda path: query.timeline(path, RUN),
    "the calls of a run": lambda path: calls(path, RUN),
    "a run by the beginning of its id": lambda path: query.run(path, RUN),
    "the last run": query.run,
    "the newest runs": query.runs,
    "runs since": lambda path: query.runs(path, since="2026-01-01"),
    "runs with a denial": lambda path: query.runs(path, outcome="deny"),
    "latest denials": lambda path: query.decisions(path, outcome="deny"),
    "latest decisions": query.decisions,
    "decisions since": lambda path: query.decisions(path, since=many_decisions.time_of(2)),
    "decisions of a day": lambda path: query.decisions(path, since="2026-02-18", until="2026-02-18"),
    "decisions of a rule": lambda path: query.decisions(path, rule="fee"),
    "what a person decided": lambda path: query.decisions(path, person="dana@ops"),
    "open questions": query.pending,
    "totals": query.totals,
    "totals since an hour": lambda path: query.totals(path, since=many_decisions.time_of(2, 5)),
    "totals of a run": lambda path: query.totals(path, run=RUN),
    "denials of a run counted": lambda path: query.totals(path, run=RUN, outcome="deny"),
    "the first that follow": lambda path: next(query.follow(path, since=many_decisions.time_of(2))),
    "a text in one run": lambda path: list(query.find(path, "number 17", run=RUN)),
    "a text": lambda path: list(query.find(path, "number 17")),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_question_reads_the_whole_file(many: Path, plans: Plans, name: str) -> None:
    QUESTIONS[name](many)
    assert plans.lines
    scans = [line for line in plans.scans if line.split()[1] in {"facts", "f", "vals", "v", "x", "m", "e"}]
    assert scans == []


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("latest denials", "facts_denials"),
        ("what a person decided", "vals_people"),
        ("the newest runs", "facts_runs"),
        ("runs since", "SCAN f USING INDEX facts_runs"),
        ("the last run", "facts_runs"),
        ("open questions", "facts_pauses"),
        ("one run", "sqlite_autoindex_facts_1"),
        ("denials of one run", "sqlite_autoindex_facts_1"),
    ],
)
def test_what_is_asked_often_is_found_by_its_index(many: Path, plans: Plans, name: str, index: str) -> None:
    QUESTIONS[name](many)
    assert any(index in line for line in plans.lines)


@pytest.mark.parametrize("name", ["denials of one run", "denials of a run counted", "runs with a denial"])
def test_denials_of_a_run_are_not_looked_for_among_all_denials(many: Path, plans: Plans, name: str) -> None:
    QUESTIONS[name](many)
    assert not any("facts_denials" in line for line in plans.lines)


@pytest.mark.parametrize(
    "name", ["latest denials", "latest decisions", "decisions of a rule", "decisions since"]
)
def test_the_newest_are_read_from_the_end_without_a_sort(many: Path, plans: Plans, name: str) -> None:
    QUESTIONS[name](many)
    assert not any("TEMP B-TREE" in line for line in plans.lines)


def test_no_question_leaves_a_read_transaction_open(many: Path, plans: Plans) -> None:
    found = query.find(many, "number 17")
    next(found)
    writer = sqlite3.connect(many, isolation_level=None)
    busy, _, _ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    writer.close()
    assert busy == 0
    found.close()
