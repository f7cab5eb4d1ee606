"""What a forked process counts, what it lets go of, and that nothing its parent held holds it up."""

from __future__ import annotations

import os

import pytest

from telling.metrics.receiver import MetricsReceiver, instance
from telling.metrics.test_metrics_push import OUTCOME, RUNS, program

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")

FORKS = """
metrics = OtelMetrics.to_otlp({endpoint!r}, interval=3600)
for _ in range(3):
    play(metrics)
assert metrics.flush(10.0)
child = os.fork()
if child == 0:
    play(metrics)
    play(metrics)
    assert metrics.flush(10.0), metrics.notices
    metrics.close(10.0)
    os._exit(metrics.dropped)
assert os.waitpid(child, 0)[1] == 0
play(metrics)
metrics.close(10.0)
"""


@pytest.mark.parametrize("instance_id", [None, "pod-1"])
def test_a_forked_process_counts_from_zero_under_an_id_of_its_own(instance_id: str | None) -> None:
    named = {} if instance_id is None else {"OTEL_RESOURCE_ATTRIBUTES": f"service.instance.id={instance_id}"}
    with MetricsReceiver() as receiver:
        ended = program(FORKS.format(endpoint=receiver.endpoint), **named)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert len({instance(push) for push in receiver.pushes}) == 2
        # Four of the parent and two of the child.
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 6}
        assert receiver.sums("footprint.tools", "footprint.tool.status") == {("ran",): 6}


def test_a_forked_process_that_runs_no_agent_pushes_nothing() -> None:
    with MetricsReceiver() as receiver:
        ended = program(
            f"""
metrics = OtelMetrics.to_otlp({receiver.endpoint!r}, interval=3600)
play(metrics)
child = os.fork()
if child == 0:
    assert metrics.flush(1.0)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
metrics.close(10.0)
"""
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert len({instance(push) for push in receiver.pushes}) == 1
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 1}


@pytest.mark.parametrize("runs", [0, 1])
def test_a_forked_process_leaves_the_connection_of_its_parent_alone(runs: int) -> None:
    with MetricsReceiver() as receiver:
        ended = program(
            f"""
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
metrics = OtelMetrics.to_otlp({receiver.endpoint!r}, interval=3600)
play(metrics)
assert metrics.flush(10.0)
shut = []
OTLPMetricExporter.shutdown = lambda exporter: shut.append(exporter)
child = os.fork()
if child == 0:
    for _ in range({runs}):
        play(metrics)
    metrics.close(10.0)
    os._exit(100 + len(shut))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 100 + {runs}
metrics.close(10.0)
assert len(shut) == 1
"""
        )
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_recorder_that_was_closed_stays_closed_in_a_forked_process() -> None:
    with MetricsReceiver() as receiver:
        ended = program(
            f"""
metrics = OtelMetrics.to_otlp({receiver.endpoint!r}, interval=0.01)
play(metrics)
metrics.close(10.0)
child = os.fork()
if child == 0:
    play(metrics)
    metrics.close(10.0)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
        )
        assert ended.returncode == 0
        assert len(ended.stderr.splitlines()) == 1
        assert ended.stderr.startswith("OtelMetrics() was closed with the last agent that had it")
        assert receiver.sums(RUNS, OUTCOME) == {("answered",): 1}


METERED = """
import signal, threading
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from footprint_observe.recording import Handover
reader = InMemoryMetricReader()
metrics = OtelMetrics(meter_provider=MeterProvider([reader], shutdown_on_exit=False))

def total(name):
    groups = reader.get_metrics_data().resource_metrics
    found = [metric for group in groups for scope in group.scope_metrics for metric in scope.metrics]
    return sum(point.value for metric in found if metric.name == name for point in metric.data.data_points)
"""


@pytest.mark.parametrize("holder", ["_tally", "_instruments.runs", "_instruments.observed"])
def test_a_lock_that_is_held_during_a_fork_holds_no_child_up(holder: str) -> None:
    ended = program(
        f"""
{METERED}
play(metrics)
held, forked = threading.Event(), threading.Event()

def hold():
    with metrics.{holder}._lock:
        held.set()
        forked.wait(30)

threading.Thread(target=hold).start()
assert held.wait(10)
child = os.fork()
if child == 0:
    # Killed when it stands still.
    signal.alarm(20)
    play(metrics)
    assert total({RUNS!r}) == 2
    os._exit(0)
forked.set()
assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_losses_are_counted_on_in_a_forked_process_behind_a_provider_of_somebody_else() -> None:
    ended = program(
        f"""
{METERED}
queue = Handover(lambda batch: False, id="loses", batch=1, bound=9, delay=0.0)
for item in range(3):
    queue.put(item)
queue.flush(10.0)
assert total("footprint.recorder.dropped") == 3
child = os.fork()
if child == 0:
    assert total("footprint.recorder.dropped") == 3
    queue.put(1)
    queue.flush(10.0)
    assert total("footprint.recorder.dropped") == 4
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
queue.close(10.0)
"""
    )
    assert (ended.returncode, ended.stderr) == (0, "")
