"""A ledger made before a fork is used behind it, by many runs at once, in the parent and in every child."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from appending import whole

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PRELUDE = """
import asyncio, multiprocessing, os, sys, threading
from footprint_observe.store.ledger import SqliteLedger
import sys; sys.path[:0] = ["tests"]
from appending import CONFIGURED, TAKEN, append, batch, whole_run

path = sys.argv[1]

async def many(ledger, name, runs=8, calls=3):
    await asyncio.gather(*(whole_run(ledger, f"{name}-{at}", calls) for at in range(runs)))

def in_child(work, *given):
    child = os.fork()
    if child:
        return child
    try:
        work(*given)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
    os._exit(0)

def joined(*children):
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
"""

ROWS = 2 + 3 * 3


def told(story: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + story, os.fspath(path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def runs(*names: str) -> list[str]:
    return [f"{name}-{at}" for name in names for at in range(8)]


def test_two_workers_use_the_ledger_their_parent_made_before_them(tmp_path: Path) -> None:
    # As a server does that loads the application once and then forks its workers.
    told(
        """
ledger = SqliteLedger(path)
def work(name):
    for turn in range(3):
        asyncio.run(many(ledger, f"{name}-{turn}"))
    asyncio.run(ledger.close())
joined(in_child(work, "one"), in_child(work, "two"))
asyncio.run(many(ledger, "parent"))
asyncio.run(ledger.close())
""",
        tmp_path / "l.db",
    )
    names = [f"{name}-{turn}" for name in ("one", "two") for turn in range(3)]
    whole(tmp_path / "l.db", runs("parent", *names), ROWS)


def test_a_pool_of_processes_inherits_a_ledger_that_is_in_use(tmp_path: Path) -> None:
    told(
        """
ledger = SqliteLedger(path)
asyncio.run(many(ledger, "before"))
def work(name):
    asyncio.run(many(ledger, name))
    asyncio.run(ledger.close())
processes = [multiprocessing.get_context("fork").Process(target=work, args=(name,)) for name in "ab"]
for process in processes:
    process.start()
asyncio.run(many(ledger, "beside"))
for process in processes:
    process.join(60)
    assert process.exitcode == 0
asyncio.run(ledger.close())
""",
        tmp_path / "l.db",
    )
    whole(tmp_path / "l.db", runs("before", "beside", "a", "b"), ROWS)


def test_a_child_begins_with_no_run_open_and_no_writer_at_work(tmp_path: Path) -> None:
    said = told(
        """
ledger = SqliteLedger(path)
async def two_are_open():
    await append(ledger, batch("a", 1, CONFIGURED))
    await append(ledger, batch("b", 1, CONFIGURED))
    assert ledger.append_inline(batch("a", 2, TAKEN)) is None
asyncio.run(two_are_open())
def work():
    # The runs of the parent are not in the way of the child's.
    async def one():
        await append(ledger, batch("c", 1, CONFIGURED))
    asyncio.run(one())
    opened = ledger._by_process[os.getpid()]
    print(list(opened.runs._appended), opened.writer.idle, opened.writer._thread is None)
    asyncio.run(ledger.close())
joined(in_child(work))
opened = ledger._by_process[os.getpid()]
print(list(opened.runs._appended), opened.writer._thread is None)
asyncio.run(ledger.close())
""",
        tmp_path / "l.db",
    )
    # It has a writer thread of its own, which opened the file: on the loop that could wait.
    assert said.splitlines() == ["['c'] True False", "['b', 'a'] False"]


def test_behind_a_fork_the_file_is_not_opened_on_the_event_loop(tmp_path: Path) -> None:
    said = told(
        """
ledger = SqliteLedger(path)
async def story():
    joined(in_child(lambda: None))
    print(ledger.append_inline(batch("a", 1, CONFIGURED)))
    await ledger.append(batch("a", 1, CONFIGURED))
    await append(ledger, batch("a", 2, TAKEN))
    await ledger.close()
asyncio.run(story())
""",
        tmp_path / "l.db",
    )
    assert said.splitlines() == ["None"]
    whole(tmp_path / "l.db", ["a"], 2)


def test_a_process_forked_while_a_ledger_file_is_read_opens_none_and_says_why(tmp_path: Path) -> None:
    said = told(
        """
from footprint_core.errors import LedgerError
from footprint_observe.query.database import reading
from footprint_observe.store.verify import heads
ledger = SqliteLedger(path)
def refused(*works):
    for work in works:
        try:
            work()
        except LedgerError as error:
            print(type(error).__name__, "was forked while" in str(error), flush=True)
def alone():
    asyncio.run(append(ledger, batch("child", 1, CONFIGURED)))
def all_of_it():
    refused(alone, lambda: SqliteLedger(path), lambda: ledger.entries("parent"))
def its_child():
    joined(in_child(all_of_it))
asyncio.run(append(ledger, batch("parent", 1, CONFIGURED)))
answers = heads(path)
next(answers)
joined(in_child(all_of_it))
answers.close()
with reading(path):
    joined(in_child(its_child))
joined(in_child(lambda: asyncio.run(whole_run(ledger, "later", 1))))
asyncio.run(append(ledger, batch("parent", 2, TAKEN)))
asyncio.run(ledger.close())
print(len(SqliteLedger(path).entries("later")))
""",
        tmp_path / "l.db",
    )
    refusals = ["LedgerWriteError True", "LedgerOpenError True", "LedgerOpenError True"]
    assert said.splitlines() == [*refusals, *refusals, "5"]


def test_nothing_is_opened_while_a_fork_waits_for_what_is_open(tmp_path: Path) -> None:
    # A set that changed while it is walked would end the walk, and the fork would go on all the same.
    said = told(
        """
from footprint_observe.store import forked
class Holder:
    def suspend(self):
        self.adding = threading.Thread(target=forked.suspend_when_forking, args=(other,))
        self.adding.start()
        self.adding.join(0.2)
        print(self.adding.is_alive(), flush=True)
    def resume(self):
        pass
holder, other = Holder(), Holder()
forked.suspend_when_forking(holder)
joined(in_child(lambda: forked.suspend_when_forking(Holder())))
holder.adding.join(60)
print(holder.adding.is_alive())
""",
        tmp_path / "l.db",
    )
    assert said.splitlines() == ["True", "False"]


def test_a_fork_while_many_runs_append_loses_nothing_and_waits_for_no_lock_of_another_process(
    tmp_path: Path,
) -> None:
    told(
        """
import sqlite3
ledger = SqliteLedger(path)
def work(name):
    asyncio.run(many(ledger, name))
    asyncio.run(ledger.close())
async def story():
    running = asyncio.ensure_future(many(ledger, "parent", calls=3))
    children = []
    for name in "abc":
        await asyncio.sleep(0)
        children.append(in_child(work, name))
    await running
    return children
joined(*asyncio.run(story()))

holder = sqlite3.connect(path, isolation_level=None)
holder.execute("BEGIN IMMEDIATE")
async def while_it_is_locked():
    waiting = asyncio.ensure_future(many(ledger, "late"))
    while ledger._by_process[os.getpid()].writer.idle:
        await asyncio.sleep(0)
    child = in_child(lambda: None)  # must not wait for the lock, which is given back only below
    holder.execute("ROLLBACK")
    await waiting
    return child
joined(asyncio.run(asyncio.wait_for(while_it_is_locked(), 60)))
holder.close()
asyncio.run(ledger.close())
""",
        tmp_path / "l.db",
    )
    whole(tmp_path / "l.db", runs("parent", "a", "b", "c", "late"), ROWS)
