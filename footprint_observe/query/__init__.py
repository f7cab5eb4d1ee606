"""Questions to a ledger file, with the names of the commands; each opens the file for reading only.

Records are plain dicts: values as they were (not JSON text), flags as booleans, times as ISO 8601 in UTC.
What `footprint ... --json` prints is these records, one a line. Filters are keyword arguments, the same for
every question: `since`, `until`, `rule`, `version`, `outcome`, `moment`, `tool`, `source`, `person`,
`shadow`, `changed` (see `Filters`). A text with a NUL character comes back whole, which SQL cuts there.
"""

from __future__ import annotations

from footprint_observe.query.calls import CallRow, calls
from footprint_observe.query.decisions import decisions
from footprint_observe.query.filters import Filters
from footprint_observe.query.find import Found, find
from footprint_observe.query.follow import follow
from footprint_observe.query.pending import pending
from footprint_observe.query.refusals import (
    NoSuchCallError,
    NoSuchRunError,
    NotInLedgerError,
    QuestionError,
    QuestionTimeoutError,
)
from footprint_observe.query.replay import Replay, replay
from footprint_observe.query.rows import DecisionRow
from footprint_observe.query.runs import RunRow, run, runs
from footprint_observe.query.sql import sql
from footprint_observe.query.timeline import timeline
from footprint_observe.query.times import When
from footprint_observe.query.totals import totals
from footprint_observe.query.why import WhyRow, why

__all__ = [
    "CallRow",
    "DecisionRow",
    "Filters",
    "Found",
    "NoSuchCallError",
    "NoSuchRunError",
    "NotInLedgerError",
    "QuestionError",
    "QuestionTimeoutError",
    "Replay",
    "RunRow",
    "When",
    "WhyRow",
    "calls",
    "decisions",
    "find",
    "follow",
    "pending",
    "replay",
    "run",
    "runs",
    "sql",
    "timeline",
    "totals",
    "why",
]
