"""How fast a ledger file answers, in milliseconds, at as many rows as it is asked for.

Run it as a program; it is no test. `--rows 10000000` is what the budgets are about; the file is made when it
is not there (see `rows`). Each question is asked about different rows every time: `warm` over a connection
that was used before, `cold` over a new one, which has nothing of the file in its memory, and `whole` through
the Python face that the command line uses. `cpu` is the time of a core; what the clock shows beyond it was
spent waiting, for the disk or for other programs. `--json FILE` writes the figures too.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parent))

import rows
import templates

from footprint_observe import query
from footprint_observe.store.connect import open_reader
from footprint_observe.store.verify import Fault, verify

TIMES = 40
WHATS = ("", "_p95", "_cpu")
Asked: TypeAlias = dict[str, Any]

Taken: TypeAlias = tuple[float, float]
"""Milliseconds on the clock, and of a core."""

_LONG = timedelta(hours=36)
_DAY_ONE = datetime.fromtimestamp(rows.FIRST_US / 1e6, UTC)


class Question:
    """One question, and what it may cost.

    Attributes:
        name: What is asked.
        budget_ms: What it may cost, or None.
        sql: The query, for a connection; None where only the Python face asks it.
        ask: The question through that face.
    """

    def __init__(
        self, name: str, budget_ms: float | None, sql: str | None, ask: Callable[[Path, Asked], object]
    ) -> None:
        self.name = name
        self.budget_ms = budget_ms
        self.sql = sql
        self.ask = ask


QUESTIONS = (
    Question(
        "rows of one run", 5, "SELECT * FROM decisions WHERE run_id = :run ORDER BY position",
        lambda path, about: query.decisions(path, run=about["run"]),
    ),
    Question(
        "latest 50 denials", 5, "SELECT * FROM decisions WHERE outcome = 'deny' ORDER BY id DESC LIMIT 50",
        lambda path, _: query.decisions(path, outcome="deny"),
    ),
    Question(
        "outcome x rule x day", 50,
        "SELECT day, middleware, outcome, sum(n) FROM decisions_by_day GROUP BY day, middleware, outcome",
        lambda path, _: query.totals(path, by=("day", "rule")),
    ),
    Question(
        "latest 20 runs", None, "SELECT * FROM runs ORDER BY id DESC LIMIT 20",
        lambda path, _: query.runs(path),
    ),
    Question(
        "everything of one run", None, "SELECT * FROM facts WHERE run_id = :run ORDER BY position",
        lambda path, about: query.timeline(path, about["run"]),
    ),
    Question(
        "why of a call", None, None, lambda path, about: query.why(path, about["call"], run=about["run"])
    ),
    Question(
        "open pauses", None, "SELECT * FROM pauses WHERE open ORDER BY id DESC LIMIT 50",
        lambda path, _: query.pending(path),
    ),
    Question(
        "decisions of one person", None, None,
        lambda path, about: query.decisions(path, person=about["person"]),
    ),
    Question(
        "denials of one hour", None, None,
        lambda path, about: query.decisions(path, outcome="deny", since=about["since"], until=about["until"]),
    ),
    Question(
        "totals of one day and a half", None, None,
        lambda path, about: query.totals(path, since=about["since"], until=about["since"] + _LONG),
    ),
    Question("replay of a run", None, None, lambda path, about: query.replay(path, about["run"])),
)  # fmt: skip


def subjects(path: Path, chance: random.Random) -> Iterator[Asked]:
    """What the questions are about, each time something else, from all over the file."""
    found = "SELECT run_id, tool_call_id FROM facts WHERE id >= ? AND kind = 'call.answered' LIMIT 1"
    with closing(open_reader(path)) as connection:
        (last,) = connection.execute("SELECT max(id) FROM facts").fetchone()
        while True:
            run, call = connection.execute(found, (chance.randrange(1, last * 99 // 100),)).fetchone()
            since = _DAY_ONE + timedelta(hours=chance.randrange(1, rows.DAYS * 24 - 40))
            person = f"person-{chance.randrange(templates.PERSONS):02d}@ops"
            until = since + timedelta(hours=1)
            yield {"run": run, "call": call, "person": person, "since": since, "until": until}


def taken(work: Callable[[], object]) -> Taken:
    began, busy = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - began) * 1000, (time.process_time() - busy) * 1000


def warm(path: Path, sql: str, about: Iterator[Asked]) -> list[Taken]:
    """Over one connection, after questions of the same kind."""
    with closing(open_reader(path)) as connection:
        for _ in range(5):
            _rows(connection, sql, next(about))
        return [taken(lambda: _rows(connection, sql, next(about))) for _ in range(TIMES)]


def cold(path: Path, sql: str, about: Iterator[Asked]) -> list[Taken]:
    """Each over a connection of its own."""
    found: list[Taken] = []
    for _ in range(TIMES):
        subject = next(about)
        with closing(open_reader(path)) as connection:
            found.append(taken(lambda: _rows(connection, sql, subject)))  # noqa: B023 - called at once
    return found


def whole(path: Path, question: Question, about: Iterator[Asked]) -> list[Taken]:
    """Through the Python face, which opens the file each time."""
    question.ask(path, next(about))
    return [taken(lambda: question.ask(path, next(about))) for _ in range(TIMES)]


def _rows(connection: sqlite3.Connection, sql: str, about: Asked) -> list[Any]:
    return connection.execute(sql, {"run": about["run"]}).fetchall()


def figures_of(path: Path, question: Question) -> dict[str, Any]:
    """What one question costs."""
    about = subjects(path, random.Random(question.name))
    sides = {} if question.sql is None else {
        "warm": warm(path, question.sql, about), "cold": cold(path, question.sql, about)
    }  # fmt: skip
    sides["whole"] = whole(path, question, about)
    figures: dict[str, Any] = {"question": question.name, "budget_ms": question.budget_ms}
    for side, found in sides.items():
        wall = sorted(one for one, _ in found)
        figures[f"{side}_ms"] = round(statistics.median(wall), 2)
        figures[f"{side}_p95_ms"] = round(wall[TIMES * 95 // 100 - 1], 2)
        figures[f"{side}_cpu_ms"] = round(statistics.median(busy for _, busy in found), 2)
    return figures


def verified(path: Path, level: Any) -> float:
    """Rows a second of one core that a check of the whole file takes."""
    began = time.process_time()
    found = verify(path, level=level)
    if isinstance(found, Fault):
        raise TypeError(f"The file does not verify: {found}")
    return found.rows / (time.process_time() - began)


def main() -> None:
    """Print one line a question."""
    parser = argparse.ArgumentParser(description="How fast a ledger file answers.")
    parser.add_argument("--rows", type=int, default=200_000, help="Rows of the file. [200000]")
    parser.add_argument("--no-verify", action="store_true", help="Do not check the file.")
    parser.add_argument("--json", type=Path, help="Write the figures here.")
    asked = parser.parse_args()
    path = rows.file_of(asked.rows)
    size = path.stat().st_size
    print(f"{path.name}: {asked.rows} rows, {size / asked.rows:.0f} bytes a row")
    sides = "".join(f"{side:>9}{'p95':>8}{'cpu':>7}" for side in ("warm", "cold", "whole"))
    print(f"{'milliseconds':<30}{'budget':>8}{sides}")
    found: list[dict[str, Any]] = []
    for question in QUESTIONS:
        one = figures_of(path, question)
        found.append(one)
        cells = [one.get(f"{side}{what}_ms", "") for side in ("warm", "cold", "whole") for what in WHATS]
        line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, (9, 8, 7) * 3, strict=True))
        budget = question.budget_ms
        missed = "  missed" if budget is not None and one["cold_ms"] > budget else ""
        print(f"{question.name:<30}{budget or '':>8}{line}{missed}", flush=True)
    report: dict[str, Any] = {"rows": asked.rows, "bytes_per_row": size / asked.rows, "questions": found}
    if not asked.no_verify:
        for level in (1, 2):
            speed = report[f"verify_{level}_rows_per_second"] = round(verified(path, level))
            print(f"verify level {level}: {speed} rows a second and core (budget 50000)")
    if asked.json is not None:
        asked.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
