"""The panels that search for traces, asked of a real Jaeger: they find the newest the ledger knows of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from browsed_rows import Counted
from dashboard_queries import named
from footprint_core.events import Event
from footprint_core.facts import TraceRef
from recorders.otel_spans import OtelSpans
from seeded import seed
from viewers.jaeger_server import Jaeger
from viewers.jaeger_spans import spans_of

SERVICE = "panels-of-traces"
QUERIES = named("jaeger")

DENIED = "governance/Traces with a denial/A"
LATEST = "runs/Latest runs/A"


class Patient:
    """Spans that wait for Jaeger now and then, since 500 runs at once are more than a queue holds."""

    id = "patient"

    def __init__(self, spans: OtelSpans) -> None:
        self._spans = spans
        self._ended = 0

    def on_event(self, event: Event, /) -> None:
        self._spans.on_event(event)
        self._ended += event.type == "agent.turn_end"
        if event.type == "agent.turn_end" and self._ended % 25 == 0:
            assert self._spans.flush(10)

    def correlation(self, run_id: str, segment: int, /) -> TraceRef | None:
        return self._spans.correlation(run_id, segment)


@pytest.fixture(scope="module")
def counted(jaeger: Jaeger, tmp_path_factory: pytest.TempPathFactory) -> Counted:
    path: Path = tmp_path_factory.mktemp("traces") / "ledger.db"
    spans = OtelSpans.to_otlp(jaeger.http, service_name=SERVICE)
    seed(path, watchers=[Patient(spans)])
    assert spans.flush(10)
    assert spans.dropped == 0
    spans.close(5)
    return Counted(path)


def searched(jaeger: Jaeger, target: dict[str, Any]) -> list[str]:
    """The ids of the traces that a panel lists, as Grafana asks for them."""
    assert target["service"] == "$service"
    tags = dict(pair.split("=") for pair in target["tags"].split())
    asked = {"service": SERVICE, "tags": json.dumps(tags), "limit": target["limit"]}
    asked |= {name: target[name] for name in ("operation", "minDuration", "maxDuration") if target.get(name)}
    found = jaeger.get("/api/traces", **asked)["data"] or ()
    return [spans_of(trace)[0].trace_id for trace in found]


def newest(counted: Counted, name: str) -> list[str]:
    """The traces that have what a panel asks for, the newest first."""
    begun: dict[str, bool] = {}
    for fact in counted.facts:
        if fact["trace_id"] is not None:
            denies = fact["kind"] == "decision" and fact["outcome"] == "deny"
            begun[fact["trace_id"]] = begun.get(fact["trace_id"], name == LATEST) or denies
    return [trace for trace, has in begun.items() if has][::-1]


@pytest.mark.parametrize("name", QUERIES)
def test_a_panel_lists_the_newest_traces_the_ledger_knows_of(
    jaeger: Jaeger, counted: Counted, name: str
) -> None:
    target = QUERIES[name].target
    found, truth = searched(jaeger, target), newest(counted, name)
    assert len(truth) > 2 * target["limit"]
    # To Jaeger's limit a trace counts once for each of its spans that has the tags.
    assert target["limit"] / 2 < len(found) <= target["limit"]
    assert set(found) == set(truth[: len(found)])


def test_every_search_is_asked_here() -> None:
    assert set(QUERIES) == {DENIED, LATEST}
