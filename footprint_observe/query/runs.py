"""The runs of a ledger, and the one a person means."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias, TypedDict, Unpack, cast, get_args

from sqlite_utils import Database

from footprint_core.facts.words import RunOutcome
from footprint_core.plain import Json
from footprint_observe.query.database import Record, ask, query, reading, value_of
from footprint_observe.query.filters import Filters, checked_limit, checked_text, wanted
from footprint_observe.query.refusals import NoSuchRunError, QuestionError

Ended: TypeAlias = RunOutcome | Literal["open"]
"""How the last segment of a run ended; `open` while it has not."""

ENDED: tuple[Ended, ...] = (*get_args(RunOutcome), "open")
"""All of them."""


class RunRow(TypedDict):
    """A run, with the columns of the view `runs`.

    Attributes:
        id: The place of its first row in the file.
        run_id: The run, 32 hex characters.
        conversation_id: The conversation it is a turn of.
        agent: The agent's name.
        model: The model.
        started_at: ISO 8601, UTC.
        ended_at: The same; None while it has not ended.
        segments: How many segments it has.
        outcome: How the last one ended, or `open`.
        iterations: Model calls.
        input_tokens: Tokens read.
        output_tokens: Tokens written.
        decisions: Decisions filed.
        denials: Denials, those that were only recorded left out.
        asks: Questions to a person, those that were only recorded left out.
        follows: The run before it in the conversation.
        question: The message as the rules let it through.
        text: The answer.
    """

    id: int
    run_id: str
    conversation_id: str | None
    agent: str
    model: str
    started_at: str
    ended_at: str | None
    segments: int
    outcome: Ended
    iterations: int | None
    input_tokens: int | None
    output_tokens: int | None
    decisions: int
    denials: int
    asks: int
    follows: str | None
    question: Json
    text: Json


# The values as JSON, for SQL cuts a text at its first NUL.
_TEXTS = ("question", "text")
_SELECT = f"""
SELECT {", ".join(f"r.{name}" for name in RunRow.__annotations__ if name not in {*_TEXTS, "started_at"})},
  -- no calendar has the time of a row that somebody changed, and SQL makes NULL of it
  ifnull(r.started_at, (SELECT CAST(s.recorded_us AS TEXT) FROM facts AS s WHERE s.id = r.id)) AS started_at,
  (SELECT v.json FROM facts AS m JOIN vals AS v ON v.fact_id = m.id AND v.field = 'text'
   WHERE m.run_id = r.run_id AND m.kind = 'message.taken' ORDER BY m.position LIMIT 1) AS question,
  (SELECT v.json FROM facts AS e JOIN vals AS v ON v.fact_id = e.id AND v.field = 'text'
   WHERE e.run_id = r.run_id AND e.kind = 'segment.ended' ORDER BY e.position DESC LIMIT 1) AS text
FROM runs AS r
"""  # noqa: S608 - columns are ours
# From the index over the runs alone, which has their times.
_STARTED = "r.id IN (SELECT f.id FROM facts AS f WHERE {condition})"
_SOME_FACT = "EXISTS (SELECT 1 FROM facts AS f WHERE {condition})"
_LAST = "SELECT run_id FROM facts WHERE kind = 'run.configured' ORDER BY id DESC LIMIT 1"

# A range over run ids, which are hexadecimal, so that their index is used; one after another, for a run may
# have a million rows.
_MEANT = """
SELECT run_id FROM facts WHERE run_id >= :name AND run_id > :behind AND run_id < :name || 'g'
ORDER BY run_id LIMIT 1
"""


def runs(
    path: str | os.PathLike[str],
    *,
    limit: int = 20,
    ended: Ended | None = None,
    **filters: Unpack[Filters],
) -> list[RunRow]:
    """The newest runs, newest first.

    Args:
        path: The ledger file.
        limit: At most so many.
        ended: Only runs that ended like this, or are `open`.
        filters: `since` and `until` are about the start of a run; with any other, only runs that hold a
            decision which matches them.

    Raises:
        QuestionError: A filter is none there is.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    if ended is not None and ended not in ENDED:
        raise QuestionError(f"No run ends like that; use one of {', '.join(ENDED)}.")
    checked_limit(limit)
    started = wanted({"since": filters.pop("since", None), "until": filters.pop("until", None)})
    holding = wanted(filters)
    conditions: list[str] = []
    if started.conditions:
        conditions.append(_STARTED.format(condition=started.sql("f.kind = 'run.configured'")))
    if holding.conditions:
        of_run = holding.sql("f.run_id = r.run_id", "f.kind = 'decision'")
        conditions.append(_SOME_FACT.format(condition=of_run))
    if ended is not None:
        conditions.append("r.outcome = :ended")
    sql = f"{_SELECT} WHERE {' AND '.join(conditions) or '1'} ORDER BY r.id DESC LIMIT :limit"
    values = {**started.values, **holding.values, "ended": ended, "limit": limit}
    return [_record(row) for row in ask(path, sql, values)]


def run(path: str | os.PathLike[str], name: str = "last") -> RunRow:
    """One run, by its id, by the beginning of its id, or `last` for the newest.

    Raises:
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    with reading(path) as db:
        (row,) = query(db, f"{_SELECT} WHERE r.run_id = :run_id", {"run_id": meant(db, name)})
        return _record(row)


def meant(db: Database, name: str) -> str:
    """The id of the run that is meant by its id, by the beginning of its id, or by `last`.

    Raises:
        NoSuchRunError: No run is meant, or more than one.
        QuestionError: It is no text.
    """
    if checked_text(name, "The name of a run") == "last":
        found = list(query(db, _LAST, {}))
    else:
        found = list(query(db, _MEANT, {"name": name, "behind": ""})) if name else []
    if not found:
        raise NoSuchRunError("There is no such run in this ledger; `footprint runs` lists them.")
    run_id = str(found[0]["run_id"])
    if name not in {"last", run_id} and list(query(db, _MEANT, {"name": name, "behind": run_id})):
        raise NoSuchRunError("More than one run begins like that; give more of its id.")
    return run_id


def _record(row: Record) -> RunRow:
    for name in _TEXTS:
        row[name] = None if row[name] is None else value_of(row[name])
    return cast("RunRow", row)
