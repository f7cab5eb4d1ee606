"""The questions that wait for a person; what they are about is sealed, and opened only with keys."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

from footprint_core import plain
from footprint_core.errors import KeyRingError
from footprint_core.plain import Json
from footprint_observe.keyring import KeyRing, Sealed
from footprint_observe.query.database import Record, ask
from footprint_observe.query.filters import checked_limit, checked_text
from footprint_observe.query.times import When, instant, microseconds
from footprint_observe.store.pauses import open_body

# The index of pauses alone says which were neither answered nor closed, so that a row is read only of those.
_OPEN = """
with unanswered as materialized (
  select p.id from facts as p
  where p.kind = 'pause.opened' and p.pause_id is not null and not exists (
    select 1 from facts as x where x.kind in ('pause.answered', 'pause.closed') and x.pause_id = p.pause_id
  )
)
select
  v.pause_id, v.run_id, v.kind, v.tool_name, v.tool_source, v.tool_call_id, v.middleware,
  v.opened_at, v.expires_at,
  f.recorded_us, json_extract(f.extra, '$.expires_us') as expires_us,
  b.key_id, {sealed}
from pauses as v
join facts as f on f.id = v.id
left join pause_bodies as b on b.pause_id = v.pause_id and b.run_id = v.run_id
where v.id in unanswered and v.open and {where}
order by v.id desc limit :limit
"""


def pending(
    path: str | os.PathLike[str],
    *,
    keys: KeyRing | None = None,
    since: When | None = None,
    until: When | None = None,
    rule: str | None = None,
    tool: str | None = None,
    source: str | None = None,
    limit: int = 50,
    now: datetime | None = None,
) -> list[Record]:
    """The newest questions that are open, the newest last.

    Each is a row of the view `pauses`, with `age_seconds`, with `expired` (it takes no answer any more) and
    with `key_id`, which is None where the file has no body of it. With keys also with `question` (of a
    rule), `args` (those that will run so far) and `shown` (the rule's detail, the tool's evidence, or what
    the tool paused with), and with `problem`, which says why these three are None, or is None.

    Args:
        path: The ledger file.
        keys: What the bodies are opened with; without them nothing is opened.
        since: Opened from this time on.
        until: Opened before this time; a date is the whole day.
        rule: Only questions of this rule.
        tool: Only about calls of this tool.
        source: Only about tools of this server.
        limit: At most so many.
        now: What ages are counted to; the present when absent.

    Raises:
        QuestionError: A time is none, or another argument is none of its kind.
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    checked_limit(limit)
    for name, value in (("rule", rule), ("tool", tool), ("source", source)):
        checked_text("" if value is None else value, f"The filter {name}")
    present = datetime.now(UTC) if now is None else now
    given = {"middleware": rule, "tool_name": tool, "tool_source": source}
    values: dict[str, Any] = {column: value for column, value in given.items() if value is not None}
    terms = [f"v.{column} = :{column}" for column in values]
    if since is not None:
        terms.append("f.recorded_us >= :since")
        values["since"] = microseconds(instant(since, now=present))
    if until is not None:
        terms.append("f.recorded_us < :until")
        values["until"] = microseconds(instant(until, end=True, now=present))
    sealed = "null as nonce, null as body" if keys is None else "b.nonce, b.body"
    sql = _OPEN.format(sealed=sealed, where=" and ".join(terms) or "1")
    found = ask(path, sql, {**values, "limit": limit})
    return [_told(row, keys, microseconds(present)) for row in reversed(found)]


def _told(row: Record, keys: KeyRing | None, now_us: int) -> Record:
    opened_us, expires_us = row.pop("recorded_us"), row.pop("expires_us")
    if row["opened_at"] is None:
        # No calendar has the time of a row that somebody changed.
        row["opened_at"] = str(opened_us)
    nonce, body = row.pop("nonce"), row.pop("body")
    row["expired"] = expires_us is not None and now_us > expires_us
    row["age_seconds"] = max(0, now_us - opened_us) // 1_000_000
    if keys is None:
        return row
    row.update(question=None, args=None, shown=None, problem="the ledger has no body of it")
    if row["key_id"] is not None:
        sealed = Sealed(key_id=row["key_id"], nonce=nonce, body=body)
        try:
            row |= _asked(open_body(row["run_id"], row["pause_id"], sealed, keys))
        except KeyRingError as error:
            row["problem"] = str(error)
    return row


def _asked(body: dict[str, Json]) -> Record:
    """What a person is shown, from the body of a pause; see `loop.show_pause`."""
    call = body.get("call")
    if not plain.is_object(call):
        return {"problem": "its body is none that this release reads"}
    args = call.get("checked") if call.get("kind") == "check-in" else call.get("args")
    return {"question": call.get("question"), "args": args, "shown": call.get("shown"), "problem": None}
