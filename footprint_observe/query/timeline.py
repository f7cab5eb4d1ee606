"""Everything one run did, in order: messages, model calls, decisions, tools, questions, its end."""

from __future__ import annotations

import os

from footprint_observe.query.database import Record, ask

_TIMELINE = """
select
  f.position, f.segment, f.kind, f.recorded_us, f.iteration, f.moment, f.middleware, f.outcome, f.changed,
  f.tool_name, f.tool_call_id, f.status, f.answer, f.error_class, f.duration_us,
  ifnull(json_extract(f.extra, '$.cancelled'), 0) as cancelled,
  (select v.json from vals v where v.fact_id = f.id and v.field = 'why') as why,
  (select v.json from vals v where v.fact_id = f.id and v.field = 'before') as before,
  (select v.json from vals v where v.fact_id = f.id and v.field = 'after') as after,
  (select v.json from vals v where v.fact_id = f.id and v.field = 'text') as text,
  (select v.json from vals v where v.fact_id = f.id and v.field = 'args') as args,
  (select v.json from vals v where v.fact_id = f.id and v.field = 'result') as result
from facts f where f.run_id = :run_id order by f.position
"""


def timeline(path: str | os.PathLike[str], run_id: str) -> list[Record]:
    """The entries of a run with the values people read first, as JSON text.

    Raises:
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    return ask(path, _TIMELINE, {"run_id": run_id})
