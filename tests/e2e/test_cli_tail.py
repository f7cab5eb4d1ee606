"""`footprint tail`: decisions of every process, each once, none left out; and readers that block nobody."""

from __future__ import annotations

import asyncio
import importlib
import json
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import many_decisions
from commanded import demonstrate, environment, footprint, installed, records
from file_ledger import on_file
from footprint_core.facts import Decided
from footprint_core.ledger import Batch, Entry
from footprint_observe import SqliteLedger
from footprint_observe.query import decisions, follow, runs

# A process that appends decisions, each with its own number, in runs of its own.
WRITER = """
import asyncio, sys
from footprint_core.facts import Decided
from footprint_core.ledger import Batch, Entry
from footprint_observe import Redaction, SqliteLedger

path, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
ledger = SqliteLedger(path, redact=Redaction.none(), durability="process")

async def main():
    for i in range(number):
        fact = Decided(middleware=name, moment="input", iteration=0, outcome="allow", why=f"{name} {i}")
        entry = Entry(position=1, time=1_700_000_000_000_000 + i, fact=fact)
        await ledger.append(Batch(run_id=f"{name}{i:031x}", segment=1, entries=(entry,)))
    await ledger.close()

asyncio.run(main())
"""


def write(path: Path, name: str, number: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(number)])


def append(ledger: SqliteLedger, run: int, rule: str = "r", **fields: Any) -> None:
    fact = Decided(middleware=rule, moment="input", iteration=0, outcome="allow", **fields)
    entry = Entry(position=1, time=1_700_000_000_000_000 + run, fact=fact)
    ledger.append_inline(Batch(run_id=f"{run:032x}", segment=1, entries=(entry,)))


def taken(following: Iterator[Any], number: int) -> list[Any]:
    """The next so many, within a bound: what follows a file never ends by itself."""
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.extend(islice(following, number)), daemon=True)
    reader.start()
    reader.join(60)
    assert not reader.is_alive()
    return found


@contextmanager
def tailing(path: Path, *words: str) -> Generator[subprocess.Popen[str]]:
    """The command, following a file, in a process of its own."""
    with subprocess.Popen(
        [installed(), "tail", "--db", str(path), "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(PYTHONUNBUFFERED="1"),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_decisions_of_other_processes_come_each_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    asyncio.run(SqliteLedger(path).close())
    names, number = ("a", "b", "c"), 60
    with tailing(path, "--since", "2020-01-01", "--limit", str(len(names) * number)) as tail:
        writers = [write(path, name, number) for name in names]
        told, said = tail.communicate(timeout=60)
        assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    assert (tail.returncode, said) == (0, "")
    found = [json.loads(line) for line in told.splitlines()]
    assert [row["id"] for row in found] == list(range(1, len(names) * number + 1))
    assert found == decisions(path, limit=1000)
    for name in names:
        assert [row["why"] for row in found if row["middleware"] == name] == [
            f"{name} {i}" for i in range(number)
        ]


def test_an_interrupt_ends_it_with_nothing_to_complain_about(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)
    append(ledger, 1)
    with tailing(path, "--since", "2020-01-01") as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None
        assert json.loads(tail.stdout.readline())["id"] == 1
        append(ledger, 2)
        assert json.loads(tail.stdout.readline())["id"] == 2
        tail.send_signal(signal.SIGINT)
        assert tail.wait(timeout=60) == 0
        assert (tail.stdout.read(), tail.stderr.read()) == ("", "")
    asyncio.run(ledger.close())


def test_it_begins_with_what_comes_unless_it_is_told_since_when(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)
    append(ledger, 1)
    new = follow(path, every=0.001)
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.append(next(new)["id"]), daemon=True)
    reader.start()
    deadline, number = time.monotonic() + 30, 2
    while not seen and time.monotonic() < deadline:
        append(ledger, number)
        number += 1
        reader.join(0.01)
    assert seen
    assert seen[0] >= 2
    assert [row["id"] for row in taken(follow(path, since="2020-01-01"), 2)] == [1, 2]
    assert [row["id"] for row in taken(follow(path, after_id=1), 1)] == [2]
    asyncio.run(ledger.close())


def test_it_takes_the_filters_of_decisions_and_goes_on_behind_what_does_not_match(tmp_path: Path) -> None:
    path = many_decisions.write(tmp_path / "l.db")
    asked: tuple[dict[str, Any], ...] = (
        {"rule": "fee", "outcome": "deny"},
        {"since": many_decisions.time_of(2)},
        {"tool": "tool-1"},
    )
    for filters in asked:
        wanted = decisions(path, limit=100_000, **filters)
        following = follow(path, after_id=None if "since" in filters else 0, **filters)
        assert taken(following, len(wanted)) == wanted
    found = records("tail", "--since", "2000-01-01", "--rule", "fee", "--limit", "3", "--db", str(path))
    assert found == [row for row in decisions(path, limit=100_000) if row["middleware"] == "fee"][:3]


def test_a_line_tells_when_what_who_and_why(tmp_path: Path) -> None:
    path = demonstrate(tmp_path / "l.db")
    told = footprint("tail", "--since", "1d", "--limit", "12", "--db", path).stdout.splitlines()
    assert len(told) == 12
    assert "refund-ceiling" in told[5]
    assert "deny" in told[5]
    assert "before-tool issue_refund  Refunds above $500" in told[5]


def test_a_reader_that_stays_blocks_no_writer_and_sees_one_state(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = on_file(path)
    append(ledger, 1)
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM decisions").fetchone() == (1,)
    for run in range(2, 202):
        append(ledger, run)
    # The reader keeps what it began with, everybody else has all of it.
    assert reader.execute("SELECT count(*) FROM decisions").fetchone() == (1,)
    assert len(decisions(path, limit=1000)) == 201
    reader.execute("ROLLBACK")
    assert reader.execute("SELECT count(*) FROM decisions").fetchone() == (201,)
    reader.close()
    asyncio.run(ledger.close())


def test_every_question_can_be_asked_while_processes_write(tmp_path: Path) -> None:
    path = Path(demonstrate(tmp_path / "l.db"))
    writers = [write(path, name, 300) for name in "ab"]
    asked = 0
    while asked < 5 or any(writer.poll() is None for writer in writers):
        assert decisions(path)
        assert runs(path)
        assert footprint("totals", "--db", str(path)).stdout
        asked += 1
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert len(decisions(path, limit=1000)) == 612


def test_a_file_that_is_locked_for_a_while_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    # The function of that name stands before its module.
    module = importlib.import_module("footprint_observe.query.follow")
    path = tmp_path / "l.db"
    ledger = on_file(path)
    append(ledger, 1)
    real, fails = module.last_id, iter([True, True, False])

    def busy(db: Any) -> int:
        if next(fails, False):
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return int(real(db))

    monkeypatch.setattr(module, "last_id", busy)
    assert [row["id"] for row in taken(follow(path, after_id=0, every=0.001), 1)] == [1]
    assert next(fails, "none left") == "none left"
    asyncio.run(ledger.close())
