"""A disk that is nearly full, or full: the ledger takes no room it does not need, and gives back the rest."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from footprint_core.errors import LedgerOpenError
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger


def batch(position: int) -> Batch:
    fact = CallTaken(iteration=1, call_id="c", tool_name="t")
    return Batch(run_id="run", segment=1, entries=(Entry(position=position, time=1, fact=fact),))


@contextmanager
def disk(at: Path, size: str) -> Generator[Path]:
    """A disk of that size."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("needs root, to mount a disk that is small")
    at.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", os.fspath(at)],
        capture_output=True,
        check=False,
        timeout=30,
    )
    if mounted.returncode:
        pytest.skip("cannot mount here")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", os.fspath(at)], check=True, timeout=30)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fill(folder: Path) -> None:
    with (folder / "filler").open("wb") as file:
        file.write(bytes(shutil.disk_usage(folder).free))


def test_a_small_disk_is_not_filled_and_the_ledger_works_on_it(tmp_path: Path) -> None:
    with disk(tmp_path / "small", "2m") as folder:
        for position in (1, 2, 3):
            ledger = SqliteLedger(folder / "l.db")
            assert shutil.disk_usage(folder).free > 1024 * 1024
            ledger.append_inline(batch(position))
            asyncio.run(ledger.close())
        assert len(SqliteLedger(folder / "l.db").entries("run")) == 3


@pytest.mark.parametrize("size", ["4k", "64k", "128k", "256k"])
def test_where_there_is_no_room_for_a_ledger_nothing_is_left(tmp_path: Path, size: str) -> None:
    with disk(tmp_path / "tiny", size) as folder:
        with pytest.raises(LedgerOpenError, match="has no room"):
            SqliteLedger(folder / "l.db")
        assert files(folder) == {}


def test_a_ledger_that_cannot_be_opened_on_a_full_disk_leaves_it_as_it_was(tmp_path: Path) -> None:
    with disk(tmp_path / "full", "2m") as folder:
        asyncio.run(SqliteLedger(folder / "l.db").close())
        fill(folder)
        before = files(folder)
        with pytest.raises(LedgerOpenError, match="has no room"):
            SqliteLedger(folder / "l.db")
        assert files(folder) == before
        (folder / "filler").unlink()
        ledger = SqliteLedger(folder / "l.db")
        ledger.append_inline(batch(1))
        asyncio.run(ledger.close())


LIMITED = """
import asyncio, os, resource, shutil, sys
from pathlib import Path
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger
folder = Path(sys.argv[1])
fact = CallTaken(iteration=1, call_id="c", tool_name="t")
def append(ledger, position):
    entry = Entry(position=position, time=1, fact=fact)
    ledger.append_inline(Batch(run_id="run", segment=1, entries=(entry,)))
resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * 1024, 1024 * 1024))
ledger = SqliteLedger(folder / "l.db")
print((folder / "l.db-wal").stat().st_size)
append(ledger, 1)
# As after a crash: the log has rows.
for name in ("l.db", "l.db-wal"):
    shutil.copy(folder / name, folder / f"crashed{name}")
again = SqliteLedger(folder / "crashedl.db")
print((folder / "crashedl.db-wal").stat().st_size)
append(again, 2)
print(len(again.entries("run")))
"""


def test_when_the_log_cannot_be_grown_what_it_took_is_given_back(tmp_path: Path) -> None:
    # A limit on the size of files stands for a quota, which a disk does not tell before it is reached.
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, os.fspath(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["0", "0", "2"]
