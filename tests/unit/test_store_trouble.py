"""Trouble with the disk in the middle of a run: one sentence, nothing half written, and on it goes."""

# A few seams are counted from inside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from appending import LARGE, TAKEN, appender_of, batch, connection_of, whole
from footprint_core.errors import LedgerOpenError, LedgerWriteError
from footprint_core.ledger import Receipt
from footprint_observe.store.ledger import SqliteLedger


def _inline(ledger: SqliteLedger, position: int) -> None:
    assert ledger.append_inline(batch("run", position, LARGE)) is not None


def _queued(ledger: SqliteLedger, position: int) -> None:
    asyncio.run(ledger.append(batch("run", position, LARGE)))


WAYS: dict[str, Callable[[SqliteLedger, int], None]] = {"inline": _inline, "queued": _queued}


def refused(ledger: SqliteLedger, position: int, way: str, match: str) -> None:
    with pytest.raises(LedgerWriteError, match=match) as caught:
        WAYS[way](ledger, position)
    assert (caught.value.run_id, caught.value.segment) == ("run", 1)
    assert "\n" not in str(caught.value)
    assert "long" not in str(caught.value).replace("long reads", "")


def moved_into_the_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    connection.close()


@contextmanager
def spoiled(path: Path, offset: int, end: int | None = None) -> Generator[None]:
    """The file with other bytes in the middle, and then as it was. Through a process, for its locks' sake."""
    whole_file = path.with_name("whole")
    shutil.copy(path, whole_file)
    size = path.stat().st_size if end is None else end
    code = "import sys; at, n = map(int, sys.argv[2:]); f = open(sys.argv[1], 'r+b'); "
    code += "f.seek(at); f.write(b'\\xa5' * n)"
    subprocess.run(
        [sys.executable, "-c", code, path, str(offset), str(size - offset)], check=True, timeout=60
    )
    yield
    code = "import sys; data = open(sys.argv[1], 'rb').read(); open(sys.argv[2], 'r+b').write(data)"
    subprocess.run([sys.executable, "-c", code, whole_file, path], check=True, timeout=60)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_damaged_while_it_is_open_is_said_to_be_and_a_mended_one_is_gone_on_with(
    tmp_path: Path, way: str
) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    for position in range(1, 6):
        WAYS[way](ledger, position)
    moved_into_the_file(path)
    # Everything but the first page, which says whose file it is.
    with spoiled(path, 4096):
        appender_of(ledger).suspend()
        appender_of(ledger).resume()
        refused(ledger, 6, way, "damaged")
        refused(ledger, 6, way, "damaged")
    WAYS[way](ledger, 6)
    asyncio.run(ledger.close())
    whole(path, ["run"], 6)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_that_is_no_database_any_more_is_said_to_be_none(tmp_path: Path, way: str) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    WAYS[way](ledger, 1)
    moved_into_the_file(path)
    with spoiled(path, 0, 4096):
        appender_of(ledger).suspend()
        appender_of(ledger).resume()
        refused(ledger, 2, way, "no SQLite database")
    WAYS[way](ledger, 2)
    asyncio.run(ledger.close())
    whole(path, ["run"], 2)


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_that_failed_is_not_used_again(tmp_path: Path, way: str) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    WAYS[way](ledger, 1)
    failed = connection_of(ledger)
    failed.execute("PRAGMA query_only = ON")
    refused(ledger, 2, way, "SQLITE_READONLY")
    WAYS[way](ledger, 2)
    assert connection_of(ledger) is not failed
    asyncio.run(ledger.close())
    whole(tmp_path / "l.db", ["run"], 2)


@contextmanager
def mounted(at: Path) -> Generator[Path]:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("needs root, to mount a file system")
    at.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", at], check=False, timeout=30).returncode:
        pytest.skip("cannot mount here")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True, timeout=30)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_system_that_is_only_readable_for_a_while_is_said_and_gone_on_with(
    tmp_path: Path, way: str
) -> None:
    with mounted(tmp_path / "disk") as folder:
        ledger = SqliteLedger(folder / "l.db")
        WAYS[way](ledger, 1)
        # A kernel that finds a disk failing does the same, and does not ask who has files open.
        appender_of(ledger).suspend()
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True, timeout=30)
        appender_of(ledger).resume()
        try:
            refused(ledger, 2, way, "cannot be (written to|read and written|opened)")
            refused(ledger, 2, way, "cannot be (written to|read and written|opened)")
            assert [entry.position for entry in ledger.entries("run")] == [1]
        finally:
            subprocess.run(["mount", "-o", "remount,rw", folder], check=True, timeout=30)
        WAYS[way](ledger, 2)
        asyncio.run(ledger.close())
        whole(folder / "l.db", ["run"], 2)


def until_refused(ledger: SqliteLedger, way: str) -> int:
    """How many appends a disk took that is too small for all of them."""
    for position in range(1, 200):
        try:
            WAYS[way](ledger, position)
        except LedgerWriteError as error:
            if any(said in str(error) for said in ("SQLITE_FULL", "SQLITE_IOERR", "no room")):
                return position - 1
            raise
    pytest.fail("the disk took everything")


@pytest.mark.parametrize("way", WAYS)
def test_a_disk_that_is_full_is_said_and_gone_on_with_when_there_is_room(tmp_path: Path, way: str) -> None:
    with mounted(tmp_path / "disk") as folder:
        subprocess.run(["mount", "-o", "remount,size=12m", folder], check=True, timeout=30)
        ledger = SqliteLedger(folder / "l.db")
        kept = until_refused(ledger, way)
        assert kept > 5
        assert [entry.position for entry in ledger.entries("run")] == list(range(1, kept + 1))
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True, timeout=30)
        WAYS[way](ledger, kept + 1)
        asyncio.run(ledger.close())
        whole(folder / "l.db", ["run"], kept + 1)


def test_what_is_too_large_for_the_disk_does_not_fail_what_is_queued_with_it(tmp_path: Path) -> None:
    too_large = msgspec.structs.replace(LARGE, result="long" * 4_000_000)
    with mounted(tmp_path / "disk") as folder:
        subprocess.run(["mount", "-o", "remount,size=12m", folder], check=True, timeout=30)
        ledger = SqliteLedger(folder / "l.db")

        async def story() -> list[object]:
            with appender_of(ledger)._lock:
                waiting = [
                    asyncio.ensure_future(ledger.append(batch(run, 1, fact)))
                    for run, fact in (("a", TAKEN), ("large", too_large), ("b", TAKEN), ("c", TAKEN))
                ]
                await asyncio.sleep(0)
            return [type(answer) for answer in await asyncio.gather(*waiting, return_exceptions=True)]

        assert asyncio.run(story()) == [Receipt, LedgerWriteError, Receipt, Receipt]
        asyncio.run(ledger.close())
        whole(folder / "l.db", ["a", "b", "c"], 1)


SIGNALLED = """
import asyncio, signal, sqlite3, sys
from footprint_observe.store.ledger import SqliteLedger
import sys; sys.path[:0] = ["tests"]
from appending import TAKEN, LARGE, batch

class Stopped(BaseException):
    pass

def stop(number, frame):
    raise Stopped

ledger = SqliteLedger(sys.argv[1], durability="process")
asking = sqlite3.connect(sys.argv[1], isolation_level=None)
signal.signal(signal.SIGALRM, stop)
stopped = kept = 0
while stopped < 100 and kept < 1000:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + stopped % 50 * 0.00002)
        ledger.append_inline(batch("run", kept + 1, TAKEN, LARGE))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Stopped:
        stopped += 1
    (kept,) = asking.execute("SELECT count(*) FROM facts").fetchone()
    # Interrupted or not: it is there whole, or not at all.
    assert kept % 2 == 0, kept
asking.close()
asyncio.run(ledger.close())
print(stopped, kept)
"""


def test_what_a_signal_interrupts_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, str(tmp_path / "l.db")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    stopped, kept = map(int, done.stdout.split())
    assert stopped > 0
    whole(tmp_path / "l.db", ["run"], kept)


def test_a_sync_that_fails_in_a_group_fails_all_of_it_and_none_comes_back(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace to make a sync fail")
    story = """
import asyncio, os, signal, sys
from footprint_core.errors import LedgerError
from footprint_observe.store.ledger import SqliteLedger
import sys; sys.path[:0] = ["tests"]
from appending import CONFIGURED, TAKEN, append, batch
ledger = SqliteLedger(sys.argv[1])
async def run(name):
    for position in range(1, 30):
        try:
            await append(ledger, batch(name, position, CONFIGURED if position == 1 else TAKEN))
        except LedgerError as error:
            assert "SQLITE_IOERR" in str(error), error
            break
        print(name, position, flush=True)
async def story():
    await asyncio.gather(*(run(f"run-{at}") for at in range(8)))
asyncio.run(story())
os.kill(os.getpid(), signal.SIGKILL)
"""
    path = tmp_path / "l.db"
    failing = [strace, "-f", "-qq", "-o", os.devnull, "-e", "trace=fdatasync"]
    failing += ["-e", "inject=fdatasync:error=EIO:when=20..24"]
    done = subprocess.run(
        [*failing, sys.executable, "-c", story, str(path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "ptrace" in done.stderr:
        pytest.skip("strace may not trace processes here")
    kept: dict[str, int] = {}
    for line in done.stdout.splitlines():
        run, position = line.split()
        kept[run] = int(position)
    assert kept, done.stderr
    assert min(kept.values()) < 29, "no sync failed"
    ledger = SqliteLedger(path)
    for run in [f"run-{at}" for at in range(8)]:
        assert [entry.position for entry in ledger.entries(run)] == list(range(1, kept.get(run, 0) + 1)), run
    asyncio.run(ledger.close())


def test_a_newer_file_put_in_place_while_a_connection_is_reopened_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    ledger.append_inline(batch("run", 1, TAKEN))
    appender_of(ledger).suspend()
    appender_of(ledger).resume()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(LedgerWriteError, match="newer release"):
        ledger.append_inline(batch("run", 2, TAKEN))
    with pytest.raises(LedgerOpenError, match="newer release"):
        ledger.entries("run")
    asyncio.run(ledger.close())
