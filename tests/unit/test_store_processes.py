"""Several processes on one file: the fence holds, a lock is waited for off the loop, a fork opens anew."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from footprint_core.errors import LedgerBusyError, LedgerOpenError, RunTakenOverError
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger

PRELUDE = """
import asyncio, os, sys
from footprint_core.errors import LedgerError
from footprint_core.facts import CallTaken
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.ledger import SqliteLedger

def batch(run, *positions):
    fact = CallTaken(iteration=1, call_id="c", tool_name="t")
    entries = tuple(Entry(position=p, time=p, fact=fact) for p in positions)
    return Batch(run_id=run, segment=1, entries=entries)

def say(word):
    print(word, flush=True)

def heard():
    return sys.stdin.readline().strip()

path = sys.argv[1]
"""

ROOT = Path(__file__).parents[2]


def batch(run: str, *positions: int) -> Batch:
    fact = CallTaken(iteration=1, call_id="c", tool_name="t")
    return Batch(
        run_id=run, segment=1, entries=tuple(Entry(position=p, time=p, fact=fact) for p in positions)
    )


class Other:
    """Another process, spoken to line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def running(story: str, path: Path) -> Generator[Other]:
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PRELUDE + story, os.fspath(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        try:
            yield Other(process)
        except BaseException:
            process.kill()
            raise
        assert process.wait(60) == 0


def positions(path: Path, run: str) -> list[int]:
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT position FROM facts WHERE run_id = ? ORDER BY id", (run,))
        return [position for (position,) in rows]
    finally:
        connection.close()


def test_the_second_process_that_continues_a_run_fails_before_it_acts(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    story = """
ledger = SqliteLedger(path)
ledger.append_inline(batch("run", 1, 2))
say("paused")
heard()
for positions in ((3,), (3, 4)):
    try:
        ledger.append_inline(batch("run", *positions))
    except LedgerError as error:
        say(f"{type(error).__name__} {error.run_id} {error.segment}")
say(str(len(ledger.entries("run"))))
asyncio.run(ledger.close())
"""
    with running(story, path) as other:
        assert other.hear() == "paused"
        ledger = SqliteLedger(path)
        assert ledger.append_inline(batch("run", 3)) is not None
        other.tell("go")
        assert other.hear() == "RunTakenOverError run 1"
        assert other.hear() == "RunTakenOverError run 1"
        assert other.hear() == "3"
        with pytest.raises(RunTakenOverError):
            ledger.append_inline(batch("run", 2, 3, 4))
    assert positions(path, "run") == [1, 2, 3]
    asyncio.run(ledger.close())


HOLDS = """
import sqlite3
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
say("held")
heard()
connection.execute("ROLLBACK")
say("free")
connection.close()
"""


def test_while_another_process_holds_the_lock_inline_is_none_and_append_waits_off_the_loop(
    tmp_path: Path,
) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    ledger.append_inline(batch("run", 1))

    async def story() -> None:
        with running(HOLDS, path) as other:
            assert other.hear() == "held"
            assert ledger.append_inline(batch("run", 2)) is None
            assert positions(path, "run") == [1]
            waiting = asyncio.ensure_future(ledger.append(batch("run", 2)))
            await asyncio.sleep(0)
            # The loop is free: it gets to say that the lock may go.
            assert ledger.append_inline(batch("other", 1)) is None
            assert not waiting.done()
            other.tell("go")
            assert other.hear() == "free"
            receipt = await asyncio.wait_for(waiting, 30)
            assert receipt.entries == batch("run", 2).entries
        if ledger.append_inline(batch("run", 3)) is None:
            await ledger.append(batch("run", 3))
        await ledger.close()

    asyncio.run(story())
    assert positions(path, "run") == [1, 2, 3]


@pytest.mark.parametrize("busy_timeout", [0.0, 0.05])
def test_a_lock_that_is_not_given_back_in_time_is_said_to_be_busy(
    tmp_path: Path, busy_timeout: float
) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path, busy_timeout=busy_timeout)

    async def story() -> None:
        with running(HOLDS, path) as other:
            assert other.hear() == "held"
            both = await asyncio.gather(
                ledger.append(batch("run", 1)), ledger.append(batch("two", 1)), return_exceptions=True
            )
            assert [type(error) for error in both] == [LedgerBusyError, LedgerBusyError]
            assert [getattr(error, "run_id", None) for error in both] == ["run", "two"]
            other.tell("go")
            assert other.hear() == "free"
        await ledger.append(batch("run", 1))
        await ledger.close()

    asyncio.run(story())
    assert positions(path, "run") == [1]
    assert positions(path, "two") == []


def test_opening_waits_for_the_lock_no_longer_than_it_was_told(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    path.touch()
    with running(HOLDS, path) as other:
        assert other.hear() == "held"
        with pytest.raises(LedgerOpenError, match="SQLITE_BUSY"):
            SqliteLedger(path, busy_timeout=0.05)
        other.tell("go")
        assert other.hear() == "free"
    asyncio.run(SqliteLedger(path).close())


def test_processes_that_make_one_file_at_once_all_get_it(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    story = """
say("ready")
heard()
ledger = SqliteLedger(path)
for position in range(1, 21):
    asyncio.run(ledger.append(batch(f"run-{os.getpid()}", position)))
asyncio.run(ledger.close())
say("done")
"""
    with running(story, path) as a, running(story, path) as b, running(story, path) as c:
        others = (a, b, c)
        assert [other.hear() for other in others] == ["ready"] * 3
        for other in others:
            other.tell("go")
        assert [other.hear() for other in others] == ["done"] * 3
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*), max(id) FROM facts").fetchone() == (60, 60)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


FORKS = """
ledger = SqliteLedger(path)
def append(run, position):
    given = batch(run, position)
    ledger.append_inline(given) or asyncio.run(ledger.append(given))
append("parent", 1)
to_child, to_parent = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    try:
        append("child", 1)
        os.write(to_parent[1], b"x")
        os.read(to_child[0], 1)  # the parent closes its ledger meanwhile
        assert os.path.exists(path + "-wal")
        append("child", 2)
        assert len(ledger.entries("parent")) == 2
        asyncio.run(ledger.close())
        say("child done")
    except BaseException as error:
        say(repr(error))
    sys.exit()
append("parent", 2)
os.read(to_parent[0], 1)
asyncio.run(ledger.close())
os.write(to_child[1], b"x")
os.waitpid(child, 0)
say(str([len(ledger.entries(run)) for run in ("parent", "child")]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_opens_the_file_for_itself_and_its_parent_does_not_take_the_log_away(
    tmp_path: Path,
) -> None:
    with running(FORKS, tmp_path / "l.db") as other:
        assert other.hear() == "child done"
        assert other.hear() == "[2, 2]"
    connection = sqlite3.connect(tmp_path / "l.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


FORKS_WHILE_WRITING = """
import threading
ledger = SqliteLedger(path)
stop = threading.Event()
def write():
    position = 0
    while not stop.is_set():
        position += 1
        given = batch("parent", position)
        ledger.append_inline(given) or asyncio.run(ledger.append(given))
    say(str(position))
thread = threading.Thread(target=write)
thread.start()
for number in range(5):
    child = os.fork()
    if child == 0:
        try:
            given = batch(f"child-{number}", 1)
            ledger.append_inline(given) or asyncio.run(ledger.append(given))
            os._exit(0)
        except BaseException as error:
            say(repr(error))
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
asyncio.run(ledger.close())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_may_fork_while_another_thread_appends(tmp_path: Path) -> None:
    with running(FORKS_WHILE_WRITING, tmp_path / "l.db") as other:
        written = int(other.hear())
    assert positions(tmp_path / "l.db", "parent") == list(range(1, written + 1))
    assert all(positions(tmp_path / "l.db", f"child-{number}") == [1] for number in range(5))
    connection = sqlite3.connect(tmp_path / "l.db")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


UNTOLD = """
import ctypes
ledger = SqliteLedger(path)
ledger.append_inline(batch("parent", 1))
before = [opened.appender for opened in ledger._by_process.values()]
parent = before[0]._connection
child = ctypes.CDLL(None).fork()  # a fork Python is not told of
if child == 0:
    ledger.append_inline(batch("child", 1))
    mine = ledger._by_process[os.getpid()].appender
    say(str((mine is not before[0], before[0]._connection is parent, parent.in_transaction)))
    os._exit(0)
os.waitpid(child, 0)
ledger.append_inline(batch("parent", 2))
asyncio.run(ledger.close())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="calls fork in the C library")
def test_after_a_fork_nobody_told_python_of_the_inherited_connection_is_not_used(tmp_path: Path) -> None:
    with running(UNTOLD, tmp_path / "l.db") as other:
        assert other.hear() == "(True, True, False)"
    assert positions(tmp_path / "l.db", "parent") == [1, 2]


def test_a_process_that_is_killed_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    story = """
import signal
ledger = SqliteLedger(path, durability="process")
for position in range(1, 501):
    ledger.append_inline(batch("run", position))
say("500")
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + story, os.fspath(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (-9, "500\n")
    ledger = SqliteLedger(path)
    assert [entry.position for entry in ledger.entries("run")] == list(range(1, 501))
    assert ledger.append_inline(batch("run", 501)) is not None
    asyncio.run(ledger.close())


SYNC_FAILS = """
import signal
ledger = SqliteLedger(path)
for number in range(40):
    try:
        ledger.append_inline(batch(f"run-{number}", 1, 2))
        say(f"kept run-{number}")
    except LedgerError as error:
        assert "SQLITE_IOERR_FSYNC" in str(error)
        say(f"failed run-{number}")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to make a sync fail")
@pytest.mark.parametrize("when", ["30", "30..32", "30+"])
def test_a_commit_whose_sync_failed_does_not_come_back_after_a_crash(tmp_path: Path, when: str) -> None:
    path = tmp_path / "l.db"
    failing = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=fdatasync"]
    failing += ["-e", f"inject=fdatasync:error=EIO:when={when}"]
    done = subprocess.run(
        [*failing, sys.executable, "-c", PRELUDE + SYNC_FAILS, os.fspath(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = [line.split() for line in done.stdout.splitlines()]
    assert len(said) == 40, done.stderr
    assert {word for word, _ in said} == {"kept", "failed"}
    for word, run in said:
        assert positions(path, run) == ([1, 2] if word == "kept" else []), run
