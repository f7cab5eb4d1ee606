"""The log does not grow without bound: not while readers overlap, and not after one that stayed for long."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from appending import LARGE, append, batch
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.log import LOG_BYTES, LONG_BYTES, log_of

STORIES = {
    # A new reader begins before the last one ends, so that there always is one.
    "overlap": """
import sqlite3, sys, threading, time
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
readers = [sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None) for _ in "ab"]
def begin(reader):
    reader.execute("BEGIN")
    reader.execute("SELECT max(id) FROM facts").fetchone()
begin(readers[0])
print("reading", flush=True)
while not stop.is_set():
    begin(readers[1])
    readers[0].execute("COMMIT")
    time.sleep(0.01)
    readers.reverse()
""",
    "stay": """
import sqlite3, sys
reader = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
reader.execute("BEGIN")
reader.execute("SELECT max(id) FROM facts").fetchone()
print("reading", flush=True)
sys.stdin.readline()
""",
}


@contextmanager
def readers(story: str, path: Path) -> Generator[None]:
    process = subprocess.Popen(
        [sys.executable, "-c", STORIES[story], os.fspath(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "reading"
            yield
        except BaseException:
            process.kill()
            raise
        process.communicate("stop\n", timeout=60)
    assert process.returncode == 0


class Appending:
    """A ledger that is appended to, and the sizes its log had."""

    def __init__(self, path: Path) -> None:
        self.ledger = SqliteLedger(path, durability="process")
        self._log = log_of(path)
        self._positions = count(1)

    async def sizes(self, most: int) -> list[int]:
        """The size of the log behind each of so many appends."""
        return [size async for size in self._sizes(most)]

    async def until_begun_anew(self, times: int, most: int) -> int:
        """How often the log became short again, within so many appends; stops when that is often enough."""
        begun, before = 0, 0
        async for size in self._sizes(most):
            begun += before > LONG_BYTES >= size
            before = size
            if begun == times:
                break
        return begun

    async def _sizes(self, most: int) -> AsyncIterator[int]:
        for _ in range(most):
            await append(self.ledger, batch("run", next(self._positions), LARGE))
            yield self._log.stat().st_size


def test_while_readers_overlap_the_log_is_begun_anew_again_and_again(tmp_path: Path) -> None:
    appending = Appending(tmp_path / "l.db")

    async def story() -> None:
        with readers("overlap", tmp_path / "l.db"):
            assert await appending.until_begun_anew(3, most=3000) == 3
        await appending.ledger.close()

    asyncio.run(story())


def test_a_reader_that_stays_is_named_in_the_log_of_the_program_and_the_file_shrinks_after_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    appending = Appending(tmp_path / "l.db")

    async def story() -> tuple[int, list[int]]:
        with readers("stay", tmp_path / "l.db"), caplog.at_level(logging.WARNING, "footprint"):
            grown = await appending.sizes(400)
        after = await appending.sizes(200)
        await appending.ledger.close()
        return grown[-1], after

    grown, after = asyncio.run(story())
    print(f"log beside a reader that stays: {grown >> 20} MiB; after it: {after[-1] >> 20} MiB")
    assert grown > 2 * LONG_BYTES
    assert after[-1] <= LOG_BYTES
    told = [record for record in caplog.records if "read transaction" in record.getMessage()]
    assert 1 <= len(told) <= 3
    assert str(tmp_path / "l.db") in told[0].getMessage()


def test_reading_through_the_ledger_does_not_stop_it(tmp_path: Path) -> None:
    appending = Appending(tmp_path / "l.db")

    async def story() -> None:
        for _ in range(300):
            (size,) = await appending.sizes(1)
            assert size <= LONG_BYTES
            assert appending.ledger.decisions("run") == ()
        await appending.ledger.close()

    asyncio.run(story())
