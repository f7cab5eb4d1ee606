"""Counts while conversations are played, and makes the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import MappingProxyType
from typing import Literal, TypeAlias

from footprint_core.decisions import Decision
from footprint_core.moments import LOOP_MOMENTS
from footprint_observe.backtest.report import BacktestReport, Divergence, RowKey

Counted: TypeAlias = Literal[
    "conversations",
    "runs",
    "unplayed",
    "executed",
    "refused",
    "approved",
    "declined",
    "stopped",
    "denied_messages",
    "denied_answers",
    "unanswered_messages",
    "unanswered_results",
]
"""What is counted one by one; the words of the report."""


class Tally:
    """What was counted so far, over all conversations."""

    def __init__(self) -> None:
        self._counts: Counter[Counted] = Counter()
        self._rows: Counter[RowKey] = Counter()
        self._divergences: list[Divergence] = []

    def count(self, what: Counted, times: int = 1) -> None:
        """Count something."""
        self._counts[what] += times

    def rows(self, rows: Iterable[Decision]) -> None:
        """Count the rows of a run."""
        self._rows.update((row.middleware, row.moment, row.outcome) for row in rows)

    def diverged(self, divergence: Divergence) -> None:
        """Mark a divergence."""
        self._divergences.append(divergence)

    def report(self) -> BacktestReport:
        """Everything counted so far."""
        n = self._counts
        return BacktestReport(
            conversations=n["conversations"],
            runs=n["runs"],
            unplayed=n["unplayed"],
            calls=n["executed"] + n["refused"],
            executed=n["executed"],
            refused=n["refused"],
            asked=n["approved"] + n["declined"] + n["stopped"],
            approved=n["approved"],
            declined=n["declined"],
            stopped=n["stopped"],
            denied_messages=n["denied_messages"],
            denied_answers=n["denied_answers"],
            unanswered_messages=n["unanswered_messages"],
            unanswered_results=n["unanswered_results"],
            rows=MappingProxyType({key: self._rows[key] for key in sorted(self._rows, key=_order)}),
            divergences=tuple(self._divergences),
        )


def _order(key: RowKey) -> tuple[int, str, str]:
    rule, moment, outcome = key
    return LOOP_MOMENTS.index(moment), rule, outcome
