"""A ledger file that is removed, replaced or cut off under an open ledger stops it before anything acts."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from footprint_core.errors import LedgerWriteError
from footprint_core.facts import ToolFinished
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger

FACT = ToolFinished(
    iteration=1, call_id="c", tool_name="t", failed=False, duration_us=1, result="long" * 10_000
)


def batch(position: int) -> Batch:
    return Batch(run_id="run", segment=1, entries=(Entry(position=position, time=1, fact=FACT),))


def removed(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replaced(path: Path) -> None:
    other = path.with_name("other.db")
    asyncio.run(SqliteLedger(other).close())
    other.replace(path)


@pytest.mark.parametrize("change", [removed, emptied, cut_off, replaced])
def test_an_append_to_a_file_that_is_gone_or_cut_off_is_refused(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    ledger.append_inline(batch(1))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint")
    connection.close()
    ledger.append_inline(batch(2))
    change(path)
    with pytest.raises(LedgerWriteError, match="while it was open, so nothing was written") as caught:
        ledger.append_inline(batch(3))
    assert (caught.value.run_id, caught.value.segment) == ("run", 1)
    with pytest.raises(LedgerWriteError, match="while it was open") as caught:
        asyncio.run(ledger.append(batch(3)))
    assert (caught.value.run_id, caught.value.segment) == ("run", 1)
    asyncio.run(ledger.close())
    if change is removed:
        assert not path.exists()


FORKS = """
import os, sys
from footprint_core.errors import LedgerWriteError
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger
path = sys.argv[1]
ledger = SqliteLedger(path)
def append():
    entry = Entry(position=1, time=1, fact=CallTaken(iteration=1, call_id="c", tool_name="t"))
    try:
        while ledger.append_inline(Batch(run_id="run", segment=1, entries=(entry,))) is None:
            pass  # the other process holds the lock
    except LedgerWriteError as error:
        # One write each: both processes share the pipe.
        os.write(1, f"{error.run_id} {error}\\n".encode())
os.unlink(path)
child = os.fork()
append()
if child:
    os.waitpid(child, 0)
    print(os.path.exists(path))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process that can fork")
def test_after_a_fork_a_file_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, os.fspath(tmp_path / "l.db")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    *refused, exists = done.stdout.splitlines()
    assert len(refused) == 2
    assert all(line.startswith("run The ledger file was removed while it was open") for line in refused)
    assert exists == "False"


def test_a_vacuum_by_another_program_stops_nobody(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA page_size = 4096")
    connection.close()
    ledger = SqliteLedger(path)
    ledger.append_inline(batch(1))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE scratch AS SELECT zeroblob(100000) AS bytes")
    connection.execute("PRAGMA wal_checkpoint")
    ledger.append_inline(batch(2))
    size = path.stat().st_size
    connection.execute("DROP TABLE scratch")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert path.stat().st_size < size
    ledger.append_inline(batch(3))
    assert len(ledger.entries("run")) == 3
    asyncio.run(ledger.close())
