"""Every named query and every panel, asked of a served file, says what its rows say, column by column."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from browsed import PANELS, QUERIES, Served, seeded_file, serving
from browsed_pages import DRAWN, SAID, prepared
from browsed_rows import Counted
from footprint_observe.query.doctor import doctor
from footprint_observe.query.waiting import Waiting


class Site(NamedTuple):
    """The served file, and what is in it."""

    path: Path
    served: Served
    counted: Counted


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    path = seeded_file(tmp_path_factory.mktemp("queries"))
    with serving(path) as served:
        yield Site(path, served, Counted(path))


def test_every_named_query_and_every_panel_is_counted_here() -> None:
    assert set(SAID) == set(QUERIES)
    assert set(DRAWN) == set(PANELS)


@pytest.mark.parametrize("name", SAID)
def test_a_named_query_says_what_the_rows_say(site: Site, name: str) -> None:
    on_the_page = [prepared(row) for row in site.served.rows(f"/ledger/{name}")]
    assert on_the_page == SAID[name](site.counted)
    assert on_the_page


@pytest.mark.parametrize("name", DRAWN)
def test_a_panel_draws_what_the_rows_say(site: Site, name: str) -> None:
    on_the_page = [prepared(row) for row in site.served.sql(PANELS[name]["query"]).json]
    assert on_the_page == DRAWN[name](site.counted)
    assert on_the_page


NOTHING = {
    # No process dies in the file while a server has its call.
    "calls_in_doubt": {"tool_source"},
    # The oldest questions are those of tools: those of rules expire.
    "panel questions": {"rule"},
}
"""The columns that hold nothing on the file."""


def test_no_column_is_nothing_everywhere(site: Site) -> None:
    # Comparisons with a column that is always empty, or 0, prove nothing of it.
    pages = {name: site.served.rows(f"/ledger/{name}") for name in QUERIES}
    pages |= {f"panel {name}": site.served.sql(panel["query"]).json for name, panel in PANELS.items()}
    empty = {
        name: {column for column in rows[0] if not any(row[column] for row in rows)}
        for name, rows in pages.items()
    }
    assert {name: columns for name, columns in empty.items() if columns} == NOTHING


@pytest.mark.parametrize(
    ("name", "parameter", "column"),
    [
        ("latest_denials", "rule", "middleware"),
        ("decided_by_people", "person", "decided_by"),
        ("latest_runs", "agent", "agent"),
        ("timeline", "run_id", "run_id"),
    ],
)
def test_a_parameter_picks_the_rows_that_have_it(site: Site, name: str, parameter: str, column: str) -> None:
    meant = site.served.rows(f"/ledger/{name}")[-1][column]
    found = site.served.rows(f"/ledger/{name}", **{parameter: meant})
    assert {row[column] for row in found} == {meant}


def test_a_call_that_ran_is_told_from_its_asking_to_its_answer(site: Site) -> None:
    call = next(fact for fact in site.counted.of("call.answered") if fact["status"] == "ran")
    asked = {name: call[name] for name in ("run_id", "tool_call_id")}
    rows = site.served.rows("/ledger/why", **asked)
    assert (rows[0]["kind"], rows[-1]["kind"], rows[-1]["came_to"]) == ("call.taken", "call.answered", "ran")
    assert any(row["kind"] == "tool.finished" and row["said"].startswith("result") for row in rows)


def test_runs_without_an_end_are_those_the_doctor_lists(site: Site) -> None:
    listed = [run["run_id"] for run in doctor(site.path)["endless"]]
    assert [row["run_id"] for row in site.served.rows("/ledger/runs_without_an_end")] == listed[::-1]
    assert site.served.sql(PANELS["endless"]["query"]).json == [{"runs": len(listed)}]


def test_the_questions_that_wait_are_those_the_metrics_count(site: Site) -> None:
    waiting = Waiting(site.path).count()
    assert site.served.sql(PANELS["open_questions"]["query"]).json == [{"questions": waiting.count}]
    assert len(site.served.rows("/ledger/open_questions")) == waiting.count
    assert "expired" in {became for _, became in site.counted.questions()}


def test_what_is_looked_at_can_be_limited(site: Site) -> None:
    assert site.served.rows("/ledger/tool_statuses", newest="1") == []
    assert len(site.served.rows("/ledger/tokens_by_agent_and_day", newest="1")) == 1
    since = site.counted.newest_first[0]["day"]
    assert {row["day"] for row in site.served.rows("/ledger/decisions_by_day_and_rule", since=since)} == {
        since
    }


def test_every_view_of_the_ledger_has_a_page(site: Site) -> None:
    names = [
        row["name"] for row in site.served.sql("select name from sqlite_master where type = 'view'").json
    ]
    assert len(names) >= 8
    for name in names:
        assert site.served.get(f"/ledger/{name}").status == 200, name
