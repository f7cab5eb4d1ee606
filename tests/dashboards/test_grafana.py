"""The two dashboards: made from the table of names, whole, and without a panel in the place of another."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from itertools import combinations
from typing import Any

import pytest

from dashboard_queries import CHOICES, DASHBOARDS, Asked, asked, every, loaded, named, panels, promql
from footprint_observe import semconv
from footprint_observe.shipped import dashboards

parser: Any = pytest.importorskip("promql_parser", reason="the extra `dev` has the parser of PromQL")

each = pytest.mark.parametrize("dashboard", DASHBOARDS)
shown = [(name, panel) for name in DASHBOARDS for panel in panels(name) if panel["type"] != "row"]
each_panel = pytest.mark.parametrize(
    ("dashboard", "panel"), shown, ids=[f"{n}/{p['title']}" for n, p in shown]
)


def test_what_is_committed_is_what_the_program_makes() -> None:
    pytest.importorskip("grafana_foundation_sdk", reason="the extra `dev` has what makes the dashboards")
    from dashboards.grafana.__main__ import made

    for file, text in made().items():
        committed = (dashboards() / "grafana" / file).read_text(encoding="utf-8")
        assert committed == text, f"{file} is not what python -m dashboards.grafana makes"


@each_panel
def test_a_panel_says_what_it_shows_and_in_what_unit(dashboard: str, panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["targets"]
    assert panel["datasource"]["uid"]


@each
def test_no_two_panels_have_one_name_or_one_number(dashboard: str) -> None:
    whole = list(panels(dashboard))
    titles = [panel["title"] for panel in whole if panel["type"] != "row"]
    assert len(titles) == len(set(titles))
    assert [panel["id"] for panel in whole] == list(range(1, len(whole) + 1))


@each
def test_no_panel_overlaps_another(dashboard: str) -> None:
    top = loaded(dashboard)["panels"]
    for together in (top, *(panel["panels"] for panel in top if panel.get("panels"))):
        places = [panel["gridPos"] for panel in together]
        for place in places:
            assert place["x"] >= 0
            assert place["x"] + place["w"] <= 24
            assert min(place["w"], place["h"]) >= 1
        for one, other in combinations(places, 2):
            beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
            below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
            assert beside or below, (one, other)


@each
def test_rows_are_filled_from_side_to_side(dashboard: str) -> None:
    widths: dict[int, int] = {}
    for panel in loaded(dashboard)["panels"]:
        widths[panel["gridPos"]["y"]] = widths.get(panel["gridPos"]["y"], 0) + panel["gridPos"]["w"]
    assert set(widths.values()) == {24}


BUILT_IN = {"__all", "__from", "__to", "__range", "__rate_interval", "__url_time_range", "__value"}


@each
def test_every_variable_that_is_used_is_there(dashboard: str) -> None:
    whole = loaded(dashboard)
    known = {variable["name"] for variable in whole["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(whole)))
    assert used - BUILT_IN <= known
    assert known <= used


@each
def test_a_link_to_the_other_dashboard_finds_it(dashboard: str) -> None:
    text = json.dumps(loaded(dashboard))
    uids = {loaded(name)["uid"] for name in DASHBOARDS}
    assert set(re.findall(r"/d/([\w-]+)", text)) <= uids
    runs = {variable["name"] for variable in loaded("runs")["templating"]["list"]}
    assert set(re.findall(r"var-(\w+)=", text)) <= runs


@each
def test_it_has_the_schema_of_grafana_11(dashboard: str) -> None:
    assert loaded(dashboard)["schemaVersion"] == 41


def series() -> set[str]:
    """Every name Prometheus may have for a metric of the table."""
    found = set()
    for metric in semconv.METRICS.values():
        for unit in ("", "_seconds"):
            found |= {
                metric.replace(".", "_") + unit + kind for kind in ("", "_total", "_bucket", "_count", "_sum")
            }
    return found


def labels() -> set[str]:
    return {name.replace(".", "_") for name in semconv.NAMES.values()} | {"le"}


@pytest.mark.parametrize("query", named("prometheus").values(), ids=str)
def test_every_promql_parses_and_every_name_in_it_exists(query: Any) -> None:
    tree = parser.parse(promql(query.text))
    text = str(tree.prettify())
    assert set(re.findall(r"\b(?:footprint|gen_ai)\w*(?=\{)", text)) <= series()
    grouped = {name for names in re.findall(r"by \(([^)]*)\)", text) for name in re.split(r",\s*", names)}
    matched = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", text))
    assert grouped | matched <= labels()
    legend = set(re.findall(r"\{\{(\w+)\}\}", query.target.get("legendFormat", "")))
    assert legend <= grouped
    assert set(re.findall(r"\b(footprint_\w+|gen_ai_\w+)", text)) <= series() | labels()


def variable_queries() -> list[str]:
    found = {
        variable["query"]
        for name in DASHBOARDS
        for variable in loaded(name)["templating"]["list"]
        if variable["type"] == "query"
    }
    return sorted(found)


@pytest.mark.parametrize("query", variable_queries())
def test_a_choice_at_the_top_is_read_from_a_series_that_exists(query: str) -> None:
    said = re.fullmatch(r"label_values\((?P<selector>.+), (?P<label>\w+)\)", query)
    assert said is not None
    parser.parse(promql(said["selector"]))
    assert said["selector"].split("{")[0] in series()
    assert said["label"] in labels()


def test_every_name_that_traces_are_searched_by_exists() -> None:
    searched = [*asked("tempo"), *asked("jaeger")]
    assert {query.dashboard for query in searched} == set(DASHBOARDS)
    for query in asked("tempo"):
        assert set(re.findall(r"span\.([\w.]+)", query.text)) <= set(semconv.NAMES.values())
    for query in asked("jaeger"):
        assert {pair.split("=")[0] for pair in query.text.split()} <= set(semconv.NAMES.values())


def test_both_texts_of_a_question_to_the_ledger_are_the_same() -> None:
    for query in asked("frser-sqlite-datasource"):
        assert query.target["queryText"] == query.target["rawQueryText"]


def unit(query: Asked) -> str:
    """The unit of what a query to Prometheus comes to."""
    if query.text.startswith("60 * "):
        return "short" if semconv.TOKEN_USAGE.replace(".", "_") in query.text else "opm"
    if re.fullmatch(r"\(.* or .* \* 0\) / \(.* > 0\)", query.text):
        return "percentunit"
    of_seconds = re.match(r"(histogram_quantile|max)\(.*_seconds(_bucket)?\b", query.text)
    return "s" if of_seconds else "short"


@pytest.mark.parametrize("query", named("prometheus").values(), ids=str)
def test_a_number_has_the_unit_of_what_is_asked(query: Asked) -> None:
    (panel,) = (one for name, one in shown if (name, one["title"]) == (query.dashboard, query.panel))
    given = {
        one["matcher"]["options"]: prop["value"]
        for one in panel["fieldConfig"]["overrides"]
        for prop in one["properties"]
        if prop["id"] == "unit"
    }
    drawn = given.get(f"Value #{query.ref}", panel["fieldConfig"]["defaults"]["unit"])
    assert drawn == unit(query)
    assert set(given) <= {f"Value #{target['refId']}" for target in panel["targets"]}


def test_what_happens_some_times_a_day_is_asked_of_the_whole_time() -> None:
    name = f"{semconv.APPROVAL_LATENCY.replace('.', '_')}_seconds_bucket"
    texts = [query.text for query in asked("prometheus") if name in query.text]
    assert len(texts) == 2
    assert all(text.count("[$__range]") == text.count("[") for text in texts)


@pytest.mark.parametrize("name", CHOICES)
def test_all_of_a_choice_is_a_pattern_of_everything_and_a_number_to_sql(name: str) -> None:
    assert re.fullmatch(every(name), "any name, 'at' all")
    assert re.fullmatch(every(name), "")
    with closing(sqlite3.connect(":memory:")) as file:
        assert file.execute(f"select 0 in ({every(name)}), '0' in ({every(name)})").fetchone() == (1, 0)


def test_a_search_in_jaeger_has_the_fields_grafana_reads() -> None:
    fields = {"datasource", "limit", "queryType", "refId", "service", "tags"}
    for query in asked("jaeger"):
        assert set(query.target) == fields
        assert (query.target["queryType"], query.target["service"]) == ("search", "$service")


def test_a_question_to_the_ledger_is_shown_as_rows() -> None:
    for query in asked("frser-sqlite-datasource"):
        assert query.target["queryType"] == "table"
        assert not re.search(r"\$\{(?!\w+:sqlstring\})", query.text)
