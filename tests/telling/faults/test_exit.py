"""The interpreter exits and nobody closed anything: what is queued ships in three seconds, or is counted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from otlp_receiver import OtlpReceiver
from telling.faults.collectors import Fault, gone, silent
from telling.faults.processes import agents, played, rows, told
from telling.faults.turns import SPANS

TURNS = 3
EXIT_SECONDS = 3.0
START_SECONDS = 20.0


def test_what_is_queued_arrives(tmp_path: Path) -> None:
    with OtlpReceiver() as collector:
        ended = played("exits", collector.endpoint, tmp_path)
        assert (ended.code, ended.said) == (0, "")
        assert agents(collector.spans) == told(tmp_path) == sorted(ended.runs)
        assert len(collector.spans) == TURNS * SPANS


@pytest.mark.parametrize("fault", [gone, silent])
def test_what_cannot_arrive_is_counted_and_takes_nothing_from_the_other_recorders(
    fault: Fault, tmp_path: Path
) -> None:
    with fault() as endpoint:
        before = time.monotonic()
        ended = played("exits", endpoint, tmp_path)
        assert time.monotonic() - before < EXIT_SECONDS + START_SECONDS
    assert ended.code == 0
    *theirs, last = ended.said.splitlines()
    assert last == f"The recorder otel_spans lost {TURNS * SPANS} items when the program ended."
    assert len(theirs) <= 1
    assert "Traceback" not in ended.said
    assert told(tmp_path) == sorted(rows(tmp_path)) == sorted(ended.runs)


def test_who_leaves_without_an_exit_loses_what_is_queued_and_no_row(tmp_path: Path) -> None:
    with OtlpReceiver() as collector:
        ended = played("leaves", collector.endpoint, tmp_path)
        assert (ended.code, ended.said) == (0, "")
        assert sorted(rows(tmp_path)) == sorted(ended.runs)
        assert set(agents(collector.spans)) <= set(ended.runs)
