"""What the panels that ask Prometheus must come to, counted from the base tables of a ledger file."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

Labels = tuple[tuple[str, str], ...]
Vector = dict[Labels, float]

AGENT = "gen_ai_agent_name"
ANSWER = "footprint_pause_answer"
MODEL = "gen_ai_request_model"
MOMENT = "footprint_moment"
OUTCOME = "footprint_outcome"
RULE = "footprint_middleware"
RUN_OUTCOME = "footprint_run_outcome"
STATUS = "footprint_tool_status"
STRATEGY = "footprint_redaction_strategy"
TOKEN = "gen_ai_token_type"
TOOL = "gen_ai_tool_name"

_AGENTS = """
with runs_of as (
  select run_id, extra ->> '$.agent_name' as agent, extra ->> '$.model' as model
  from facts where kind = 'run.configured' group by run_id
)
"""

Bounds = Callable[[str], Sequence[float]]
"""The upper bounds of the buckets of a histogram."""


def by(label: str, counts: Iterable[tuple[Any, Any]]) -> Vector:
    """A vector by one label."""
    added: Counter[str] = Counter()
    for word, count in counts:
        added[word] += count
    return {((label, word),): float(count) for word, count in added.items()}


def alone(value: float) -> Vector:
    """A vector of one series without labels."""
    return {(): float(value)}


def quantile(q: float, values: Sequence[float], bounds: Sequence[float]) -> float:
    """A quantile as a histogram with these bounds has it: straight lines within a bucket."""
    counts = [sum(value <= bound for value in values) for bound in bounds]
    rank = q * len(values)
    place = next((n for n, count in enumerate(counts) if count >= rank), None)
    if place is None:
        return bounds[-1]
    low, below = (bounds[place - 1], counts[place - 1]) if place else (0.0, 0)
    return low + (bounds[place] - low) * (rank - below) / (counts[place] - below)


class Counted:
    """A file, counted.

    Args:
        file: The file.
        bounds: What tells the buckets of a histogram.
    """

    def __init__(self, file: sqlite3.Connection, bounds: Bounds) -> None:
        self._file = file
        self._bounds = bounds

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a query that may use `runs_of`."""
        return self._file.execute(_AGENTS + text).fetchall()

    def decisions(self, label: str, column: str, where: str = "1") -> Vector:
        """Decisions that counted, by a column."""
        return by(
            label,
            self.rows(
                f"""select {column}, count(*) from facts join runs_of using (run_id)
                where kind = 'decision' and not shadow and {where} group by 1"""
            ),
        )

    def decided(self, where: str = "1") -> float:
        """How many of them."""
        return sum(self.decisions("", "moment", where).values())

    def broken(self) -> Vector:
        """Answers that were none, by rule."""
        return by(
            RULE,
            self.rows(
                """select middleware, count(*) from facts
                where kind = 'decision' and answer in ('raised', 'timed-out', 'malformed') group by 1"""
            ),
        )

    def segments(self, column: str, where: str = "1") -> list[tuple[Any, ...]]:
        """The ends watchers are told of: one a segment. A paused one that is given up has ended before."""
        return self.rows(
            f"""select {column} from facts as e join runs_of using (run_id)
            where e.kind = 'segment.ended' and {where} and not exists (
              select 1 from facts as b where b.run_id = e.run_id and b.segment = e.segment
                and b.kind = 'segment.ended' and b.position < e.position
            )"""
        )

    def calls(self) -> Counter[str]:
        """Calls by how they ended, and how often one paused."""
        found = self.rows("select status, count(*) from facts where kind = 'call.answered' group by 1")
        paused = self.rows("select 'paused', count(*) from facts where kind = 'pause.opened'")
        return Counter(dict([*found, *paused]))

    def tokens(self) -> Vector:
        """Tokens by model and kind."""
        found: Vector = {}
        for kind in ("input", "output"):
            for model, count in self.rows(
                f"""select model, sum(extra ->> '$.usage.{kind}') from facts join runs_of using (run_id)
                where kind = 'model.replied' group by 1"""
            ):
                found[((MODEL, model), (TOKEN, kind))] = count
        return found

    def quantiles(self, q: float, metric: str, label: str, values: Iterable[tuple[Any, ...]]) -> Vector:
        """A quantile of a histogram, by a label."""
        sorted_by: dict[str, list[float]] = defaultdict(list)
        for word, value in values:
            sorted_by[word].append(value)
        bounds = self._bounds(metric)
        assert math.isfinite(bounds[-1])
        return {
            ((label, word),) if label else (): quantile(q, found, bounds) for word, found in sorted_by.items()
        }
