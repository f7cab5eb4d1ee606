"""Recorded conversations in, decisions out: what rules would have decided about what was really said."""

from __future__ import annotations

from footprint_observe.backtest.drive import Answering, run_backtest
from footprint_observe.backtest.dry_run import Finding, Looked, look_through
from footprint_observe.backtest.recorded import RecordedModel, RecordingEndedError
from footprint_observe.backtest.report import BacktestReport, Divergence
from footprint_observe.backtest.rules import Rules, load_rules
from footprint_observe.backtest.transcript import Transcript, TranscriptError, read_transcripts

__all__ = [
    "Answering",
    "BacktestReport",
    "Divergence",
    "Finding",
    "Looked",
    "RecordedModel",
    "RecordingEndedError",
    "Rules",
    "Transcript",
    "TranscriptError",
    "load_rules",
    "look_through",
    "read_transcripts",
    "run_backtest",
]
