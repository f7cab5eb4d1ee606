"""From a run to a collector, and what happens when that is gone, silent, or the process forks or ends."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.metrics import get_meter_provider
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)

from asked import pays
from footprint_core import Agent
from footprint_core.errors import RecorderError
from footprint_observe.recording import handovers
from recorders.otel_metrics import OtelMetrics
from story import describe, run
from telling.faults.collectors import gone, refusing, silent
from telling.metrics.receiver import MetricsReceiver, resource
from telling.metrics.test_metrics_runs import pay

RUNS = "footprint.runs"
OUTCOME = "footprint.run.outcome"
ROOT = Path(__file__).parents[3]


def agent_of(recorder: Any, *, runs: int = 1) -> Agent:
    return describe(pays(1) * runs, pay, watch=[recorder])[0].build()


def test_a_flush_pushes_what_was_counted() -> None:
    with MetricsReceiver() as receiver:
        metrics = OtelMetrics.to_otlp(receiver.endpoint, service_name="desk")
        agent = agent_of(metrics)
        run(agent.run("go"))
        assert metrics.flush(10.0)
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 1}
        assert receiver.sums("footprint.tools", "footprint.tool.status") == {("ran",): 1}
        assert resource(receiver.pushes[-1])["service.name"] == "desk"
        run(agent.close())
    assert (metrics.dropped, metrics.errors, metrics.notices) == (0, 0, ())


def test_units_and_buckets_are_pushed_as_the_table_says() -> None:
    with MetricsReceiver() as receiver:
        metrics = OtelMetrics.to_otlp(receiver.endpoint)
        run(agent_of(metrics).run("go"))
        metrics.close(10.0)
        found = receiver.metric("gen_ai.client.operation.duration")
        assert found.unit == "s"
        assert list(found.histogram.data_points[0].explicit_bounds)[:3] == [0.01, 0.02, 0.04]
        # Cumulative: a push that is lost is made up for by the next one.
        assert found.histogram.aggregation_temporality == 2
        assert receiver.metric(RUNS).sum.is_monotonic


def test_figures_are_pushed_again_and_again_also_when_nothing_happens() -> None:
    with MetricsReceiver() as receiver:
        metrics = OtelMetrics.to_otlp(receiver.endpoint, interval=0.01)
        run(agent_of(metrics).run("go"))
        receiver.wait(5)
        assert metrics.queued == 1
        metrics.close(10.0)
        assert (metrics.dropped, metrics.queued) == (0, 0)


def test_closing_pushes_once_more_and_closing_twice_is_harmless() -> None:
    with MetricsReceiver() as receiver:
        metrics = OtelMetrics.to_otlp(receiver.endpoint, interval=3600)
        run(agent_of(metrics, runs=2).run("go"))
        assert receiver.pushes == []
        metrics.close(10.0)
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 1}
        pushes = len(receiver.pushes)
        metrics.close(10.0)
        assert metrics.flush(1.0)
        run(agent_of(metrics).run("go"))
        assert len(receiver.pushes) == pushes
    assert metrics.dropped == 0


def test_a_block_keeps_it_open_for_every_agent_inside() -> None:
    with MetricsReceiver() as receiver:
        with OtelMetrics.to_otlp(receiver.endpoint) as metrics:
            for _ in range(2):
                agent = agent_of(metrics)
                run(agent.run("go"))
                run(agent.close())
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 2}


def test_nothing_is_pushed_before_the_first_run() -> None:
    with MetricsReceiver() as receiver:
        metrics = OtelMetrics.to_otlp(receiver.endpoint, interval=0.01)
        assert metrics.flush(1.0)
        metrics.close(10.0)
        assert receiver.pushes == []


@pytest.mark.parametrize("fault", [gone, silent])
def test_a_collector_that_is_gone_or_silent_holds_no_run_and_no_close_up(
    fault: Callable[[], AbstractContextManager[str]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whoever waited for an export would wait for longer than this test has.
    monkeypatch.setattr("recorders.otel_metrics_push.EXPORT_SECONDS", 60.0)
    with fault() as endpoint, caplog.at_level(logging.WARNING):
        metrics = OtelMetrics.to_otlp(endpoint, interval=0.01)
        agent = agent_of(metrics)
        before = time.monotonic()
        run(agent.run("go"))
        assert not metrics.flush(0.2)
        metrics.close(0.2)
        assert time.monotonic() - before < 30
        assert metrics.dropped == 1
        assert metrics.notices == (
            "The last figures could not be pushed; look at the collector and its address.",
        )
    assert "could not push its last figures" in caplog.text


def test_a_collector_that_refuses_and_then_does_not_loses_nothing() -> None:
    with MetricsReceiver(status=400) as receiver:
        metrics = OtelMetrics.to_otlp(receiver.endpoint, interval=0.01)
        run(agent_of(metrics).run("go"))
        receiver.wait(2)
        assert not metrics.flush(10.0)
        assert metrics.errors >= 1
        assert metrics.dropped == 0
        (notice,) = metrics.notices
        assert notice == "Figures cannot be pushed at the moment; look at the collector and its address."
        receiver.status = 200
        # The first flush may find a push under way that was refused.
        assert metrics.flush(10.0) or metrics.flush(10.0)
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 1}
        assert not metrics.notices
        metrics.close(10.0)
        assert metrics.dropped == 0


def test_an_outage_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with refusing() as endpoint, caplog.at_level(logging.WARNING):
        metrics = OtelMetrics.to_otlp(endpoint, interval=3600)
        run(agent_of(metrics).run("go"))
        for _ in range(3):
            assert not metrics.flush(10.0)
        assert metrics.errors == 3
        assert len([one for one in caplog.records if one.name.startswith("opentelemetry")]) == 1
        metrics.close(10.0)


def test_a_recorder_of_figures_is_seen_among_the_recorders_and_in_health() -> None:
    with MetricsReceiver(status=400) as receiver:
        metrics = OtelMetrics.to_otlp(receiver.endpoint, interval=3600, id="figures")
        agent = agent_of(metrics)
        run(agent.run("go"))
        assert not metrics.flush(10.0)
        (health,) = agent.health().watchers
        assert (health.watcher, health.errors, health.dropped) == ("figures", 1, 0)
        assert [queue.errors for queue in handovers() if queue.id == "figures"] == [1]
        receiver.status = 200
        run(agent.close())


def test_no_global_provider_is_set() -> None:
    before = get_meter_provider()
    with MetricsReceiver() as receiver:
        OtelMetrics.to_otlp(receiver.endpoint).close(1.0)
    assert get_meter_provider() is before


@pytest.mark.parametrize("endpoint", ["collector:4318", "ftp://a", "http://", "", 7])
def test_an_endpoint_that_is_none_is_refused(endpoint: Any) -> None:
    with pytest.raises(RecorderError, match="That is no OTLP endpoint"):
        OtelMetrics.to_otlp(endpoint)


@pytest.mark.parametrize("interval", [0, -1.0, float("inf"), float("nan")])
def test_an_interval_that_is_no_time_is_refused(interval: float) -> None:
    with pytest.raises(RecorderError, match="takes seconds above 0"):
        OtelMetrics.to_otlp(interval=interval)


def test_an_environment_that_no_exporter_can_follow_is_refused_without_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zanzibar")
    with pytest.raises(RecorderError, match="OTEL_EXPORTER_OTLP_") as refused:
        OtelMetrics.to_otlp("grpc://127.0.0.1:1")
    assert "zanzibar" not in str(refused.value)


def test_a_provider_that_records_nothing_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    metrics = OtelMetrics()
    agent = agent_of(metrics, runs=2)
    for _ in range(2):
        run(agent.run("go"))
    (health,) = agent.health().watchers
    (notice,) = health.notices
    assert "a meter provider that records nothing" in notice
    assert caplog.text.count(notice) == 1


def test_a_provider_that_was_set_later_is_known_to_record() -> None:
    ended = program(
        """
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
metrics = OtelMetrics()
assert "records nothing" in metrics.notices[0]
reader = InMemoryMetricReader()
set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
play(metrics)
assert metrics.notices == ()
assert "footprint.runs" in reader.get_metrics_data().to_json()
"""
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def program(text: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    head = """
import os, sys
from asked import pays
from recorders.otel_metrics import OtelMetrics
from story import describe, run
from telling.metrics.test_metrics_runs import pay

def play(metrics):
    run(describe(pays(1), pay, watch=[metrics])[0].build().run("go"))
"""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", f"{head}\n{text}"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_figures_that_nobody_flushed_are_pushed_when_the_program_ends() -> None:
    with MetricsReceiver() as receiver:
        ended = program(f"play(OtelMetrics.to_otlp({receiver.endpoint!r}, interval=3600))")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 1}


def test_a_program_ends_within_its_budget_when_the_collector_is_silent() -> None:
    with silent() as endpoint:
        before = time.monotonic()
        ended = program(
            f"""
from recorders import otel_metrics_push
# Longer than the program is waited for.
otel_metrics_push.EXPORT_SECONDS = 3600.0
play(OtelMetrics.to_otlp({endpoint!r}, interval=3600))
"""
        )
        assert ended.returncode == 0
        assert time.monotonic() - before < 30


def test_nothing_is_loaded_before_it_is_used() -> None:
    ended = program(
        """
heavy = ("grpc", "requests", "prometheus_client", "opentelemetry.exporter")
OtelMetrics(meter_provider=None)
found = [name for name in sys.modules if name.startswith(heavy)]
assert not found, found
"""
    )
    assert (ended.returncode, ended.stderr) == (0, "")


class Came(MetricsServiceServicer):
    """A collector over gRPC."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def Export(  # noqa: N802 - the service calls it so
        self, request: ExportMetricsServiceRequest, context: Any
    ) -> ExportMetricsServiceResponse:
        for group in request.resource_metrics:
            self.names += [metric.name for scope in group.scope_metrics for metric in scope.metrics]
        return ExportMetricsServiceResponse()


def test_figures_are_pushed_over_grpc_too() -> None:
    came = Came()
    server = grpc.server(ThreadPoolExecutor(1))
    add_MetricsServiceServicer_to_server(came, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        metrics = OtelMetrics.to_otlp(f"grpc://127.0.0.1:{port}", interval=3600)
        run(agent_of(metrics).run("go"))
        metrics.close(10.0)
    finally:
        server.stop(None).wait(10)
    assert metrics.dropped == 0
    assert RUNS in came.names
