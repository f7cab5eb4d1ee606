"""Which rows are meant: the filters every question about decisions takes, and where such rows can be.

Few filters have an index. The sums of `store.totals` stand in for one: they say of every block of rows what
rules, outcomes, tools and days its decisions have, so that the other blocks are not read. That is exact
also where rows are not in the order of their times: several processes write, and a row has the time at
which it was decided, not that of its commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TypedDict, cast, get_args

import msgspec
from sqlite_utils import Database

from footprint_core import plain
from footprint_core.decisions import Verdict
from footprint_core.moments import LoopMoment
from footprint_observe.query.refusals import QuestionError
from footprint_observe.query.times import When, instant, microseconds
from footprint_observe.store.totals import BLOCK, LARGE


class Filters(TypedDict, total=False):
    """Rows that match all that is given; what is absent or None matches everything.

    Attributes:
        since: From this time on.
        until: Before this time; a date is the whole day.
        rule: Of this rule.
        version: Of this version of a rule.
        outcome: allow, deny or ask.
        moment: At this moment.
        tool: About calls of this tool.
        source: About tools of this server.
        person: Decided by this person, exactly as the name was given.
        shadow: Only recorded, or not only recorded.
        changed: What went on differs from what came, or does not.
    """

    since: When | None
    until: When | None
    rule: str | None
    version: str | None
    outcome: Verdict | None
    moment: LoopMoment | None
    tool: str | None
    source: str | None
    person: str | None
    shadow: bool | None
    changed: bool | None


_COLUMNS = {
    "rule": "middleware",
    "version": "version",
    "outcome": "outcome",
    "moment": "moment",
    "tool": "tool_name",
    "source": "tool_source",
    "shadow": "shadow",
    "changed": "changed",
}
_SUMMED = ("rule", "version", "outcome", "moment", "tool", "shadow")
_PERSON = "f.id IN (SELECT p.fact_id FROM vals AS p WHERE p.field = 'decided_by' AND p.json = :person)"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Filters as SQL.

    Attributes:
        conditions: Conditions on a row `f` of `facts`.
        sums: Conditions on the sums of a block that may hold such decisions; none when it always may.
        values: Their named parameters.
        found: Whether an index finds the rows, so that no block need be looked for.
        since_us: The first microsecond that is meant, or None.
    """

    conditions: tuple[str, ...]
    sums: tuple[str, ...]
    values: Mapping[str, object]
    found: bool
    since_us: int | None

    def sql(self, *more: str) -> str:
        """All conditions on a row, as one."""
        return " AND ".join((*more, *self.conditions)) or "1"


def wanted(filters: Filters) -> Wanted:
    """The filters as SQL.

    Raises:
        QuestionError: A filter is none there is, or its value none it can have.
    """
    given = {name: value for name, value in cast("dict[str, object]", filters).items() if value is not None}
    unknown = given.keys() - Filters.__annotations__.keys()
    if unknown:
        raise QuestionError(f"There is no filter {min(unknown)!r}; use {', '.join(Filters.__annotations__)}.")
    _check(given)
    conditions = [f"f.{column} = :{name}" for name, column in _COLUMNS.items() if name in given]
    sums = [f"{_COLUMNS[name]} = :{name}" for name in _SUMMED if name in given]
    values = {name: int(v) if isinstance(v, bool) else v for name, v in given.items() if name in _COLUMNS}
    if "person" in given:
        conditions.append(_PERSON)
        values["person"] = plain.encode(given["person"]).decode()
    since = instant(cast("When", given["since"])) if "since" in given else None
    until = instant(cast("When", given["until"]), end=True) if "until" in given else None
    if since is not None:
        conditions.append("f.recorded_us >= :since")
        sums.append("day >= :first_day")
        values |= {"since": microseconds(since), "first_day": since.date().isoformat()}
    if until is not None:
        conditions.append("f.recorded_us < :until")
        sums.append("day <= :last_day")
        values |= {
            "until": microseconds(until),
            "last_day": (until - timedelta(microseconds=1)).date().isoformat(),
        }
    return Wanted(
        conditions=tuple(conditions),
        sums=tuple(sums),
        values=values,
        found="person" in given,
        since_us=None if since is None else microseconds(since),
    )


def _check(given: dict[str, object]) -> None:
    for name in ("rule", "version", "tool", "source", "person"):
        checked_text(given.get(name, ""), f"The filter {name}")
    for name, words in (("outcome", get_args(Verdict)), ("moment", get_args(LoopMoment))):
        if name in given and given[name] not in words:
            raise QuestionError(f"That is no {name}; use one of {', '.join(words)}.")
    for name in ("shadow", "changed"):
        if name in given and not isinstance(given[name], bool):
            raise QuestionError(f"The filter {name} is True or False.")


def checked_text(value: object, what: str) -> str:
    """A text that is asked with, which SQLite can take.

    Raises:
        QuestionError: It is no text, or has half a character, as bytes that are no UTF-8 become.
    """
    if not isinstance(value, str):
        raise QuestionError(f"{what} is a text.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise QuestionError(f"{what} is no valid text; give it in UTF-8.") from None
    return value


def checked_limit(value: object) -> None:
    """See that a limit is one.

    Raises:
        QuestionError: It is no whole number from 1.
    """
    if type(value) is not int or value < 1:
        raise QuestionError("The limit is a whole number, 1 or more.")


def stretches(db: Database, filters: Wanted, last: int) -> Iterator[tuple[int, int]]:
    """Where decisions that match can be, newest first: ids above the first number and up to the second.

    Args:
        db: The file.
        filters: What is asked for.
        last: The id of the newest row that is asked about.
    """
    if not filters.sums or filters.found:
        yield 0, last
        return
    # A block is summed when it is full; what is behind the last full one has to be looked through.
    summed, large = last // BLOCK * BLOCK, last // LARGE * LARGE
    yield summed, last
    for end in _blocks(db, filters, BLOCK, large, summed):
        yield end - BLOCK, end
    # In a long file the small blocks are many, too; the large ones say which of them to look at.
    for above in _blocks(db, filters, LARGE, 0, large):
        for end in _blocks(db, filters, BLOCK, above - LARGE, above):
            yield end - BLOCK, end


def _blocks(db: Database, filters: Wanted, span: int, after: int, upto: int) -> Iterator[int]:
    """The last ids of the summed blocks that may hold such decisions, newest first."""
    found = db.conn.execute(
        "SELECT DISTINCT last_id FROM decision_totals WHERE span = :span AND last_id > :after "  # noqa: S608 - columns are ours
        f"AND last_id <= :upto AND {' AND '.join(filters.sums)} ORDER BY last_id DESC",
        {**filters.values, "span": span, "after": after, "upto": upto},
    )
    return (end for (end,) in found)
