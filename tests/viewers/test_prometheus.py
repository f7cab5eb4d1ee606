"""Prometheus scrapes a program with 500 runs, and every query of every panel comes to what its ledger holds.

A query is evaluated at the time of one scrape over the time since an earlier one. A range is closed at both
ends there, so both samples are in it and nothing is estimated: its increase is exact.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from browsed_rows import Counted
from counted import TRUTHS, Told, Vector
from dashboard_queries import DASHBOARDS, loaded, named, promql
from footprint_observe.recording import Handover
from recorders.otel_metrics import OtelMetrics
from seeded import STORIES, seed
from viewers.prometheus_server import Prometheus, scraping

pytest.importorskip("prometheus_client", reason="the extra `prometheus` has what serves the page")
pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="there is no prometheus here (Debian: prometheus)"
)

QUERIES = named("prometheus")
LOST = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A ledger of 500 runs that were watched, and the Prometheus that scraped the program meanwhile.

    Attributes:
        prometheus: It.
        told: What it must tell of the file.
        since: The time of a scrape before the runs.
        until: The time of a scrape behind them.
    """

    prometheus: Prometheus
    told: Told
    since: float
    until: float

    def asked(self, name: str, **chosen: Collection[str]) -> Vector:
        """What the query of a panel comes to, series that are 0 left out."""
        window = f"{round((self.until - self.since) * 1000)}ms"
        text = promql(QUERIES[name].text, window=window, **chosen)
        found = self.prometheus.query(text, self.until)
        assert found, f"no series for {text}"
        return {labels: value for labels, value in found.items() if value}


@contextmanager
def losing() -> Generator[Handover[int]]:
    """A recorder that loses whatever it ships."""

    def ship(_: list[int]) -> bool:
        return False

    lost: Handover[int] = Handover(ship, id="losing", batch=LOST, bound=100, delay=3600)
    try:
        yield lost
    finally:
        lost.close(5)


def lose(recorder: Handover[int]) -> None:
    """Let it lose one batch, while one item more waits."""
    for item in range(LOST + 1):
        recorder.put(item)
    deadline = time.monotonic() + 10
    while recorder.dropped < LOST:
        assert time.monotonic() < deadline


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Generator[Watched]:
    folder: Path = tmp_path_factory.mktemp("prometheus")
    ledger = folder / "ledger.db"
    metrics = OtelMetrics.to_prometheus(port=0, ledger=ledger)
    assert metrics.url is not None
    try:
        with losing() as recorder, scraping(metrics.url, folder) as prometheus:
            # Every series there will be begins with these runs, so that the increase of the others is whole.
            seed(folder / "before.db", len(STORIES), [metrics])
            since = prometheus.scraped(time.time())
            seed(ledger, watchers=[metrics])
            lose(recorder)
            until = prometheus.scraped(time.time())

            def bounds(series: str) -> list[float]:
                text = f"group by (le) ({series}_bucket{{le!='+Inf'}})"
                return sorted(float(dict(labels)["le"]) for labels in prometheus.query(text, until))

            minutes = (until - since) / 60
            told = Told(counted=Counted(ledger), minutes=minutes, bounds=bounds, lost=LOST)
            yield Watched(prometheus=prometheus, told=told, since=since, until=until)
    finally:
        metrics.close(5)


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize(
    ("agents", "rules", "tools"),
    [
        (None, None, None),
        (["refunds"], ["refund-ceiling"], ["issue_refund"]),
        (["refunds", "support"], ["no-abuse", "fraud-score", "credit-check"], ["look_up_order", "send_mail"]),
    ],
    ids=["all", "one of each", "some of each"],
)
def test_a_panel_shows_what_the_ledger_holds(
    watched: Watched,
    name: str,
    agents: Collection[str] | None,
    rules: Collection[str] | None,
    tools: Collection[str] | None,
) -> None:
    chosen = {"agent": agents, "rule": rules, "tool": tools}
    found = watched.asked(name, **{word: names for word, names in chosen.items() if names is not None})
    told = replace(watched.told, agents=agents, rules=rules, tools=tools)
    truth = {labels: value for labels, value in TRUTHS[name](told).items() if value}
    assert found == pytest.approx(truth, rel=1e-9)


def test_every_query_of_every_panel_is_asked_here() -> None:
    assert set(QUERIES) == {*TRUTHS, "governance/Oldest question/A"}


def test_the_oldest_question_grows_older_with_the_clock(watched: Watched) -> None:
    (age,) = watched.asked("governance/Oldest question/A").values()
    # The page reads the ledger a moment behind the time of its scrape, or says what it read just before it.
    waiting = (fact for fact, became in watched.told.counted.questions() if became == "open")
    assert watched.until - 1 <= next(waiting)["recorded_us"] / 1_000_000 + age <= time.time()


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_what_can_be_chosen_is_what_the_ledger_has(watched: Watched, dashboard: str) -> None:
    told = watched.told
    names = {
        "agent": {fact["agent"] for fact in told.counted.facts},
        "rule": {fact["middleware"] for fact in told.counted.of("decision")},
        "tool": {tool for tool, _ in told.tool_times()},
    }
    variables = [one for one in loaded(dashboard)["templating"]["list"] if one["type"] == "query"]
    for variable in variables:
        selector, label = variable["query"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        found = watched.prometheus.get(f"/api/v1/label/{label}/values", **{"match[]": promql(selector)})
        assert found == sorted(names[variable["name"]])
    assert {one["name"] for one in variables} >= {"agent"}


GAUGES = {
    "governance/Open questions/A": 43.0,
    "governance/Oldest question/A": 43.0,
    "governance/Waiting in recorders/A": 43.0,
}
"""What panels of gauges show when one process says 43 and another 12 of the same ledger or recorder."""


def test_processes_that_read_one_ledger_are_not_added_up(tmp_path: Path) -> None:
    gauges = {name: one for name, one in QUERIES.items() if not re.search(r"increase|rate", one.text)}
    assert set(gauges) == set(GAUGES)
    series = {name: re.findall(r"footprint_\w+", one.text)[-1] for name, one in gauges.items()}
    told = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": f'{series[name]}{{instance="{instance}"}}', "values": f"{value}x5"}
                    for instance, value in (("one", 12), ("two", GAUGES[name]))
                ],
                "promql_expr_test": [
                    {
                        "expr": promql(gauge.text),
                        "eval_time": "3m",
                        "exp_samples": [{"labels": "{}", "value": GAUGES[name]}],
                    }
                ],
            }
            for name, gauge in gauges.items()
        ],
    }
    story = tmp_path / "story.yaml"
    story.write_text(json.dumps(told), encoding="utf-8")
    done = subprocess.run(
        ["promtool", "test", "rules", str(story)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_alert_asks_for_a_series_that_is_not_there(watched: Watched) -> None:
    rules = [rule for group in watched.prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]]
    assert len(rules) == 12
    assert {rule["health"] for rule in rules} == {"ok"}
    broken = watched.prometheus.query('ALERTS{alertname="FootprintRuleBroken"}', watched.until)
    fired = {dict(labels)["footprint_middleware"] for labels in broken}
    assert fired == {"fraud-score", "credit-check", "half-written"}
