"""Times as people give them: a date, a time, `today`, or how long ago.

A date or a time without an offset is UTC, as all times that the ledger shows and all days that it counts.
`since` is the first instant that belongs to a span, `until` the first that does not; a date given as
`until` is the whole day.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TypeAlias, cast

from footprint_observe.query.refusals import QuestionError

When: TypeAlias = str | date | datetime
"""An ISO 8601 date or time, `today`, or how long ago: `90s`, `30m`, `2h`, `3d`, `1w`."""

_AGO = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant(when: When, *, end: bool = False, now: datetime | None = None) -> datetime:
    """The instant that is meant, in UTC.

    Args:
        when: The time.
        end: Whether it ends a span; then a date means the end of its day.
        now: What `today` and a duration are counted from; the present when absent.

    Raises:
        QuestionError: It is no time, or none a calendar has.
    """
    try:
        found = _instant(when, end, now or datetime.now(UTC))
    except (ValueError, OverflowError):
        raise _no_time() from None
    # Days are counted from it, which must not leave the calendar.
    if not _FIRST <= found <= _LAST:
        raise _no_time()
    return found


def _no_time() -> QuestionError:
    return QuestionError(
        "That is no time; give a date like 2026-03-31, a time like 2026-03-31T09:30 or "
        "2026-03-31T09:30+02:00 (UTC without an offset), `today`, or how long ago, like 30m, 2h or 3d."
    )


def _instant(when: When, end: bool, now: datetime) -> datetime:  # noqa: FBT001 - the face above has it by name
    if isinstance(when, datetime):
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    if isinstance(when, date):
        begin = datetime(when.year, when.month, when.day, tzinfo=UTC)
        return begin + _DAY if end else begin
    if not isinstance(cast("object", when), str):
        raise _no_time()
    text = when.strip()
    if text == "today":
        return _instant(now.astimezone(UTC).date(), end, now)
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now.astimezone(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    if _DATE.fullmatch(text):
        return _instant(date.fromisoformat(text), end, now)
    return _instant(datetime.fromisoformat(text), end, now)


def microseconds(at: datetime) -> int:
    """An instant as the ledger keeps it: microseconds since the Unix epoch."""
    return (at - _EPOCH) // _MICROSECOND
