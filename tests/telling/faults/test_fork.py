"""An agent built in a parent runs in its children: every span arrives once, and the parent goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from otlp_receiver import OtlpReceiver
from telling.faults.collectors import by_connection
from telling.faults.grpc_collector import grpc_collector
from telling.faults.processes import agents, played, rows, told
from telling.faults.turns import SPANS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="There is no fork here.")


@pytest.mark.parametrize(("how", "turns"), [("preloads", 3 + 2 * 2), ("forks_while_busy", 4 + 4 * 2)])
def test_every_span_and_every_line_of_parent_and_children_arrives_once(
    how: str, turns: int, tmp_path: Path
) -> None:
    with OtlpReceiver() as collector:
        ended = played(how, collector.endpoint, tmp_path)
        assert (ended.code, ended.said) == (0, "")
        assert len(set(ended.runs)) == len(ended.runs) == turns
        assert agents(collector.spans) == told(tmp_path) == sorted(rows(tmp_path)) == sorted(ended.runs)
        assert len({span.span_id for span in collector.spans}) == len(collector.spans) == turns * SPANS


def test_no_connection_is_shared_by_two_processes(tmp_path: Path) -> None:
    with by_connection() as (endpoint, came):
        ended = played("preloads", endpoint, tmp_path)
        assert (ended.code, ended.said) == (0, "")
    users = [{ended.processes[run] for run in ended.runs if run.encode() in body} for body in came.values()]
    assert all(len(one) == 1 for one in users)
    assert set.union(*users) == set(ended.processes.values())


def test_grpc_is_spoken_in_parent_and_children(tmp_path: Path) -> None:
    with grpc_collector() as (came, port):
        ended = played("preloads", f"grpc://127.0.0.1:{port}", tmp_path)
        assert ended.code == 0, ended.said
        assert len(set(came.span_ids)) == len(came.span_ids) == len(ended.runs) * SPANS
