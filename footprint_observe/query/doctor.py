"""What in a ledger file somebody may have to look after: runs without an end, open questions, its log."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TypedDict

from sqlite_utils import Database

from footprint_observe.query.database import query, reading
from footprint_observe.query.times import microseconds
from footprint_observe.store.connect import resolve

# Over the index of segments: a run's first row and its last one are found by key, its others are not read.
# A segment that ended as abandoned was closed by a process that went on with the run, unless a person gave
# the run up.
_WITHOUT_END = """
with ends as (
  select f.id, f.run_id, f.recorded_us as started_us, json_extract(f.extra, '$.agent_name') as agent,
    (select l.id from facts as l where l.run_id = f.run_id order by l.position desc limit 1) as last_id
  from facts as f where f.kind = 'run.configured' and f.position = 1
)
select e.run_id, e.agent, e.started_us, l.recorded_us as last_us, l.segment as segments, l.kind as last_kind
from ends as e join facts as l on l.id = e.last_id
where l.kind not in ('segment.ended', 'run.abandoned') or (
  l.outcome = 'abandoned'
  and not exists (select 1 from facts as a where a.kind = 'run.abandoned' and a.run_id = e.run_id)
)
order by e.id
"""
_IN_DOUBT = """
select iteration, tool_call_id, tool_name, tool_source from tool_calls
where run_id = :run and in_doubt order by id
"""
_OPEN_PAUSES = "select count(*) as n from pauses where open"


class DoubtfulCall(TypedDict):
    """A call that may have run.

    Attributes:
        iteration: The model call that asked for it.
        tool_call_id: The call.
        tool_name: Its tool.
        tool_source: The server that comes from, or None.
    """

    iteration: int
    tool_call_id: str
    tool_name: str
    tool_source: str | None


class EndlessRun(TypedDict):
    """A run that has no end: a process goes on with it, or died.

    Attributes:
        run_id: The run.
        agent: The agent's name.
        started_at: ISO 8601, UTC.
        last_at: When it was last heard of, the same.
        quiet_seconds: How long ago that is.
        segments: How many segments it has.
        last_kind: The kind of its last entry.
        in_doubt: Its calls that may have run, in order.
    """

    run_id: str
    agent: str
    started_at: str
    last_at: str
    quiet_seconds: int
    segments: int
    last_kind: str
    in_doubt: list[DoubtfulCall]


class Diagnosis(TypedDict):
    """What may need somebody.

    Attributes:
        endless: The runs without an end, the oldest first.
        open_pauses: How many questions wait for a person.
        log_bytes: The size of the log beside the file, which is emptied when nobody reads.
    """

    endless: list[EndlessRun]
    open_pauses: int
    log_bytes: int


def doctor(path: str | os.PathLike[str], *, now: datetime | None = None) -> Diagnosis:
    """What may need somebody. Nobody can tell here whether a process still goes on with a run.

    Args:
        path: The ledger file.
        now: What ages are counted to; the present when absent.

    Raises:
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    now_us = microseconds(datetime.now(UTC) if now is None else now)
    with reading(path) as db:
        endless = [_endless(db, row, now_us) for row in list(query(db, _WITHOUT_END, {}))]
        (pauses,) = query(db, _OPEN_PAUSES, {})
    log = resolve(path).with_name(f"{resolve(path).name}-wal")
    return Diagnosis(
        endless=endless,
        open_pauses=pauses["n"],
        log_bytes=log.stat().st_size if log.exists() else 0,
    )


def _endless(db: Database, row: dict[str, object], now_us: int) -> EndlessRun:
    run_id, started_us, last_us = str(row["run_id"]), int(str(row["started_us"])), int(str(row["last_us"]))
    calls = query(db, _IN_DOUBT, {"run": run_id})
    return EndlessRun(
        run_id=run_id,
        agent=str(row["agent"]),
        started_at=_iso(started_us),
        last_at=_iso(last_us),
        quiet_seconds=max(0, now_us - last_us) // 1_000_000,
        segments=int(str(row["segments"])),
        last_kind=str(row["last_kind"]),
        in_doubt=[
            DoubtfulCall(
                iteration=call["iteration"],
                tool_call_id=call["tool_call_id"],
                tool_name=call["tool_name"],
                tool_source=call["tool_source"],
            )
            for call in calls
        ],
    )


def _iso(us: int) -> str:
    return datetime.fromtimestamp(us / 1_000_000, UTC).isoformat(timespec="microseconds")
