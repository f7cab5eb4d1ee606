"""What the dashboards ask the ledger, on a file of 500 runs, beside the same counted from its rows."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browsed_rows import Counted, Row
from dashboard_queries import asked, named, panels, sql
from footprint_core import Agent, before_tool, deny, tool
from footprint_core.events import Event
from footprint_core.facts import TraceRef
from footprint_core.providers import Scripted, call, reply
from footprint_observe import SqliteLedger
from footprint_observe.query.doctor import doctor
from footprint_observe.query.waiting import Waiting
from grafana_rows import SHOWN, Asked
from seeded import seed

QUERIES = named("frser-sqlite-datasource")
DAY = 86_400


class Traced:
    """Gives every segment a trace, as `OtelSpans` does."""

    id = "traced"

    def on_event(self, event: Event, /) -> None:
        """There is nothing to do."""

    def correlation(self, run_id: str, segment: int, /) -> TraceRef:
        return TraceRef(trace_id=f"{segment:02x}{run_id[2:]}", span_id=run_id[-16:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A file of 500 runs.

    Attributes:
        path: Where it is.
        file: It, open.
        counted: It, counted.
        now: The time of all looks at it, whole seconds since 1970.
    """

    path: Path
    file: sqlite3.Connection
    counted: Counted
    now: int

    def rows(self, name: str, **filled: Any) -> list[Row]:
        """The rows of a panel, as the data source reads them; the whole week unless it is said."""
        whole = {"since": self.now - 8 * DAY, "until": self.now + DAY, "now": self.now}
        return answer(self.file, name, **{**whole, **filled})


def answer(file: sqlite3.Connection, name: str, **filled: Any) -> list[Row]:
    cursor = file.execute(sql(QUERIES[name].text, **filled))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    path: Path = tmp_path_factory.mktemp("grafana") / "ledger.db"
    seed(path, watchers=[Traced()])
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        yield Watched(path=path, file=file, counted=Counted(path), now=int(time.time()))


def busiest(counted: Counted) -> str:
    """The run with the most decisions of those with a call that went wrong."""
    runs = {call["taken"]["run_id"] for call in counted.calls() if call["error"]}
    return max(map(str, runs), key=lambda run: sum(f["kind"] == "decision" for f in counted.runs[run]))


def in_doubt(counted: Counted) -> str:
    """A run with a call that may have run."""
    return str(next(call["taken"]["run_id"] for call in counted.calls() if call["in_doubt"]))


def answered(counted: Counted) -> str:
    """A run with a decision of a person."""
    return str(next(f["run_id"] for f, _ in counted.by_people() if f["kind"] == "decision"))


def tried(counted: Counted) -> str:
    """A run with a decision that was only recorded, and a tool of a server."""
    return str(next(f["run_id"] for f in counted.of("decision") if f["shadow"]))


CHOSEN = (busiest, in_doubt, answered, tried)
CHOICES: tuple[dict[str, Any], ...] = ({}, {"agent": ["refunds"]})


def test_every_question_is_asked_about_here() -> None:
    assert set(QUERIES) == set(SHOWN)


ALONE = {name for name in QUERIES if "${run:sqlstring}" in QUERIES[name].text}
"""The questions about one run, which have no other choice."""


@pytest.mark.parametrize("name", sorted(set(QUERIES) - ALONE))
@pytest.mark.parametrize(
    ("agents", "rules", "tools"),
    [
        (None, None, None),
        ({"refunds"}, {"refund-ceiling"}, {"issue_refund"}),
        ({"travel", "refunds"}, {"no-promises", "no-abuse"}, {"pick_seat", "charge_back"}),
    ],
    ids=["all", "one of each", "two of each"],
)
def test_a_panel_shows_what_the_rows_say(
    watched: Watched,
    name: str,
    agents: Collection[str] | None,
    rules: Collection[str] | None,
    tools: Collection[str] | None,
) -> None:
    chosen = {"agent": agents, "rule": rules, "tool": tools}
    shown = watched.rows(name, **{word: names for word, names in chosen.items() if names is not None})
    at = Asked(counted=watched.counted, now=watched.now, agents=agents, rules=rules, tools=tools)
    truth = SHOWN[name](at)
    assert shown == [pytest.approx(row) for row in truth]
    assert shown


@pytest.mark.parametrize("name", sorted(ALONE))
@pytest.mark.parametrize("choose", CHOSEN, ids=lambda one: one.__name__)
def test_one_run_is_shown_in_order(watched: Watched, name: str, choose: Callable[[Counted], str]) -> None:
    run = choose(watched.counted)
    shown = watched.rows(name, run=run)
    truth = SHOWN[name](Asked(counted=watched.counted, now=watched.now, run=run))
    assert shown == [pytest.approx(row) for row in truth]
    assert shown
    assert watched.rows(name) == []


def test_no_column_is_nothing_everywhere(watched: Watched) -> None:
    # Comparisons with a column that is always empty, or 0, prove nothing of it.
    for name in QUERIES:
        some = [{"run": choose(watched.counted)} for choose in CHOSEN] if name in ALONE else CHOICES
        rows = [row for chosen in some for row in watched.rows(name, **chosen)]
        empty = {column for column in rows[0] if not any(row[column] for row in rows)}
        assert empty == NOTHING.get(name, set()), name


NOTHING = {
    # No process dies in the file while a server has its call.
    "runs/Calls in doubt/A": {"server"},
}
"""The columns that hold nothing on the file."""


def test_runs_without_an_end_are_those_the_doctor_lists(watched: Watched) -> None:
    listed = doctor(watched.path)["endless"]
    (counted,) = watched.rows("runs/Without an end/A")
    assert counted["runs"] == len(listed) > 20
    rows = watched.rows("runs/Runs without an end/A")
    assert [row["run_id"] for row in rows] == [run["run_id"] for run in listed][::-1]
    assert {row["last_row"] for row in rows} == {"pause.closed", "tool.intended"}


def test_a_run_counts_as_without_an_end_when_it_was_silent_for_five_minutes(watched: Watched) -> None:
    last = max(
        run[-1]["recorded_us"]
        for run in map(watched.counted.runs.get, dict(watched.counted.endless()))
        if run
    )
    heard = last // 1_000_000 + 1
    (all_,) = watched.rows("runs/Without an end/A", now=heard + 300)
    (fewer,) = watched.rows("runs/Without an end/A", now=heard + 298)
    assert all_["runs"] == fewer["runs"] + 1


def test_as_many_calls_wait_as_the_metrics_count_questions(watched: Watched) -> None:
    waiting = Waiting(watched.path).count(watched.now * 1_000_000).count
    assert sum(row["waiting"] for row in watched.rows("runs/Tools/A")) == waiting
    states = [row["state"] for row in watched.rows("governance/Questions that wait/A")]
    assert states.count("open") == waiting
    assert "expired" in states


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("governance/Latest denials/A", "time"),
        ("governance/Answers of people/A", "time"),
        ("runs/Calls in doubt/A", "time"),
        ("runs/Runs without an end/A", "time"),
    ],
)
def test_the_time_that_is_looked_at_is_kept_to(watched: Watched, name: str, column: str) -> None:
    rows = watched.rows(name)
    middle = rows[len(rows) // 2][column]
    assert watched.rows(name, since=middle) == [row for row in rows if row[column] >= middle]
    assert watched.rows(name, until=middle) == [row for row in rows if row[column] < middle]


ODD = 'O\'Neil, "Bo" -- %'


def test_any_name_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"

    @before_tool(ODD)
    def never(_: Any) -> Any:
        return deny("no")

    @tool
    async def act() -> None:
        """Do it."""

    async def play() -> None:
        ledger = SqliteLedger(path)
        for name in (ODD, "O'Neil"):
            model = Scripted([reply(calls=[call("1", "act", {})]), reply(text="done")])
            made = Agent.create(provider=model, model="m", name=name).tool(act).act(before_tool=[never])
            await made.ledger(ledger).build().run("go")
        await ledger.close()

    asyncio.run(play())
    now = time.time()
    whole = {"since": now - DAY, "until": now + DAY}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        for name in QUERIES:
            answer(file, name, **whole, agent=[ODD], rule=[ODD], tool=[ODD], run=ODD)
        both = answer(file, "governance/Latest denials/A", **whole)
        (one,) = answer(file, "governance/Latest denials/A", **whole, agent=[ODD], rule=[ODD])
        assert one == both[1]
        assert (one["agent"], one["rule"]) == (ODD, ODD)
        assert answer(file, "governance/Latest denials/A", **whole, agent=["O'Neil", ODD]) == both
        assert answer(file, "governance/Latest denials/A", **whole, agent=["O", "Neil"]) == []
        (tools,) = answer(file, "runs/Tools/A", **whole, tool=["act"], agent=["O'Neil"])
        assert (tools["tool"], tools["calls"], tools["denied"]) == ("act", 1, 1)


@pytest.mark.parametrize("name", QUERIES)
def test_no_question_looks_at_every_row_of_the_file(watched: Watched, name: str) -> None:
    text = sql(QUERIES[name].text, since=time.time() - 3600, until=time.time())
    steps = [step for *_, step in watched.file.execute(f"explain query plan {text}")]
    scans = [step for step in steps if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
    # The questions that wait are as many as people leave open.
    few = ("USING INDEX facts_runs", "USING INDEX facts_denials", "SCAN waiting")
    assert all(step.endswith(few) for step in scans), scans


SECONDS = {"waits", "waited", "silent", "worked", "mean", "longest", "took"}
"""The columns that hold seconds."""


def test_a_column_of_seconds_is_drawn_as_seconds_and_no_other(watched: Watched) -> None:
    units = {
        f"{dashboard}/{panel['title']}": {
            one["matcher"]["options"]: prop["value"]
            for one in panel["fieldConfig"]["overrides"]
            for prop in one["properties"]
            if prop["id"] == "unit"
        }
        for dashboard in ("governance", "runs")
        for panel in panels(dashboard)
        if panel["type"] == "table"
    }
    for query in asked("frser-sqlite-datasource"):
        if (name := f"{query.dashboard}/{query.panel}") in units:
            cursor = watched.file.execute(sql(query.text, since=0, until=1))
            columns = {column[0] for column in cursor.description}
            told = dict.fromkeys(columns & SECONDS, "s") | dict.fromkeys(columns & {"time"}, "dateTimeAsIso")
            assert units[name] == told, name
