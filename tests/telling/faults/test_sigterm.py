"""A process is asked to end: with a usual handler nothing is lost, without one no row of the ledger is."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from otlp_receiver import OtlpReceiver
from telling.faults.processes import agents, played, rows, told
from telling.faults.turns import SPANS

TURNS = 3


@pytest.mark.parametrize("how", ["is_stopped", "is_cancelled", "closes_in_handler"])
def test_with_a_handler_everything_arrives_once(how: str, tmp_path: Path) -> None:
    with OtlpReceiver() as collector:
        ended = played(how, collector.endpoint, tmp_path, signalled=signal.SIGTERM)
        assert (ended.code, ended.said) == (0, "")
        assert len(ended.runs) == TURNS
        assert agents(collector.spans) == told(tmp_path) == sorted(ended.runs)
        assert len({span.span_id for span in collector.spans}) == len(collector.spans) == TURNS * SPANS


def test_without_a_handler_the_ledger_has_every_row_and_nothing_is_said(tmp_path: Path) -> None:
    with OtlpReceiver() as collector:
        ended = played("is_killed", collector.endpoint, tmp_path, signalled=signal.SIGTERM)
        assert (ended.code, ended.said) == (-signal.SIGTERM, "")
        assert sorted(rows(tmp_path)) == sorted(ended.runs)
        # What was queued is gone, and cannot say so; what had been shipped is whole.
        assert set(agents(collector.spans)) <= set(ended.runs)
