"""A backup is all of the file at one moment, made while others append; one that fails leaves nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from appending import LARGE, TAKEN, append, batch, whole, whole_run
from footprint_core.errors import LedgerOpenError, LedgerWriteError
from footprint_observe import SqliteLedger, backup
from footprint_observe.cli import main


def filled(path: Path, rows: int = 30) -> SqliteLedger:
    """A ledger of one run of some megabytes."""
    ledger = SqliteLedger(path, durability="process")
    for position in range(1, rows + 1):
        ledger.append_inline(batch("run", position, LARGE))
    return ledger


def names(folder: Path) -> set[str]:
    """What lies there, without what a reader of the ledger leaves beside it."""
    return {path.name for path in folder.iterdir()} - {"l.db-wal", "l.db-shm"}


def test_a_backup_has_every_row_is_private_and_is_a_ledger(tmp_path: Path) -> None:
    ledger = filled(tmp_path / "l.db")
    told: list[tuple[int, int]] = []
    (tmp_path / "b").mkdir()
    backup(tmp_path / "l.db", tmp_path / "b" / "copy.db", progress=lambda done, of: told.append((done, of)))
    assert names(tmp_path / "b") == {"copy.db"}
    assert stat.S_IMODE((tmp_path / "b" / "copy.db").stat().st_mode) == 0o600
    assert len(told) > 1
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    whole(tmp_path / "b" / "copy.db", ["run"], 30)
    copy = SqliteLedger(tmp_path / "b" / "copy.db")
    assert copy.entries("run") == ledger.entries("run")
    copy.append_inline(batch("run", 31, TAKEN))
    assert len(ledger.entries("run")) == 30
    for one in (ledger, copy):
        asyncio.run(one.close())


def test_appends_go_on_and_the_backup_is_of_the_moment_it_began(tmp_path: Path) -> None:
    ledger = filled(tmp_path / "l.db")
    appended: list[int] = []

    def busy(_done: int, _of: int) -> None:
        # Between two steps of the copy, each of which would make SQLite begin anew.
        ledger.append_inline(batch("other", len(appended) + 1, TAKEN))
        appended.append(1)

    backup(tmp_path / "l.db", tmp_path / "copy.db", progress=busy)
    assert len(appended) > 1
    whole(tmp_path / "copy.db", ["run"], 30)
    assert len(ledger.entries("other")) == len(appended)
    asyncio.run(ledger.close())


def test_beside_many_runs_every_backup_is_whole(tmp_path: Path) -> None:
    ledger = filled(tmp_path / "l.db")
    stop = threading.Event()
    problems: list[BaseException] = []

    async def many() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            await asyncio.gather(*(whole_run(ledger, f"{turn}-{at}", 3) for at in range(8)))

    def runs() -> None:
        try:
            asyncio.run(many())
        except BaseException as error:  # noqa: BLE001 - asserted below
            problems.append(error)

    thread = threading.Thread(target=runs)
    thread.start()
    try:
        for at in range(5):
            backup(tmp_path / "l.db", tmp_path / f"{at}.db")
    finally:
        stop.set()
        thread.join(60)
    assert not problems
    for at in range(5):
        connection = sqlite3.connect(tmp_path / f"{at}.db")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        gaps = "SELECT count(*) FROM (SELECT 1 FROM facts GROUP BY run_id HAVING count(*) <> max(position))"
        assert connection.execute(gaps).fetchone() == (0,)
        assert connection.execute("SELECT max(id) - count(*) FROM facts").fetchone() == (0,)
        connection.close()
    asyncio.run(ledger.close())


@pytest.mark.parametrize("name", ["l.db", "l.db-wal", "l.db-shm", "l.db-journal", "link.db"])
def test_the_ledger_and_what_lies_beside_it_is_no_place_for_its_backup(tmp_path: Path, name: str) -> None:
    asyncio.run(filled(tmp_path / "l.db", rows=1).close())
    (tmp_path / "link.db").symlink_to("l.db")
    before = (tmp_path / "l.db").read_bytes()
    with pytest.raises(LedgerOpenError, match="belongs to the ledger itself"):
        backup(tmp_path / "l.db", tmp_path / name)
    assert names(tmp_path) == {"l.db", "link.db"}
    assert (tmp_path / "l.db").read_bytes() == before


@pytest.mark.parametrize("name", ["copy.db", "copy.db-wal", "copy.db-shm", "copy.db-journal"])
def test_nothing_that_exists_is_overwritten_or_taken_for_a_part_of_the_backup(
    tmp_path: Path, name: str
) -> None:
    asyncio.run(filled(tmp_path / "l.db", rows=1).close())
    (tmp_path / name).write_bytes(b"mine")
    with pytest.raises(LedgerOpenError, match=f"{name} exists"):
        backup(tmp_path / "l.db", tmp_path / "copy.db")
    assert (tmp_path / name).read_bytes() == b"mine"
    assert names(tmp_path) == {"l.db", name}


def test_a_name_that_is_taken_while_the_copy_is_made_stays_with_who_took_it(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path / "l.db").close())
    copy = tmp_path / "copy.db"
    with pytest.raises(LedgerOpenError, match="meanwhile"):
        backup(tmp_path / "l.db", copy, progress=lambda _done, _of: take(copy))
    assert copy.read_bytes() == b"theirs"
    assert names(tmp_path) == {"l.db", "copy.db"}


def take(path: Path) -> None:
    path.write_bytes(b"theirs")


def gone(path: Path) -> Path:
    return path / "none.db"


def foreign(path: Path) -> Path:
    connection = sqlite3.connect(path / "foreign.db")
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    return path / "foreign.db"


def damaged(path: Path) -> Path:
    asyncio.run(filled(path / "l.db").close())
    with (path / "l.db").open("r+b") as file:
        for page in range(20, 60):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    return path / "l.db"


@pytest.mark.parametrize("make", [gone, foreign, damaged])
def test_what_cannot_be_backed_up_is_said_in_one_sentence_and_nothing_is_left(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    source = make(tmp_path)
    before = names(tmp_path)
    with pytest.raises((LedgerOpenError, LedgerWriteError)) as caught:
        backup(source, tmp_path / "copy.db")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == before
    done = CliRunner().invoke(main, ["backup", str(tmp_path / "copy.db"), "--db", str(source)])
    assert done.exit_code == 3
    assert done.output.startswith("Error: ")
    assert names(tmp_path) == before


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path / "l.db", rows=1).close())
    with pytest.raises(LedgerOpenError, match="check its folder"):
        backup(tmp_path / "l.db", tmp_path / "none" / "copy.db")


def test_a_disk_without_room_for_it_leaves_nothing(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    asyncio.run(filled(tmp_path / "l.db").close())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * 1024, hard))
    try:
        with pytest.raises(LedgerWriteError, match="could not be made"):
            backup(tmp_path / "l.db", tmp_path / "copy.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert names(tmp_path) == {"l.db"}


INTERRUPTED = """
import os, signal, sys
from footprint_observe import backup
def interrupt(done, of):
    os.kill(os.getpid(), signal.{signal})
backup(sys.argv[1], sys.argv[2], progress=interrupt)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_one_that_is_interrupted_leaves_no_half_file_under_its_name(tmp_path: Path, name: str) -> None:
    asyncio.run(filled(tmp_path / "l.db").close())
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            INTERRUPTED.format(signal=name),
            str(tmp_path / "l.db"),
            str(tmp_path / "c.db"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -getattr(signal, name)
    left = names(tmp_path) - {"l.db"}
    assert "c.db" not in left
    assert (left == set()) is (name == "SIGINT")
    assert all(".part-" in one for one in left)
    backup(tmp_path / "l.db", tmp_path / "c.db")
    whole(tmp_path / "c.db", ["run"], 30)


def test_it_is_synced_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(filled(tmp_path / "l.db", rows=1).close())
    did: list[str] = []
    fsync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        did.append("sync")
        fsync(descriptor)

    def named(part: Path, target: Path) -> None:
        did.append("name")
        link(part, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", named)
    backup(tmp_path / "l.db", tmp_path / "c.db")
    assert did == ["sync", "name", "sync"]


def test_where_files_have_no_second_name_it_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(filled(tmp_path / "l.db", rows=1).close())

    def refuses(*_given: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuses)
    backup(tmp_path / "l.db", tmp_path / "c.db")
    whole(tmp_path / "c.db", ["run"], 1)
    assert names(tmp_path) == {"l.db", "c.db"}


FORKS = """
import os, sys, threading
from footprint_observe import backup
begun, go = threading.Event(), threading.Event()
def wait(done, of):
    begun.set()
    assert go.wait(30)
thread = threading.Thread(target=backup, args=sys.argv[1:3], kwargs={"progress": wait})
thread.start()
begun.wait(30)
threading.Timer(0.2, go.set).start()
child = os.fork()
if child == 0:
    open_files = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    print([name for name in open_files if name.startswith(sys.argv[1])], flush=True)
    os._exit(0)
os.waitpid(child, 0)
thread.join()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at what is open in /proc")
def test_a_fork_waits_for_the_copy_to_be_made(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path / "l.db").close())
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path / "l.db"), str(tmp_path / "c.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    # A connection that was open would be in the child too, and its locks would not.
    assert done.stdout == "[]\n", done.stderr
    whole(tmp_path / "c.db", ["run"], 30)


def test_the_command_says_what_it_made(tmp_path: Path) -> None:
    asyncio.run(append_one(tmp_path / "l.db"))
    done = CliRunner().invoke(main, ["backup", str(tmp_path / "c.db"), "--db", str(tmp_path / "l.db")])
    assert done.exit_code == 0, done.output
    assert "c.db" in done.output
    assert "%" not in done.output
    whole(tmp_path / "c.db", ["run"], 1)


async def append_one(path: Path) -> None:
    ledger = SqliteLedger(path)
    await append(ledger, batch("run", 1, TAKEN))
    await ledger.close()
