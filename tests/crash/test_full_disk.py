"""A disk that is really full, a limit on the size of files, a disk that can only be read."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from crash import strace
from crash.desk import CANARY, Notes
from crash.killable import Order
from crash.process import as_left_by_a_kill, notes_of, play
from crash.verdict import positions, problems
from footprint_core.errors import LedgerOpenError
from footprint_observe import SqliteLedger

FILLS = Order(durability="power", short=True, behind=40)
"""More conversations than two megabytes hold."""


def mounted(at: Path, *options: str) -> bool:
    command = ["mount", *options, os.fspath(at)]
    return not subprocess.run(command, capture_output=True, check=False, timeout=30).returncode


@contextmanager
def disk(at: Path, size: str) -> Generator[Path]:
    """A disk of that size."""
    at.mkdir()
    if os.geteuid() or not mounted(at, "-t", "tmpfs", "-o", f"size={size}", "tmpfs"):
        pytest.skip("a small disk needs root, and a machine that lets it mount one")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", os.fspath(at)], check=True, timeout=30)


def wrong(path: Path, notes: Notes) -> list[str]:
    """What does not hold behind a disk that took nothing any more."""
    there = positions(path)
    found = problems(path, notes)
    for one in notes.of("refused"):
        if set(there.get(one["run"], ())) & set(range(one["first"], one["last"] + 1)):
            found.append("what was refused is in the file")
        if CANARY in one["text"]:
            found.append("a value is in the error")
    return found + [
        f"it failed with {one['error']}" for one in notes.of("failed") if not one["of_the_ledger"]
    ]


@pytest.mark.parametrize("end", ["close", "die"])
def test_a_disk_that_becomes_full_loses_nothing_and_is_gone_on_with_when_there_is_room(
    end: str, tmp_path: Path
) -> None:
    with disk(tmp_path / "small", "2m") as folder:
        notes_at = tmp_path / "notes"
        order = msgspec.json.encode(msgspec.structs.replace(FILLS, end=end)).decode()
        done = strace.ran(strace.python("crash.killable", str(folder / "l.db"), str(notes_at), order))
        assert done.returncode == (0 if end == "close" else -9), done.stderr
        notes = Notes(notes_at)
        try:
            assert notes.of("answer")
            assert {one["error"] for one in notes.of("refused")} == {"LedgerWriteError"}
            # To open a full disk's ledger takes room of its own; elsewhere there is some.
            roomy = tmp_path / "roomy"
            shutil.copytree(folder, roomy)
            assert wrong(roomy / "l.db", notes) == []
        finally:
            notes.close()
        assert play(roomy, Order(short=True)) == 0


@pytest.mark.parametrize("end", ["close", "die"])
def test_a_limit_on_the_size_of_files_loses_nothing(end: str, tmp_path: Path) -> None:
    order = msgspec.structs.replace(FILLS, limit=512 * 1024, end=end)
    assert play(tmp_path, order) == (0 if end == "close" else -9)
    with notes_of(tmp_path) as notes:
        assert notes.of("answer")
        assert {one["error"] for one in notes.of("refused")} == {"LedgerWriteError"}
        assert wrong(tmp_path / "l.db", notes) == []


def test_a_disk_that_can_only_be_read_is_refused_by_name_and_read(tmp_path: Path) -> None:
    with disk(tmp_path / "small", "20m") as folder:
        at = folder / "closed"
        at.mkdir()
        assert play(at, Order(short=True)) == 0
        left = folder / "left"
        as_left_by_a_kill(left)
        with notes_of(at) as notes:
            run = notes.of("answer")[0]["run"]
            before = positions(at / "l.db")[run]
        reading = SqliteLedger(at / "l.db")
        asyncio.run(reading.close())
        assert mounted(folder, "-o", "remount,ro")
        assert [entry.position for entry in reading.entries(run)] == before
        for path in (at / "l.db", left / "l.db"):
            with pytest.raises(LedgerOpenError) as refused:
                SqliteLedger(path)
            assert str(path.parent) in str(refused.value)
