"""Which decisions a filter picks from a file of several blocks, checked against every row there is."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import many_decisions
from footprint_observe.query import decisions
from footprint_observe.query.database import last_id, reading
from footprint_observe.query.filters import stretches, wanted
from footprint_observe.store.totals import BLOCK
from many_decisions import ROWS, time_of


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_decisions.write(tmp_path_factory.mktemp("many") / "l.db")


@pytest.fixture(scope="module")
def rows(many: Path) -> list[dict[str, Any]]:
    """Every row of the view, in order."""
    connection = sqlite3.connect(many)
    connection.row_factory = sqlite3.Row
    found = [dict(row) for row in connection.execute("select * from decisions order by id")]
    connection.close()
    return found


_COLUMNS = {"rule": "middleware", "tool": "tool_name", "source": "tool_source", "person": "decided_by"}


def _matches(row: dict[str, Any], filters: dict[str, Any]) -> bool:
    for name, value in filters.items():
        if name == "since":
            if row["recorded_at"] < value:
                return False
        elif name == "until":
            if row["recorded_at"] >= value:
                return False
        elif row[_COLUMNS.get(name, name)] != value:
            return False
    return True


_TIMES = st.builds(time_of, st.integers(-2, 6), st.integers(0, 23))
_FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "since": _TIMES,
        "until": _TIMES,
        "rule": st.sampled_from(["ceiling", "four-eyes", "fee", "nobody"]),
        "version": st.sampled_from(["0", "1", "2", "3"]),
        "outcome": st.sampled_from(["allow", "deny", "ask"]),
        "moment": st.sampled_from(["before-tool", "input", "output"]),
        "tool": st.sampled_from(["tool-0", "tool-1"]),
        "source": st.just("shop"),
        "person": st.just("dana@ops"),
        "shadow": st.booleans(),
        "changed": st.booleans(),
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=_FILTERS, limit=st.sampled_from([1, 7, 300, 100_000]))
def test_filters_pick_exactly_the_newest_rows_that_match(
    many: Path, rows: list[dict[str, Any]], filters: dict[str, Any], limit: int
) -> None:
    expected = [row["id"] for row in rows if _matches(row, filters)][-limit:]
    assert [row["id"] for row in decisions(many, limit=limit, **filters)] == expected


def test_only_blocks_that_hold_such_decisions_are_read(many: Path) -> None:
    with reading(many) as db:
        last = last_id(db)
        assert last == ROWS

        def found(**filters: Any) -> list[tuple[int, int]]:
            return list(stretches(db, wanted(filters), last))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]

        behind, second, first = (2 * BLOCK, last), (BLOCK, 2 * BLOCK), (0, BLOCK)
        assert found() == [(0, last)]
        assert found(rule="fee") == [behind, second, first]
        assert found(rule="nobody") == [behind]
        # The versions ascend with the rows.
        assert found(version="0") == [behind, first]
        assert found(since=time_of(3), until=time_of(4)) == [behind, second]
        assert found(until=time_of(-1)) == [behind]
        # An index finds these, so no block is looked for.
        assert found(person="dana@ops", rule="fee") == [(0, last)]
