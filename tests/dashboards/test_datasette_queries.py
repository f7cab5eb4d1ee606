"""Every named query and every panel, asked of a served file, says what its rows say."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from browsed import PANELS, QUERIES, Served, seeded_file, serving
from browsed_rows import Counted, Row, Rows, added, shown
from footprint_observe.query.doctor import doctor


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


Compared: TypeAlias = Callable[[list[Row], Counted], tuple[Rows, Rows]]
"""What the page shows, and what the rows of the file say."""


def _value(name: str) -> Callable[[Row], Any]:
    return lambda row: json.loads(row[name])


def _why(rows: list[Row], all_: Counted) -> tuple[Rows, Rows]:
    refused = next(fact for fact in all_.decisions("deny") if fact["tool_call_id"] is not None)
    run = all_.runs[refused["run_id"]]
    about = [fact for fact in run if fact["tool_call_id"] == refused["tool_call_id"]]
    assert rows[0]["said"].startswith("asked for: {")
    return shown(rows, "position", "kind", "tool_call_id"), shown(about, "position", "kind", "tool_call_id")


SAID: dict[str, Compared] = {
    "latest_denials": lambda rows, all_: (
        shown(rows, "middleware", "tool_name", "why", "run_id"),
        all_.denials()[:100],
    ),
    "decisions_by_day_and_rule": lambda rows, all_: (
        added(rows, "day", "middleware", "outcome", "decisions"),
        all_.by_day_and_rule(),
    ),
    "decided_by_people": lambda rows, all_: (
        shown(rows, "decided_by", "outcome", "tool_name", "run_id"),
        all_.by_people()[:100],
    ),
    "changed_values": lambda rows, all_: (
        shown(rows, "middleware", _value("before"), _value("after")),
        all_.changes()[:100],
    ),
    "open_questions": lambda rows, all_: (shown(rows, "kind", "tool_name", "run_id"), all_.open_questions()),
    "pauses_by_answer": lambda rows, all_: (added(rows, "kind", "answer", "questions"), all_.answers()),
    "calls_in_doubt": lambda rows, all_: (shown(rows, "run_id", "tool_call_id"), all_.in_doubt()[:100]),
    "runs_without_an_end": lambda rows, all_: (shown(rows, "run_id", "last_entry"), all_.endless()[:100]),
    "latest_runs": lambda rows, all_: (
        shown(rows, lambda row: row["started_at"][:10], "agent", "outcome", "input_tokens", "output_tokens"),
        all_.ends()[:100],
    ),
    "tokens_by_agent_and_day": lambda rows, all_: (
        sorted(shown(rows, "day", "agent", "runs", "input_tokens", "output_tokens")),
        all_.tokens(),
    ),
    "slowest_rules": lambda rows, all_: (
        sorted(shown(rows, "middleware", "moment", "decisions", "longest_ms")),
        all_.rule_times(),
    ),
    "tool_statuses": lambda rows, all_: (added(rows, "tool_name", "status", "calls"), all_.statuses()),
    "redactions": lambda rows, all_: (added(rows, "strategy", "kind", "times"), all_.redactions()),
    "timeline": lambda rows, all_: (
        shown(rows, "run_id", "position", "kind"),
        shown(list(all_.runs.values())[-1], "run_id", "position", "kind"),
    ),
    "why": _why,
}

DRAWN: dict[str, Compared] = {
    "decisions": lambda rows, all_: (shown(rows, "decisions"), [(len(all_.decisions()),)]),
    "denied": lambda rows, all_: (
        shown(rows, "percent"),
        [(f"{100 - 100 * len(all_.decisions('allow')) / len(all_.decisions()):.1f}",)],
    ),
    "open_questions": lambda rows, all_: (shown(rows, "questions"), [(len(all_.open_questions()),)]),
    "endless": lambda rows, all_: (shown(rows, "runs"), [(len(all_.endless()),)]),
    "by_day": lambda rows, all_: (
        added(rows, "day", "outcome", "decisions"),
        added(
            [{"day": d, "outcome": o, "n": n} for d, _, o, n in all_.by_day_and_rule()], "day", "outcome", "n"
        ),
    ),
    "runs": lambda rows, all_: (
        added(rows, "outcome", "runs"),
        added([{"outcome": end[2], "n": 1} for end in all_.ends()], "outcome", "n"),
    ),
    "denials_by_rule": lambda rows, all_: (
        added(rows, "rule", "moment", "denials"),
        added([{**fact, "n": 1} for fact in all_.decisions("deny")], "middleware", "moment", "n"),
    ),
    "answers": lambda rows, all_: (added(rows, "kind", "answer", "questions"), all_.answers()),
    "tools": lambda rows, all_: (added(rows, "tool", "status", "calls"), all_.statuses()),
    "redactions": lambda rows, all_: (added(rows, "strategy", "entry", "times"), all_.redactions()),
    "latest_denials": lambda rows, all_: (shown(rows, "rule", "tool", "why", "run"), all_.denials()[:8]),
    "questions": lambda rows, all_: (shown(rows, "kind", "tool", "run"), all_.open_questions()[:8]),
}


def test_every_named_query_and_every_panel_is_counted_here() -> None:
    assert set(SAID) == set(QUERIES)
    assert set(DRAWN) == set(PANELS)


@pytest.mark.parametrize("name", SAID)
def test_a_named_query_says_what_the_rows_say(site: Site, name: str) -> None:
    on_the_page, in_the_file = SAID[name](site.served.rows(f"/ledger/{name}"), site.counted)
    assert on_the_page == in_the_file
    assert on_the_page


@pytest.mark.parametrize("name", DRAWN)
def test_a_panel_draws_what_the_rows_say(site: Site, name: str) -> None:
    answer = site.served.sql(PANELS[name]["query"])
    on_the_page, in_the_file = DRAWN[name](answer.json, site.counted)
    assert on_the_page == in_the_file
    assert on_the_page


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
