"""Many runs at once, on a loop, on many, in threads and processes: no row is lost, commits are few."""

# A few seams are counted from inside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from appending import (
    CONFIGURED,
    ENDED,
    TAKEN,
    append,
    appender_of,
    batch,
    connection_of,
    statements,
    whole,
    whole_run,
)
from footprint_core.errors import LedgerError, LedgerWriteError, RunTakenOverError
from footprint_observe.store.ledger import SqliteLedger

ROOT = Path(__file__).parents[2]
CALLS = 5
BATCHES, ROWS = 2 + 2 * CALLS, 2 + 3 * CALLS


def in_threads(*works: Callable[[], object]) -> None:
    """Run each in a thread of its own, and raise what one of them raised."""
    problems: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that asserts
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if problems:
        raise problems[0]


def test_on_one_loop_64_runs_share_their_commits(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    ran = statements(connection_of(ledger))
    runs = [f"run-{number}" for number in range(64)]

    async def story() -> None:
        await asyncio.gather(*(whole_run(ledger, run, CALLS) for run in runs))

    asyncio.run(story())
    commits = ran.count("COMMIT")
    connection_of(ledger).set_trace_callback(None)
    asyncio.run(ledger.close())
    whole(tmp_path / "l.db", runs, ROWS)
    print(f"64 runs on one loop: {64 * BATCHES} batches, {commits} commits")
    assert commits < 64 * BATCHES / 4


def test_on_loops_in_threads_nothing_is_lost(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    ran = statements(connection_of(ledger))

    async def on_a_loop(name: str) -> None:
        await asyncio.gather(*(whole_run(ledger, f"{name}-{at}", CALLS) for at in range(8)))

    in_threads(*(lambda name=name: asyncio.run(on_a_loop(name)) for name in "abcd"))
    commits = ran.count("COMMIT")
    connection_of(ledger).set_trace_callback(None)
    asyncio.run(ledger.close())
    whole(tmp_path / "l.db", [f"{name}-{at}" for name in "abcd" for at in range(8)], ROWS)
    print(f"32 runs on 4 loops: {32 * BATCHES} batches, {commits} commits")
    assert commits < 32 * BATCHES / 2


def test_a_loop_a_turn_in_many_threads_is_one_ledger_too(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")

    def turns(name: str) -> None:
        for turn in range(10):
            asyncio.run(whole_run(ledger, f"{name}-{turn}", calls=1))

    in_threads(*(lambda name=name: turns(name) for name in "abcdef"))
    asyncio.run(ledger.close())
    whole(tmp_path / "l.db", [f"{name}-{turn}" for name in "abcdef" for turn in range(10)], 5)


WRITES = """
import asyncio, os, sys
from footprint_observe.store.ledger import SqliteLedger
import sys; sys.path[:0] = ["tests"]
from appending import whole_run

path, name, runs, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ledger = SqliteLedger(path)

async def story():
    await asyncio.gather(*(whole_run(ledger, f"{name}-{at}", calls) for at in range(runs)))
    await ledger.close()

asyncio.run(story())
"""


def writes(path: Path, name: str, runs: int, calls: int, *, under: tuple[str, ...] = ()) -> list[str]:
    command = [*under, sys.executable, "-W", "error", "-c", WRITES]
    return [*command, os.fspath(path), name, str(runs), str(calls)]


def test_processes_that_all_have_many_runs_lose_no_row(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    others = [subprocess.Popen(writes(path, name, 16, CALLS), cwd=ROOT) for name in "abc"]
    assert [other.wait(120) for other in others] == [0, 0, 0]
    whole(path, [f"{name}-{at}" for name in "abc" for at in range(16)], ROWS)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to count what is synced")
@pytest.mark.parametrize(("runs", "calls"), [(1, 20), (32, 5)])
def test_every_commit_is_synced_and_many_runs_share_a_sync(tmp_path: Path, runs: int, calls: int) -> None:
    path, trace = tmp_path / "l.db", tmp_path / "trace"
    under = ("strace", "-f", "-qq", "-o", os.fspath(trace), "-e", "trace=fdatasync,fsync")
    done = subprocess.run(
        writes(path, "run", runs, calls, under=under),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if not trace.exists() or "ptrace" in done.stderr:
        pytest.skip("strace may not trace processes here")
    assert done.returncode == 0, done.stderr
    syncs = len(re.findall(r"fdatasync\(\d+\)\s+= 0", trace.read_text()))
    batches = runs * (2 + 2 * calls)
    print(f"{runs} runs, {batches} batches: {syncs} syncs")
    if runs == 1:
        assert syncs >= batches
    else:
        assert syncs < batches / 2
    whole(path, [f"run-{at}" for at in range(runs)], 2 + 3 * calls)


def test_a_batch_that_fails_among_others_fails_only_its_own_run(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    asyncio.run(append(ledger, batch("taken", 1, CONFIGURED, TAKEN)))

    async def go(work: Awaitable[object]) -> LedgerError | None:
        try:
            await work
        except LedgerError as error:
            return error
        return None

    async def story() -> None:
        runs = [f"run-{at}" for at in range(16)]
        failed = await asyncio.gather(
            *(go(whole_run(ledger, run, CALLS)) for run in runs),
            *(go(whole_run(ledger, "taken", CALLS)) for _ in range(2)),
        )
        assert [error for error in failed[:16] if error is not None] == []
        assert [type(error) for error in failed[16:]] == [RunTakenOverError] * 2
        await append(ledger, batch("taken", 3, *[TAKEN] * (ROWS - 3), ENDED))
        await ledger.close()
        whole(tmp_path / "l.db", ["taken", *runs], ROWS)

    asyncio.run(story())


def test_closing_in_a_burst_writes_what_was_taken_and_refuses_the_rest(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")
    kept: dict[str, int] = {}
    enough = asyncio.Event()
    refused: list[tuple[str, bool]] = []

    async def until_closed(run: str) -> None:
        for position in range(1, 100_000):
            await asyncio.sleep(0)
            try:
                await append(ledger, batch(run, position, CONFIGURED if position == 1 else TAKEN))
            except LedgerWriteError as error:
                refused.append((run, "closed" in str(error)))
                return
            kept[run] = position
            if sum(kept.values()) == 200:
                enough.set()

    async def story() -> None:
        runs = [asyncio.ensure_future(until_closed(f"run-{at}")) for at in range(32)]
        await asyncio.wait_for(enough.wait(), 60)
        await asyncio.wait_for(ledger.close(), 60)
        await asyncio.wait_for(asyncio.gather(*runs), 60)

    asyncio.run(story())
    assert sorted(refused) == [(run, True) for run in sorted(kept)]
    assert not [thread for thread in threading.enumerate() if thread.name == "footprint-ledger"]
    for run, position in kept.items():
        assert [entry.position for entry in ledger.entries(run)] == list(range(1, position + 1))


def test_an_append_that_is_cancelled_while_it_is_queued_is_written_whole_and_stops_nobody(
    tmp_path: Path,
) -> None:
    ledger = SqliteLedger(tmp_path / "l.db")

    async def story() -> None:
        with appender_of(ledger)._lock:
            tasks = [asyncio.ensure_future(ledger.append(batch(f"run-{at}", 1, TAKEN))) for at in range(6)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.sleep(0)
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True, False] * 3
        await ledger.close()

    asyncio.run(story())
    whole(tmp_path / "l.db", [f"run-{at}" for at in range(6)], 1)
