"""Prometheus scrapes a program with 500 runs, and every query of every panel comes to what its ledger holds.

A query is evaluated at the time of one scrape over the time since an earlier one. A range is closed at both
ends there, so both samples are in it and nothing is estimated: its increase is exact.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from counted import (
    AGENT,
    ANSWER,
    MODEL,
    MOMENT,
    OUTCOME,
    RULE,
    RUN_OUTCOME,
    STATUS,
    STRATEGY,
    TOOL,
    Counted,
    Vector,
    alone,
    by,
)
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
        counted: The file.
        since: The time of a scrape before the runs.
        until: The time of a scrape behind them.
        oldest_us: When the oldest question that is open was asked, microseconds since 1970.
    """

    prometheus: Prometheus
    counted: Counted
    since: float
    until: float
    oldest_us: int

    @property
    def minutes(self) -> float:
        return (self.until - self.since) / 60

    def asked(self, name: str, **chosen: str) -> Vector:
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
            with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as file:
                until = prometheus.scraped(time.time())

                def bounds(series: str) -> list[float]:
                    text = f"group by (le) ({series}_bucket{{le!='+Inf'}})"
                    return sorted(float(dict(labels)["le"]) for labels in prometheus.query(text, until))

                counted = Counted(file, bounds)
                ((oldest,),) = counted.rows(OPEN.format("min(recorded_us)"))
                yield Watched(
                    prometheus=prometheus, counted=counted, since=since, until=until, oldest_us=oldest
                )
    finally:
        metrics.close(5)


# A question that nobody answered and that still takes an answer.
OPEN = """
select {} from facts as p where kind = 'pause.opened'
  and ifnull(extra ->> '$.expires_us' > strftime('%s', 'now') * 1000000, 1)
  and pause_id not in (select pause_id from facts where kind in ('pause.answered', 'pause.closed'))
  and run_id not in (select run_id from facts where kind = 'run.abandoned')
"""

ENDED = "outcome not in ('paused', 'abandoned')"
DENIED, ASKED = "outcome = 'deny'", "outcome = 'ask'"

Truth = Callable[[Watched], Vector]


def a_minute(truth: Truth) -> Truth:
    """What is drawn as so many a minute."""

    def made(watched: Watched) -> Vector:
        return {labels: value / watched.minutes for labels, value in truth(watched).items()}

    return made


def shares(part: Vector, whole: Vector) -> Vector:
    return {labels: part.get(labels, 0.0) / value for labels, value in whole.items() if part.get(labels)}


def rule_times(w: Watched) -> list[tuple[str, float]]:
    return [
        (rule, took)
        for rule, took in w.counted.rows(
            """select middleware, duration_us / 1e6 from facts
            where kind = 'decision' and duration_us is not null"""
        )
    ]


def waits(w: Watched) -> list[tuple[str, float]]:
    return [
        (answer, waited)
        for answer, waited in w.counted.rows(
            "select answer, (extra ->> '$.paused_us') / 1e6 from facts where kind = 'pause.answered'"
        )
    ]


def worked(w: Watched) -> list[tuple[str, float]]:
    return [(agent, took) for agent, took in w.counted.segments("agent, e.duration_us / 1e6")]


def iterations(w: Watched) -> list[tuple[str, float]]:
    return [(agent, n) for agent, n in w.counted.segments("agent, e.extra ->> '$.iterations'", ENDED)]


def tool_times(w: Watched) -> list[tuple[str, float]]:
    return [
        (tool, took)
        for tool, took in w.counted.rows(
            """select tool_name, duration_us / 1e6 from facts
            where kind = 'call.answered' and extra ->> '$.executed' and duration_us is not null"""
        )
    ]


def model_times(w: Watched) -> list[tuple[str, float]]:
    return [
        (model, took)
        for model, took in w.counted.rows(
            """select model, duration_us / 1e6 from facts join runs_of using (run_id)
            where kind in ('model.replied', 'model.failed')"""
        )
    ]


def first_chunks(w: Watched) -> list[tuple[str, float]]:
    return [
        (model, took)
        for model, took in w.counted.rows(
            """select model, (extra ->> '$.first_chunk_us') / 1e6 from facts join runs_of using (run_id)
            where kind = 'model.replied' and extra ->> '$.first_chunk_us' is not null"""
        )
    ]


def redactions(w: Watched) -> Vector:
    return by(
        STRATEGY,
        [
            (strategy, n)
            for strategy, n in w.counted.rows(
                """select value ->> 1, count(*) from facts, json_each(redacted)
                where kind = 'decision' group by 1"""
            )
        ],
    )


def ends(w: Watched, where: str = "1") -> Vector:
    return by(RUN_OUTCOME, [(outcome, 1) for (outcome,) in w.counted.segments("outcome", where)])


def total(vector: Vector) -> Vector:
    return alone(sum(vector.values()))


def of(vector: Vector, word: str) -> float:
    return sum(value for labels, value in vector.items() if labels[0][1] == word)


TRUTHS: dict[str, Truth] = {
    "governance/Decisions/A": lambda w: alone(w.counted.decided()),
    "governance/Denials/A": lambda w: alone(w.counted.decided(DENIED)),
    "governance/Denial rate/A": lambda w: alone(w.counted.decided(DENIED) / w.counted.decided()),
    "governance/Questions/A": lambda w: alone(w.counted.decided(ASKED)),
    "governance/Open questions/A": lambda w: alone(w.counted.rows(OPEN.format("count(*)"))[0][0]),
    "governance/Broken rules/A": lambda w: total(w.counted.broken()),
    "governance/Lost/A": lambda _: alone(LOST),
    "governance/Lost by recorders/A": a_minute(lambda _: by("footprint_watcher", [("losing", LOST)])),
    "governance/Lost by recorders/B": a_minute(lambda _: by("footprint_watcher", [("losing", 1)])),
    "governance/Waiting in recorders/A": lambda _: by("footprint_watcher", [("losing", 1)]),
    "governance/Decisions by outcome/A": a_minute(lambda w: w.counted.decisions(OUTCOME, "outcome")),
    "governance/Denial rate by agent/A": lambda w: shares(
        w.counted.decisions(AGENT, "agent", DENIED), w.counted.decisions(AGENT, "agent")
    ),
    "governance/Top rules by denial/A": lambda w: w.counted.decisions(RULE, "middleware", DENIED),
    "governance/Denials by moment/A": a_minute(lambda w: w.counted.decisions(MOMENT, "moment", DENIED)),
    "governance/Rules/hits": lambda w: w.counted.decisions(RULE, "middleware"),
    "governance/Rules/denied": lambda w: w.counted.decisions(RULE, "middleware", DENIED),
    "governance/Rules/asked": lambda w: w.counted.decisions(RULE, "middleware", ASKED),
    "governance/Rules/p95": lambda w: w.counted.quantiles(
        0.95, "footprint_middleware_duration_seconds", RULE, rule_times(w)
    ),
    "governance/Rules/errors": lambda w: w.counted.broken(),
    "governance/Time to an answer/A": lambda w: w.counted.quantiles(
        0.5, "footprint_approval_latency_seconds", ANSWER, waits(w)
    ),
    "governance/Time to an answer/B": lambda w: w.counted.quantiles(
        0.95, "footprint_approval_latency_seconds", ANSWER, waits(w)
    ),
    "governance/Answers/A": a_minute(lambda w: by(ANSWER, [(answer, 1) for answer, _ in waits(w)])),
    "governance/Redactions by strategy/A": a_minute(redactions),
    "runs/Runs/A": lambda w: total(ends(w, ENDED)),
    "runs/Answered/A": lambda w: alone(of(ends(w), "answered") / sum(ends(w, ENDED).values())),
    "runs/Failed/A": lambda w: alone(of(ends(w), "failed") / sum(ends(w, ENDED).values())),
    "runs/Duration, p95/A": lambda w: w.counted.quantiles(
        0.95, "footprint_run_duration_seconds", "", [("", took) for _, took in worked(w)]
    ),
    "runs/Model calls a run/A": lambda w: alone(sum(n for _, n in iterations(w)) / len(iterations(w))),
    "runs/Failed calls/A": lambda w: alone(
        w.counted.calls()["failed"] / (w.counted.calls()["failed"] + w.counted.calls()["ran"])
    ),
    "runs/Tokens/A": lambda w: total(w.counted.tokens()),
    "runs/Ends by outcome/A": a_minute(ends),
    "runs/Duration/A": lambda w: w.counted.quantiles(0.5, "footprint_run_duration_seconds", AGENT, worked(w)),
    "runs/Duration/B": lambda w: w.counted.quantiles(
        0.95, "footprint_run_duration_seconds", AGENT, worked(w)
    ),
    "runs/Model calls by agent/A": lambda w: w.counted.quantiles(
        0.5, "footprint_run_iterations", AGENT, iterations(w)
    ),
    "runs/Model calls by agent/B": lambda w: w.counted.quantiles(
        0.95, "footprint_run_iterations", AGENT, iterations(w)
    ),
    "runs/Calls by status/A": a_minute(lambda w: by(STATUS, w.counted.calls().items())),
    "runs/Time of tools, p95/A": lambda w: w.counted.quantiles(
        0.95, "footprint_tool_duration_seconds", TOOL, tool_times(w)
    ),
    "runs/Runs of tools/A": a_minute(lambda w: by(TOOL, [(tool, 1) for tool, _ in tool_times(w)])),
    "runs/Tokens by model/A": a_minute(lambda w: w.counted.tokens()),
    "runs/Time of models/A": lambda w: w.counted.quantiles(
        0.5, "gen_ai_client_operation_duration_seconds", MODEL, model_times(w)
    ),
    "runs/Time of models/B": lambda w: w.counted.quantiles(
        0.95, "gen_ai_client_operation_duration_seconds", MODEL, model_times(w)
    ),
    "runs/Time to the first chunk, p95/A": lambda w: w.counted.quantiles(
        0.95, "gen_ai_client_operation_time_to_first_chunk_seconds", MODEL, first_chunks(w)
    ),
    "runs/Decisions, by who tells/B": lambda w: alone(w.counted.decided()),
    "runs/Decisions, by who tells/C": lambda _: by("footprint_watcher", [("losing", LOST)]),
}
"""What a query must come to, counted from the base tables of the ledger."""


@pytest.mark.parametrize("name", [name for name in QUERIES if name in TRUTHS])
def test_a_panel_shows_what_the_ledger_holds(watched: Watched, name: str) -> None:
    found = watched.asked(name)
    truth = {labels: value for labels, value in TRUTHS[name](watched).items() if value}
    assert found == pytest.approx(truth, rel=1e-9)


def test_every_query_of_every_panel_is_asked_here() -> None:
    assert set(QUERIES) == {*TRUTHS, "governance/Oldest question/A"}


def test_the_oldest_question_grows_older_with_the_clock(watched: Watched) -> None:
    (age,) = watched.asked("governance/Oldest question/A").values()
    # The page reads the ledger a moment behind the time of its scrape, or says what it read just before it.
    assert watched.until - 1 <= watched.oldest_us / 1_000_000 + age <= time.time()


@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_what_can_be_chosen_is_what_the_ledger_has(watched: Watched, dashboard: str) -> None:
    columns = {"agent": "agent", "rule": "middleware", "tool": "tool_name"}
    variables = [one for one in loaded(dashboard)["templating"]["list"] if one["type"] == "query"]
    for variable in variables:
        selector, label = variable["query"].removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        found = watched.prometheus.get(f"/api/v1/label/{label}/values", **{"match[]": promql(selector)})
        asked_for = "kind = 'call.answered' and extra ->> '$.executed' and duration_us is not null"
        where = asked_for if variable["name"] == "tool" else "kind = 'decision'"
        column = columns[variable["name"]]
        truth = watched.counted.rows(
            f"select distinct {column} from facts join runs_of using (run_id) where {where}"
        )
        assert found == sorted(word for (word,) in truth)
    assert {one["name"] for one in variables} >= {"agent"}


@pytest.mark.parametrize("agent", ["travel", "refunds|support"])
def test_agents_can_be_chosen(watched: Watched, agent: str) -> None:
    words = ", ".join(f"'{word}'" for word in agent.split("|"))
    found = watched.asked("governance/Rules/hits", agent=agent)
    assert found == watched.counted.decisions(RULE, "middleware", f"agent in ({words})")


def test_no_alert_asks_for_a_series_that_is_not_there(watched: Watched) -> None:
    rules = [rule for group in watched.prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]]
    assert len(rules) == 12
    assert {rule["health"] for rule in rules} == {"ok"}
    broken = watched.prometheus.query('ALERTS{alertname="FootprintRuleBroken"}', watched.until)
    fired = {dict(labels)["footprint_middleware"] for labels in broken}
    assert fired == {"fraud-score", "credit-check", "half-written"}
