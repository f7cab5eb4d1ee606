"""A value that was cut out of another one is the one its row commits to, whatever stands in its place."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from erasing import Erasing
from footprint_core.facts import ToolIntended
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.verify import Fault, Verified, verify
from independent import first_fault
from tampering import rehashed, tampered

NOT_IT = "is not the one it commits to."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A row with a member and an item that were cut out, each under a number."""
    ledger = SqliteLedger(tmp_path / "l.db", redact=Erasing("args.5", "args.items.1"))
    args = {"5": 123, "items": [7, 8, 9]}
    fact = ToolIntended(iteration=1, call_id="c", tool_name="t", args=args)
    ledger.append_inline(Batch(run_id="run", segment=1, entries=(Entry(position=1, time=1, fact=fact),)))
    asyncio.run(ledger.close())
    return tmp_path / "l.db"


def test_members_and_items_under_a_number_follow(path: Path) -> None:
    assert verify(path) == Verified(rows=1, runs=1, values=3, erased=0)
    assert first_fault(path) is None


@pytest.mark.parametrize(
    "tamper",
    [
        # The same bytes, read as an item whose text is the key and the value.
        """UPDATE vals SET json = '"5",' || json WHERE field = 'args.5'""",
        """UPDATE vals SET json = '"1",' || json WHERE field = 'args.items.1'""",
        "UPDATE vals SET json = CAST(x'22ff22' AS TEXT) WHERE field = 'args.5'",
        "UPDATE vals SET json = CAST(x'ff' AS TEXT) WHERE field = 'args.items.1'",
    ],
)
def test_what_was_never_written_meets_no_commitment(path: Path, tmp_path: Path, tamper: str) -> None:
    found = verify(tampered(path, tmp_path / "t.db", tamper))
    assert isinstance(found, Fault)
    assert (found.row, found.why.endswith(NOT_IT)) == (1, True)


def test_a_path_that_is_none_is_found_though_the_row_commits_to_it(path: Path, tmp_path: Path) -> None:
    def rename(connection: sqlite3.Connection) -> None:
        (text,) = connection.execute("SELECT commitments FROM facts").fetchone()
        committed = json.loads(text)
        committed["args.\\y"] = committed.pop("args.5")
        connection.execute("UPDATE vals SET field = 'args.\\y' WHERE field = 'args.5'")
        connection.execute("UPDATE facts SET commitments = ?", (json.dumps(committed),))
        rehashed(connection, 1, follow=True)

    found = verify(tampered(path, tmp_path / "t.db", rename))
    assert isinstance(found, Fault)
    assert (found.row, found.why.endswith(NOT_IT)) == (1, True)
