"""The panels that search for traces, asked of a real Jaeger: they find the traces the ledger knows of."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dashboard_queries import named
from recorders.otel_spans import OtelSpans
from seeded import STORIES, seed
from viewers.jaeger_server import Jaeger

SERVICE = "panels-of-traces"

TRUTHS = {
    "governance/Traces with a denial/A": "kind = 'decision' and outcome = 'deny'",
    "runs/Latest runs/A": "trace_id is not null",
}
"""The rows whose traces each search must find."""


@pytest.fixture(scope="module")
def ledger(jaeger: Jaeger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "ledger.db"
    spans = OtelSpans.to_otlp(jaeger.http, service_name=SERVICE)
    seed(path, len(STORIES), [spans], days=1)
    assert spans.flush(10)
    spans.close(5)
    return path


def test_every_search_is_asked_here() -> None:
    assert set(named("jaeger")) == set(TRUTHS)


@pytest.mark.parametrize("name", TRUTHS)
def test_a_search_finds_the_traces_the_ledger_knows_of(jaeger: Jaeger, ledger: Path, name: str) -> None:
    query = named("jaeger")[name]
    assert query.target["service"] == "$service"
    tags = dict(pair.split("=") for pair in query.text.split())
    found = {spans[0].trace_id for spans in jaeger.search(SERVICE, tags)}
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as file:
        truth = {trace for (trace,) in file.execute(f"select trace_id from facts where {TRUTHS[name]}")}
    assert found == truth
    assert len(truth) > 5
