"""The tool calls of one run: what ran, with what, and how each ended."""

from __future__ import annotations

import os
from typing import TypedDict, cast

from footprint_core.facts import ToolFinished, ToolIntended
from footprint_core.facts.words import CallStatus
from footprint_core.plain import Json
from footprint_observe.query.database import query, reading
from footprint_observe.query.rows import or_none, rows
from footprint_observe.query.runs import meant

_CALLS = """
SELECT id, run_id, segment, position, recorded_at, iteration, tool_call_id, tool_name, tool_source,
  status, executed, in_doubt, decided_by_rule, error_class, duration_us
FROM tool_calls WHERE run_id = :run ORDER BY position
"""
_RAN = "f.run_id = :run AND f.kind IN ('tool.intended', 'tool.finished') ORDER BY f.position"


class CallRow(TypedDict):
    """A call, with the columns of the view `tool_calls`; see there and `WhyRow`."""

    id: int
    run_id: str
    segment: int
    position: int
    recorded_at: str
    iteration: int
    tool_call_id: str
    tool_name: str
    tool_source: str | None
    status: CallStatus | None
    executed: bool
    in_doubt: bool
    decided_by_rule: str | None
    error_class: str | None
    duration_us: int | None
    args: Json
    result: Json


def calls(path: str | os.PathLike[str], run: str = "last") -> list[CallRow]:
    """The calls the model asked for in a run, in order, whether they ran or not.

    Args:
        path: The ledger file.
        run: The run: its id, the beginning of one, or `last`.

    Raises:
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    args: dict[tuple[int, str], Json] = {}
    results: dict[tuple[int, str], Json] = {}
    with reading(path) as db:
        place = {"run": meant(db, run)}
        found = list(query(db, _CALLS, place))
        for row in rows(db, _RAN, place):
            fact = row.entry.fact
            if isinstance(fact, ToolIntended):
                args.setdefault((fact.iteration, fact.call_id), or_none(fact.args))
            elif isinstance(fact, ToolFinished):
                results[fact.iteration, fact.call_id] = or_none(fact.result)
    for one in found:
        key = (one["iteration"], one["tool_call_id"])
        one["executed"], one["in_doubt"] = bool(one["executed"]), bool(one["in_doubt"])
        one["args"], one["result"] = args.get(key), results.get(key)
    return cast("list[CallRow]", found)
