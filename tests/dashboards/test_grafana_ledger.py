"""What the dashboards ask the ledger, on a file of 500 runs, beside the same counted from the base tables."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dashboard_queries import named, sql
from footprint_core.events import Event
from footprint_core.facts import TraceRef
from seeded import seed

QUERIES = named("frser-sqlite-datasource")


class Traced:
    """Gives every segment a trace, as `OtelSpans` does."""

    id = "traced"

    def on_event(self, event: Event, /) -> None:
        """There is nothing to do."""

    def correlation(self, run_id: str, segment: int, /) -> TraceRef:
        return TraceRef(trace_id=f"{segment:02x}{run_id[2:]}", span_id=run_id[-16:])


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path: Path = tmp_path_factory.mktemp("grafana") / "ledger.db"
    seed(path, watchers=[Traced()])
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        yield connection


def answer(ledger: sqlite3.Connection, name: str, **filled: Any) -> list[dict[str, Any]]:
    """The rows of a panel, as the data source reads them; the whole week unless it is said."""
    now = time.time()
    text = sql(QUERIES[name].text, **{"since": now - 8 * 86_400, "until": now + 86_400, **filled})
    cursor = ledger.execute(text)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def taken(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


AGENTS = """
with agents as (
  select run_id, min(id) as first, json_extract(extra, '$.agent_name') as agent, min(recorded_us) as began
  from facts where kind = 'run.configured' group by run_id
)
"""


def test_every_question_is_asked_about_here() -> None:
    assert set(QUERIES) == {
        "governance/Answers of people/A",
        "governance/Latest denials/A",
        "governance/Questions that wait/A",
        "governance/Redactions by place/A",
        "runs/Calls in doubt/A",
        "runs/Calls of the run/A",
        "runs/Decisions of the run/A",
        "runs/Decisions, by who tells/A",
        "runs/Runs without an end/A",
        "runs/Slowest runs/A",
        "runs/Tools/A",
        "runs/Without an end/A",
    }


def test_the_latest_denials_are_those_of_the_base_tables(ledger: sqlite3.Connection) -> None:
    rows = answer(ledger, "governance/Latest denials/A")
    truth = ledger.execute(
        f"""{AGENTS}
        select recorded_us / 1000000, agent, moment, middleware, tool_name, answer, run_id, trace_id
        from facts join agents using (run_id)
        where kind = 'decision' and outcome = 'deny' and not shadow order by id desc"""
    ).fetchall()
    assert 100 < len(truth) < 200
    said = ("time", "agent", "moment", "rule", "tool", "came_about", "run_id", "trace_id")
    assert taken(rows, *said) == truth
    whys = ledger.execute(
        """select v.json from facts join vals as v on v.fact_id = facts.id and v.field = 'why'
        where kind = 'decision' and outcome = 'deny' and not shadow order by facts.id desc"""
    ).fetchall()
    assert [f'"{row["why"]}"' for row in rows] == [why for (why,) in whys]
    people = [row["person"] for row in rows if row["came_about"] == "person"]
    assert set(people) == {"dana@ops", "lee@ops", "sam@risk"}


def test_agents_rules_and_times_can_be_chosen(ledger: sqlite3.Connection) -> None:
    name = "governance/Latest denials/A"
    rows = answer(ledger, name)
    some = answer(ledger, name, agent="travel,support", rule="no-promises,small-pages")
    assert some == [
        row
        for row in rows
        if row["agent"] in {"travel", "support"} and row["rule"] in {"no-promises", "small-pages"}
    ]
    assert 0 < len(some) < len(rows)
    middle = rows[len(rows) // 2]["time"]
    assert answer(ledger, name, since=middle) == [row for row in rows if row["time"] >= middle]
    assert answer(ledger, name, until=middle) == [row for row in rows if row["time"] < middle]


def test_the_questions_that_wait_are_those_nobody_answered(ledger: sqlite3.Connection) -> None:
    rows = answer(ledger, "governance/Questions that wait/A")
    truth = ledger.execute(
        f"""{AGENTS} select agent, ifnull(middleware, json_extract(extra, '$.pause_kind')), tool_name, run_id
        from facts as p join agents using (run_id) where kind = 'pause.opened'
        and pause_id not in (select pause_id from facts where kind in ('pause.answered', 'pause.closed'))
        and run_id not in (select run_id from facts where kind = 'run.abandoned')
        order by p.id""".replace("extra, '$.pause_kind'", "p.extra, '$.pause_kind'")
    ).fetchall()
    assert taken(rows, "agent", "asked_by", "tool", "run_id") == truth
    assert [row["waits"] for row in rows] == sorted((row["waits"] for row in rows), reverse=True)
    assert {row["state"] for row in rows} == {"expired", "open"}
    assert {row["state"] for row in rows if row["asked_by"] == "human"} == {"open"}


def test_the_answers_of_people_say_who_answered(ledger: sqlite3.Connection) -> None:
    rows = answer(ledger, "governance/Answers of people/A")
    truth = ledger.execute(
        """select recorded_us / 1000000, answer, tool_name, (extra ->> '$.paused_us') / 1000000.0, run_id
        from facts where kind = 'pause.answered' order by id desc"""
    ).fetchall()
    assert sorted(taken(rows, "time", "answer", "tool", "waited", "run_id")) == sorted(truth)
    named_by_run = dict(
        ledger.execute(
            """select f.run_id, json_extract(v.json, '$') from facts as f join vals as v on v.fact_id = f.id
            where v.field = 'decided_by'"""
        ).fetchall()
    )
    assert {row["person"] for row in rows if row["asked_by"] == "human"} == {None}
    asked = [row for row in rows if row["asked_by"] != "human"]
    assert [row["person"] for row in asked] == [named_by_run[row["run_id"]] for row in asked]


def test_redactions_are_counted_by_place_and_strategy(ledger: sqlite3.Connection) -> None:
    rows = answer(ledger, "governance/Redactions by place/A")
    truth = ledger.execute(
        """select value ->> 0, value ->> 1, count(*) from facts, json_each(redacted)
        where kind = 'decision' group by 1, 2"""
    ).fetchall()
    assert sorted(taken(rows, "place", "strategy", "n")) == sorted(truth)
    assert {row["strategy"] for row in rows} == {"mask", "drop", "partial", "pseudonym", "seal"}


def unended(ledger: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return ledger.execute(
        f"""{AGENTS} select agent, kind, run_id from facts join agents using (run_id)
        where id in (select max(id) from facts group by run_id)
          and kind not in ('segment.ended', 'pause.closed', 'run.abandoned') order by first desc"""
    ).fetchall()


def test_runs_without_an_end_are_those_whose_last_row_is_no_end(ledger: sqlite3.Connection) -> None:
    rows = answer(ledger, "runs/Runs without an end/A")
    truth = unended(ledger)
    assert taken(rows, "agent", "last_row", "run_id") == truth
    assert len(truth) > 10
    assert {row["last_row"] for row in rows} == {"tool.intended"}
    assert all(row["trace_id"] for row in rows)
    (counted,) = answer(ledger, "runs/Without an end/A")
    assert counted["runs"] == len(truth)


def test_calls_in_doubt_are_those_that_were_about_to_run_and_have_no_result(
    ledger: sqlite3.Connection,
) -> None:
    rows = answer(ledger, "runs/Calls in doubt/A")
    truth = ledger.execute(
        """select run_id, tool_name from facts as i where kind = 'tool.intended' and not exists (
          select 1 from facts as e where e.run_id = i.run_id and e.position > i.position
            and e.tool_call_id = i.tool_call_id and e.iteration = i.iteration and (
              e.kind = 'tool.paused' or (e.kind = 'tool.finished' and e.extra not like '%"cancelled":true%')
            )
        ) order by id desc"""
    ).fetchall()
    assert sorted(taken(rows, "run_id", "tool")) == sorted(truth)
    assert truth


def test_the_slowest_runs_are_those_that_worked_longest(ledger: sqlite3.Connection) -> None:
    rows = answer(ledger, "runs/Slowest runs/A")
    truth = ledger.execute(
        f"""{AGENTS} select agent, sum(duration_us) / 1000000.0, run_id, max(segment)
        from facts join agents using (run_id) where kind = 'segment.ended'
        group by run_id order by 2 desc, first limit 50"""
    ).fetchall()
    assert taken(rows, "agent", "worked", "run_id", "segments") == truth
    tokens = {
        run: (read, written)
        for run, read, written in ledger.execute(
            """select run_id, total(extra ->> '$.usage.input'), total(extra ->> '$.usage.output')
            from facts where kind = 'model.replied' group by 1"""
        )
    }
    assert {row["run_id"]: (row["input_tokens"], row["output_tokens"]) for row in rows} == {
        row["run_id"]: tokens[row["run_id"]] for row in rows
    }


def test_tools_are_counted_by_what_became_of_their_calls(ledger: sqlite3.Connection) -> None:
    rows = answer(ledger, "runs/Tools/A")
    truth = ledger.execute(
        "select tool_name, tool_source, count(*) from facts where kind = 'call.taken' group by 1, 2"
    ).fetchall()
    assert sorted(taken(rows, "tool", "server", "calls"), key=str) == sorted(truth, key=str)
    statuses: dict[str, int] = dict(
        ledger.execute(
            "select status, count(*) from facts where kind = 'call.answered' group by 1"
        ).fetchall()
    )
    for word in ("ran", "failed", "denied", "invalid", "unknown", "blocked"):
        assert sum(row[word] for row in rows) == statuses[word], word
    cancelled = "select count(*) from facts where kind = 'tool.finished' and extra ->> '$.cancelled'"
    assert sum(row["cancelled"] for row in rows) == ledger.execute(cancelled).fetchone()[0]
    times = ledger.execute(
        """select tool_name, avg(duration_us) / 1e6, max(duration_us) / 1e6 from facts
        where kind = 'tool.finished' group by 1"""
    ).fetchall()
    measured = {tool: (mean, longest) for tool, mean, longest in times}
    assert {row["tool"]: (row["mean"], row["longest"]) for row in rows if row["mean"]} == measured


def test_rows_and_rows_with_a_trace_are_counted(ledger: sqlite3.Connection) -> None:
    (row,) = answer(ledger, "runs/Decisions, by who tells/A")
    truth = "select count(*), count(trace_id) from facts where kind = 'decision' and not shadow"
    assert (row["rows"], row["with_a_trace"]) == ledger.execute(truth).fetchone()
    (some,) = answer(ledger, "runs/Decisions, by who tells/A", agent="travel")
    assert 0 < some["rows"] < row["rows"]


@pytest.mark.parametrize("name", QUERIES)
def test_no_question_looks_at_every_row_of_the_file(ledger: sqlite3.Connection, name: str) -> None:
    text = sql(QUERIES[name].text, since=time.time() - 3600, until=time.time())
    steps = [step for *_, step in ledger.execute(f"explain query plan {text}")]
    scans = [step for step in steps if step.startswith("SCAN") and "VIRTUAL TABLE" not in step]
    assert all(step.endswith(("USING INDEX facts_runs", "USING INDEX facts_denials")) for step in scans), (
        scans
    )


def test_one_run_is_shown_in_order(ledger: sqlite3.Connection) -> None:
    busy = "select run_id from facts where kind = 'decision' group by 1 order by count(*) desc limit 1"
    (run,) = ledger.execute(busy).fetchone()
    rows = answer(ledger, "runs/Decisions of the run/A", run=run)
    truth = "select position, moment, middleware, outcome from facts where kind = 'decision' and run_id = ?"
    found = ledger.execute(f"{truth} order by position", (run,)).fetchall()
    assert taken(rows, "row", "moment", "rule", "outcome") == found
    calls = answer(ledger, "runs/Calls of the run/A", run=run)
    truth = "select position, tool_name from facts where kind = 'call.taken' and run_id = ? order by position"
    assert taken(calls, "row", "tool") == ledger.execute(truth, (run,)).fetchall()
    assert answer(ledger, "runs/Calls of the run/A") == []
