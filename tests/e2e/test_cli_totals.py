"""`footprint totals`: decisions counted, from sums where there are some, and else from rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import many_decisions
from commanded import demonstrate, footprint, records
from footprint_observe.query import QuestionError, decisions, totals
from footprint_observe.query.totals import BY
from many_decisions import time_of


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_decisions.write(tmp_path_factory.mktemp("totals") / "l.db")


COLUMNS = {"rule": "middleware", "tool": "tool_name"}


def _by_hand(path: Path, by: tuple[str, ...], **filters: Any) -> list[dict[str, Any]]:
    """The same, counted from every decision there is."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in decisions(path, limit=10**9, **filters):
        values: dict[str, Any] = {**row, "day": row["recorded_at"][:10]}
        key = {COLUMNS.get(word, word): values[COLUMNS.get(word, word)] for word in by}
        key["shadow"] = row["shadow"]
        counts = found.setdefault(tuple(key.values()), {**key, "allow": 0, "deny": 0, "ask": 0})
        counts[row["outcome"]] += 1
    return list(found.values())


def _same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    return sorted(map(repr, one)) == sorted(map(repr, other))


FILTERS: list[dict[str, Any]] = [
    {},
    {"rule": "fee"},
    {"version": "1"},
    {"outcome": "deny"},
    {"moment": "input"},
    {"tool": "tool-1"},
    {"shadow": True},
    {"shadow": False, "outcome": "ask"},
    {"source": "shop"},
    {"changed": True},
    {"rule": "nobody"},
    {"since": time_of(1)},
    {"until": time_of(3)},
    {"since": time_of(1), "until": time_of(3)},
    {"since": time_of(1, 7), "until": time_of(3, 9)},
    {"since": time_of(2, 7), "until": time_of(2, 9)},
    {"since": time_of(2, 7), "until": time_of(3)},
    {"since": time_of(2), "until": time_of(3, 1)},
    {"since": time_of(-3), "until": time_of(9, 5), "rule": "fee"},
    {"since": time_of(3), "until": time_of(1)},
    {"since": time_of(1, 7), "source": "shop"},
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_a_total_is_the_number_of_the_decisions_there_are(counted: Path, filters: dict[str, Any]) -> None:
    found = totals(counted, **filters)
    assert _same(found, _by_hand(counted, ("day", "rule"), **filters))
    if filters not in ({"rule": "nobody"}, {"since": time_of(3), "until": time_of(1)}):
        assert found


@pytest.mark.parametrize("by", [("day",), ("version", "tool"), ("moment",), (), BY])
def test_decisions_are_counted_by_what_is_asked_for(counted: Path, by: Any) -> None:
    assert _same(totals(counted, by=by), _by_hand(counted, by))


def test_of_one_run_only_its_own_are_counted(counted: Path) -> None:
    run = f"{2:032x}"
    assert _same(totals(counted, run=run), _by_hand(counted, ("day", "rule"), run=run))


def test_what_was_only_recorded_is_counted_apart(counted: Path) -> None:
    shadowed = [row for row in totals(counted, by=("rule",)) if row["shadow"]]
    assert shadowed
    told = footprint("totals", "--by", "rule", "--db", str(counted)).stdout.splitlines()
    assert told[0].split() == ["middleware", "shadow", "allow", "deny", "ask"]
    assert len([line for line in told if "shadow" in line]) == 1 + len(shadowed)


def test_a_table_has_denials_and_asks_apart_and_json_the_same(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    told = footprint("totals", "--db", path).stdout
    header, *lines = [line.split() for line in told.splitlines()]
    assert header == ["day", "middleware", "allow", "deny", "ask"]
    assert [line[1:] for line in lines if line[1] == "refund-ceiling"] == [["refund-ceiling", "2", "1"]]
    assert records("totals", "--db", path) == totals(path)
    (four_eyes,) = records("totals", "--by", "rule", "--rule", "four-eyes", "--db", path)
    assert four_eyes == {"middleware": "four-eyes", "shadow": False, "allow": 2, "deny": 0, "ask": 1}


def test_what_decisions_are_not_counted_by_is_refused(counted: Path) -> None:
    with pytest.raises(QuestionError, match="colour"):
        totals(counted, by=("colour",))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
