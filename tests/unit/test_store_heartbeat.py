"""While another process holds the write lock for three seconds, 64 runs wait and the event loop does not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from appending import whole, whole_run
from footprint_observe.store.ledger import SqliteLedger

HELD_SECONDS = 3.0
RUNS, CALLS = 64, 5

HOLDS = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
sys.stdin.readline()
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("ROLLBACK")
print("free", flush=True)
connection.close()
"""


class Heart:
    """Beats as often as the loop lets it, and remembers the longest it was not let."""

    def __init__(self) -> None:
        self.largest_gap = 0.0
        self.beats = 0

    async def beat(self) -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.001)
            now = time.monotonic()
            self.largest_gap = max(self.largest_gap, now - before)
            self.beats += 1
            before = now


def test_while_another_process_holds_the_lock_the_loop_goes_on_and_every_run_ends(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    ledger = SqliteLedger(path)
    heart = Heart()
    runs = [f"run-{at}" for at in range(RUNS)]

    async def story() -> float:
        holder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOLDS, os.fspath(path), str(HELD_SECONDS),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert holder.stdin is not None
        assert holder.stdout is not None
        beating = asyncio.ensure_future(heart.beat())
        going = [asyncio.ensure_future(whole_run(ledger, run, CALLS)) for run in runs[: RUNS // 2]]
        holder.stdin.write(b"go\n")
        assert await holder.stdout.readline() == b"held\n"
        held = time.monotonic()
        going += [asyncio.ensure_future(whole_run(ledger, run, CALLS)) for run in runs[RUNS // 2 :]]
        assert await holder.stdout.readline() == b"free\n"
        held = time.monotonic() - held
        await asyncio.gather(*going)
        beating.cancel()
        assert await holder.wait() == 0
        await ledger.close()
        return held

    held = asyncio.run(asyncio.wait_for(story(), 120))
    print(
        f"lock held for {held:.1f} s beside {RUNS} runs: {heart.beats} beats of 1 ms, "
        f"the largest gap {heart.largest_gap * 1000:.0f} ms"
    )
    assert heart.largest_gap < HELD_SECONDS
    whole(path, runs, 2 + 3 * CALLS)
