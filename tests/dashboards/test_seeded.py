"""The file that dashboards and metrics are proven on: it has everything, twice the same, and is sound."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any, get_args

import pytest

from footprint_core.decisions import AnswerKind
from footprint_core.facts import CallStatus, RunOutcome
from footprint_observe.redaction.strategies import Replacing
from seeded import STORIES, seed
from story import Seen


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(connect(f"file:{path}?mode=ro", uri=True)) as file:
        return file.execute(query).fetchall()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("seeded") / "l.db"
    seed(made, len(STORIES))
    return made


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select outcome from runs", {*get_args(RunOutcome), "open"}),
        ("select status from tool_calls where status is not null", set(get_args(CallStatus))),
        ("select answer from decisions", set(get_args(AnswerKind))),
        ("select value ->> 1 from facts, json_each(redacted)", set(get_args(Replacing))),
        ("select answer from pauses where answer is not null", {"approved", "declined", "value"}),
        ("select kind from pauses where open", {"ask", "check-in", "human"}),
        ("select shadow from decisions where outcome = 'deny'", {0, 1}),
        ("select agent from runs", {"refunds", "support", "travel"}),
        (
            "select kind from facts where kind in ('run.recovered', 'pause.closed')",
            {"run.recovered", "pause.closed"},
        ),
        ("select removed_messages > 0 from window_records", {0, 1}),
    ],
)
def test_as_many_runs_as_stories_come_to_everything_there_is(path: Path, query: str, words: set[Any]) -> None:
    assert {word for (word,) in rows(path, query)} == words


def test_what_happens_is_the_same_in_every_file(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    seed(other, len(STORIES))
    told = "select kind, moment, middleware, outcome, answer, status, tool_name from facts order by id"
    assert rows(path, told) == rows(other, told)
    took = "select duration_us from facts where kind <> 'decision' order by id"
    assert rows(path, took) == rows(other, took)


def test_runs_are_spread_over_the_days_before_the_end(tmp_path: Path) -> None:
    path, until = tmp_path / "l.db", time.time() - 1000
    seed(path, 40, days=4, until=until)
    began = [us for (us,) in rows(path, "select recorded_us from facts where kind = 'run.configured'")]
    assert {(us - min(began)) // 86_400_000_000 for us in began} == {0, 1, 2, 3}
    ((last,),) = rows(path, "select max(recorded_us) from facts")
    assert last <= until * 1_000_000


def test_a_watcher_of_a_process_that_died_hears_nothing_more(tmp_path: Path) -> None:
    seen = Seen()
    seed(tmp_path / "l.db", len(STORIES), [seen])
    ended = {event.run_id for event in seen.events if event.type == "agent.turn_end"}
    begun = {event.run_id for event in seen.events}
    unended = {run for (run,) in rows(tmp_path / "l.db", "select run_id from runs where outcome = 'open'")}
    assert begun - ended == unended
