"""Times as people give them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from footprint_observe.query import QuestionError
from footprint_observe.query.times import instant, microseconds

NOW = datetime(2026, 3, 31, 14, 30, tzinfo=UTC)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("given", "begins", "ends"),
    [
        ("2026-03-30", at(2026, 3, 30), at(2026, 3, 31)),
        ("2026-12-31", at(2026, 12, 31), at(2027, 1, 1)),
        (" 2026-03-30 ", at(2026, 3, 30), at(2026, 3, 31)),
        ("2026-03-30T09:15", at(2026, 3, 30, 9, 15), at(2026, 3, 30, 9, 15)),
        ("2026-03-30 09:15:01.5", at(2026, 3, 30, 9, 15, 1, 500_000), at(2026, 3, 30, 9, 15, 1, 500_000)),
        ("2026-03-30T01:15+02:00", at(2026, 3, 29, 23, 15), at(2026, 3, 29, 23, 15)),
        ("2026-03-30T09:15Z", at(2026, 3, 30, 9, 15), at(2026, 3, 30, 9, 15)),
        ("today", at(2026, 3, 31), at(2026, 4, 1)),
        ("90s", at(2026, 3, 31, 14, 28, 30), at(2026, 3, 31, 14, 28, 30)),
        ("30m", at(2026, 3, 31, 14), at(2026, 3, 31, 14)),
        ("2h", at(2026, 3, 31, 12, 30), at(2026, 3, 31, 12, 30)),
        ("3d", at(2026, 3, 28, 14, 30), at(2026, 3, 28, 14, 30)),
        ("1w", at(2026, 3, 24, 14, 30), at(2026, 3, 24, 14, 30)),
        (date(2026, 3, 30), at(2026, 3, 30), at(2026, 3, 31)),
        (datetime(2026, 3, 30, 9, 15), at(2026, 3, 30, 9, 15), at(2026, 3, 30, 9, 15)),  # noqa: DTZ001 - on purpose
        (
            datetime(2026, 3, 30, 1, 15, tzinfo=timezone(timedelta(hours=2))),
            at(2026, 3, 29, 23, 15),
            at(2026, 3, 29, 23, 15),
        ),
    ],
)
def test_a_time_is_one_instant_and_a_date_a_whole_day(given: Any, begins: datetime, ends: datetime) -> None:
    assert instant(given, now=NOW) == begins
    assert instant(given, end=True, now=NOW) == ends


def test_today_is_the_day_of_utc_wherever_the_clock_hangs() -> None:
    late = datetime(2026, 3, 31, 23, 30, tzinfo=timezone(timedelta(hours=-3)))
    assert instant("today", now=late) == at(2026, 4, 1)


def test_a_local_zone_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert instant("2026-03-30T09:15") == at(2026, 3, 30, 9, 15)
        assert abs(instant("2h") - (datetime.now(UTC) - timedelta(hours=2))) < timedelta(minutes=1)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "given",
    [
        "", "yesterweek", "2026-13-01", "2026-02-30", "2026-03", "1.5h", "-2h", "2y", "h", "999999999w",
        "\u0663h", "2026-03-30T25:00", "20260330T", "now", "2h ago",
        "0001-01-01", "9999-12-31",
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_what_is_one(given: str) -> None:
    with pytest.raises(QuestionError, match=r"^That is no time; give a date like .*\.$"):
        instant(given, now=NOW)


def test_an_instant_is_exact_to_the_microsecond() -> None:
    assert microseconds(at(1970, 1, 1)) == 0
    assert microseconds(at(2026, 3, 31, 14, 30, 0, 1)) == 1_774_967_400_000_001
    assert microseconds(at(1969, 12, 31, 23, 59, 59, 999_999)) == -1
