"""In a long file the large blocks say which of the small ones are looked at."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sqlite_utils import Database

from footprint_observe.query.filters import stretches, wanted
from footprint_observe.store.totals import BLOCK, LARGE, TOTALS

LAST = 3 * LARGE + 5 * BLOCK + 77


def sums(holding: set[int]) -> sqlite3.Connection:
    """The sums of a file whose small blocks all hold a decision of `fee`, and these one of `rare`."""
    connection = sqlite3.connect(":memory:")
    connection.execute(TOTALS)

    def add(span: int, last_id: int, rule: str) -> None:
        values = (span, last_id, "2026-01-31", rule, "1", "before-tool", "pay", "deny", 0, 1)
        connection.execute("INSERT INTO decision_totals VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    for number in range(LAST // BLOCK):
        end = (number + 1) * BLOCK
        add(BLOCK, end, "fee")
        if number in holding:
            add(BLOCK, end, "rare")
    for end in range(LARGE, LAST, LARGE):
        add(LARGE, end, "fee")
        if any(end - LARGE <= number * BLOCK < end for number in holding):
            add(LARGE, end, "rare")
    return connection


def test_the_blocks_that_hold_such_decisions_are_found_newest_first() -> None:
    # In the first large block its first and last, in the third one between, and one behind the large ones.
    holding = {0, LARGE // BLOCK - 1, 2 * LARGE // BLOCK + 9, 3 * LARGE // BLOCK + 2}
    with closing(sums(holding)) as connection:
        db = Database(connection)
        found = list(stretches(db, wanted({"rule": "rare"}), LAST))
        every = list(stretches(db, wanted({"rule": "fee"}), LAST))
    behind = (LAST // BLOCK * BLOCK, LAST)
    assert found == [behind, *((n * BLOCK, (n + 1) * BLOCK) for n in sorted(holding, reverse=True))]
    assert every == [behind, *((n * BLOCK, (n + 1) * BLOCK) for n in reversed(range(LAST // BLOCK)))]


def test_small_blocks_of_a_large_one_without_such_decisions_are_not_read() -> None:
    with closing(sums(set())) as connection:
        seen: list[str] = []
        connection.set_trace_callback(seen.append)
        found = list(stretches(Database(connection), wanted({"rule": "rare"}), LAST))
    assert found == [(LAST // BLOCK * BLOCK, LAST)]
    assert len([sql for sql in seen if "decision_totals" in sql]) == 2
