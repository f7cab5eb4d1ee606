"""The page Prometheus fetches: real HTTP, read by Prometheus' own parser."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from shutil import which
from typing import Any

import prometheus_client
import pytest
from opentelemetry.exporter import prometheus as exporter
from prometheus_client import REGISTRY
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

import seeded
from asked import pays
from footprint_core import before_tool, deny
from footprint_core.errors import RecorderError
from footprint_observe import semconv
from recorders.otel_metrics import OtelMetrics
from recorders.otel_metrics_table import ALL, LABELS
from story import describe, run
from telling.metrics.figures import counted
from telling.metrics.test_metrics_push import agent_of, program
from telling.metrics.test_metrics_runs import pay
from telling.metrics.test_metrics_table import configured


def page(metrics: OtelMetrics, **headers: str) -> str:
    """The page as it is fetched."""
    assert metrics.url is not None
    request = urllib.request.Request(metrics.url, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def samples(text: str) -> list[Any]:
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def by(found: list[Any], name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """The sums of a series by these labels."""
    out: Counter[tuple[str, ...]] = Counter()
    for sample in found:
        if sample.name == name:
            out[tuple(sample.labels[label] for label in labels)] += sample.value
    return {key: number for key, number in out.items() if number}


def shown(name: str) -> str:
    """A name as Prometheus spells it."""
    return name.replace(".", "_")


def test_a_run_is_on_the_page_under_the_names_of_prometheus() -> None:
    refuses = before_tool("refund-ceiling")(lambda _: deny("too much"))
    with OtelMetrics.to_prometheus(port=0) as metrics:
        builder, _ = describe(pays(500), pay, watch=[metrics])
        run(builder.act(before_tool=[refuses]).build().run("go"))
        text = page(metrics)
    line = (
        'footprint_decisions_total{footprint_middleware="refund-ceiling",footprint_moment="before-tool",'
        'footprint_outcome="deny",gen_ai_agent_name="tested"} 1.0'
    )
    assert line in text.splitlines()
    assert 'footprint_run_duration_seconds_bucket{footprint_run_outcome="answered"' in text


def test_figures_of_many_runs_are_those_of_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "l.db"
    told = tuple(story for story in seeded.STORIES if not story.dies and story.then is None)
    monkeypatch.setattr(seeded, "STORIES", told)
    with OtelMetrics.to_prometheus(port=0, ledger=path) as metrics:
        seeded.seed(path, runs=len(told), watchers=[metrics])
        found = samples(page(metrics))
    assert by(found, "footprint_decisions_total", "footprint_outcome", "footprint_middleware") == counted(
        path, "SELECT outcome, middleware, count(*) FROM decisions WHERE NOT shadow GROUP BY 1, 2"
    )
    assert by(found, "footprint_runs_total", "footprint_run_outcome") == counted(
        path, "SELECT outcome, count(*) FROM facts WHERE kind = 'segment.ended' GROUP BY 1"
    )
    (pending,) = by(found, "footprint_approvals_pending").values()
    assert pending > 0
    names = {sample.name for sample in found}
    for one in ALL:
        suffix = {"s": "_seconds"}.get(one.unit, "")
        suffix += {"counter": "_total", "observed counter": "_total", "histogram": "_bucket"}.get(
            one.kind, ""
        )
        if not one.name.startswith("footprint.recorder."):
            assert shown(one.name) + suffix in names


def test_no_label_but_those_of_the_table_is_on_the_page(tmp_path: Path) -> None:
    with OtelMetrics.to_prometheus(port=0, ledger=tmp_path / "l.db") as metrics:
        seeded.seed(tmp_path / "l.db", runs=len(seeded.STORIES), watchers=[metrics])
        found = samples(page(metrics))
    labels = {label for sample in found if sample.name != "target_info" for label in sample.labels}
    assert labels <= {*map(shown, LABELS), "le"}
    assert [sample.labels["service_name"] for sample in found if sample.name == "target_info"] == [
        "footprint"
    ]


def test_the_page_can_be_read_as_open_metrics() -> None:
    with OtelMetrics.to_prometheus(port=0) as metrics:
        run(agent_of(metrics).run("go"))
        text = page(metrics, Accept="application/openmetrics-text; version=1.0.0")
    families = list(openmetrics.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]
    assert shown(semconv.RUNS) in {family.name for family in families}


def test_names_of_agents_cannot_break_the_page() -> None:
    with OtelMetrics.to_prometheus(port=0) as metrics:
        for name in ('a"b\\c\nd', "\ud800", "naïve ☃", "x" * 1000):
            metrics.on_event(configured(name))
        found = samples(page(metrics))
    agents = {sample.labels["gen_ai_agent_name"] for sample in found if sample.name == "footprint_runs_total"}
    assert {'a"b\\c?d', "?", "naïve ☃", "x" * 256} <= agents


def test_the_registry_of_the_process_is_left_alone() -> None:
    before = prometheus_client.generate_latest(REGISTRY).count(b"\n# TYPE")
    with OtelMetrics.to_prometheus(port=0) as metrics:
        run(agent_of(metrics).run("go"))
        assert prometheus_client.generate_latest(REGISTRY).count(b"\n# TYPE") == before
        assert "python_info" not in page(metrics)


def test_two_pages_in_one_process_are_two() -> None:
    with OtelMetrics.to_prometheus(port=0) as one, OtelMetrics.to_prometheus(port=0) as other:
        run(agent_of(one).run("go"))
        assert by(samples(page(one)), "footprint_runs_total")
        assert not by(samples(page(other)), "footprint_runs_total")


def test_pages_that_are_fetched_at_once_have_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pages: list[str] = []
    collected, made = threading.Event(), threading.Event()
    kind = exporter._CustomCollector
    add, translate = kind.add_metrics_data, kind._translate_metric

    def added(*given: Any) -> None:
        add(*given)
        if threads.pop() == "second":
            collected.set()
            made.wait(10)

    def translated(*given: Any, **named: Any) -> None:
        if not second.ident:
            # While the first page is made, the figures for a second one are collected.
            second.start()
            collected.wait(0.5)
        translate(*given, **named)

    threads = ["second", "first"]
    second = threading.Thread(target=lambda: pages.append(page(metrics)))
    monkeypatch.setattr(kind, "add_metrics_data", added)
    monkeypatch.setattr(kind, "_translate_metric", translated)
    with OtelMetrics.to_prometheus(port=0) as metrics:
        run(agent_of(metrics).run("go"))
        pages.append(page(metrics))
        made.set()
        second.join(10)
    assert len(pages) == 2
    for text in pages:
        lines = text.splitlines()
        assert len(lines) == len(set(lines)) > 100


def test_a_port_that_is_taken_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            RecorderError, match=f"listen at the port {port} of 127.0.0.1: somebody else has it"
        ):
            OtelMetrics.to_prometheus(port=port)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70000), ("127.0.0.1", -1), ("192.0.2.1", 0)])
def test_a_port_nobody_can_have_is_one_clear_error(host: str, port: int) -> None:
    with pytest.raises(RecorderError, match="Nobody can listen at the port"):
        OtelMetrics.to_prometheus(host=host, port=port)


def test_closing_frees_the_port_and_closing_twice_is_harmless() -> None:
    metrics = OtelMetrics.to_prometheus(port=0)
    assert metrics.url is not None
    port = int(metrics.url.split(":")[2].split("/")[0])
    agent = agent_of(metrics)
    run(agent.run("go"))
    assert metrics.flush(1.0)
    run(agent.close())
    metrics.close(3.0)
    with pytest.raises(urllib.error.URLError):
        page(metrics)
    OtelMetrics.to_prometheus(port=port).close(3.0)
    assert metrics.dropped == metrics.errors == metrics.queued == 0


def test_a_client_that_says_nothing_keeps_nobody_waiting_nor_the_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Whoever waited for the client would wait for longer than this test has.
    monkeypatch.setattr("recorders.otel_metrics_scrape._Client.timeout", 60.0)
    metrics = OtelMetrics.to_prometheus(port=0)
    assert metrics.url is not None
    port = int(metrics.url.split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port)):
        page(metrics)
        before = time.monotonic()
        metrics.close(60.0)
        assert time.monotonic() - before < 30


def test_an_agent_is_closed_while_its_page_is_fetched() -> None:
    metrics = OtelMetrics.to_prometheus(port=0)
    agent = agent_of(metrics)
    run(agent.run("go"))
    failed: list[BaseException] = []
    begun = threading.Event()

    def fetch() -> None:
        try:
            while True:
                samples(page(metrics))
                begun.set()
        except (OSError, urllib.error.URLError):
            pass
        except BaseException as error:  # noqa: BLE001 - it is what the test is about
            failed.append(error)

    fetching = threading.Thread(target=fetch)
    fetching.start()
    assert begun.wait(10)
    run(agent.close())
    fetching.join(10)
    assert not fetching.is_alive()
    assert failed == []


FORKS = """
import socket
metrics = OtelMetrics.to_prometheus(port=0)
port = int(metrics.url.split(":")[2].split("/")[0])
play(metrics)
import os
read, write = os.pipe()
child = os.fork()
if child == 0:
    assert os.read(read, 1) == b"x"
    assert metrics.url is None
    play(metrics)
    assert "This process was forked" in metrics.notices[0], metrics.notices
    # The parent gave the port back, and this process does not hold it.
    with socket.create_server(("127.0.0.1", port)):
        pass
    own = OtelMetrics.to_prometheus(port=0)
    play(own)
    import urllib.request
    assert b'answered",gen_ai_agent_name="tested"} 1.0' in urllib.request.urlopen(own.url, timeout=10).read()
    own.close(3.0)
    metrics.close(3.0)
    os._exit(0)
metrics.close(3.0)
os.write(write, b"x")
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_forked_process_lets_go_of_the_port_counts_nothing_and_says_so() -> None:
    ended = program(FORKS)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_without_the_packages_it_says_what_to_install() -> None:
    ended = program(
        """
import pytest
from footprint_core.errors import RecorderError
sys.modules["prometheus_client"] = None
with pytest.raises(RecorderError, match=r"install footprint-ledger\\[prometheus\\]"):
    OtelMetrics.to_prometheus(port=0)
"""
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_program_with_a_page_that_nobody_closed_ends() -> None:
    ended = program("play(OtelMetrics.to_prometheus(port=0))")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_promtool_has_nothing_to_say_against_the_page(tmp_path: Path) -> None:
    if which("promtool") is None:
        pytest.skip("promtool is not installed")
    with OtelMetrics.to_prometheus(port=0, ledger=tmp_path / "l.db") as metrics:
        seeded.seed(tmp_path / "l.db", runs=len(seeded.STORIES), watchers=[metrics])
        text = page(metrics)
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    complaints = [line for line in checked.stderr.splitlines() if line]
    assert complaints == []
