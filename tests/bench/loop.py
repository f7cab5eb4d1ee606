"""CPU of one call in the governed loop beside a bare loop in the same process, as ratios.

Run it as a program; it is no test. Pairs are interleaved, and each figure is the median of them.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import bare

from footprint_core import Agent
from footprint_core.providers import Chunk, Completed, ModelRequest, Whole, call

PAIRS = 15
SHARED = Path(__file__).resolve().parents[3] / "shared" / "bench" / "bare.py"
"""The reference this file's bare loop was written after, where it is at hand."""


class Model:
    """Says what the script says."""

    name = "bench"

    def __init__(self, calls: int) -> None:
        self._script = bare.Script(calls)

    def reply(self, request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        calls = self._script.next()
        if calls is None:
            return Whole(Completed(text="done"))
        asked = tuple(call(i, "lookup", x) for i, x in calls)
        return Whole(Completed(tool_calls=asked, stop_reason="tool_use"))


def governed(calls: int) -> Agent:
    """The agent without rules, with its ledger in memory and nobody watching."""
    created = Agent.create(provider=Model(calls), model="m", name="bench", max_iterations=calls + 1)
    return created.tool(bare.Tool().lookup).build()


def measured(runner: asyncio.Runner, work: Any) -> float:
    """CPU seconds of one turn."""
    began = time.process_time()
    runner.run(work)
    return time.process_time() - began


def compare(runner: asyncio.Runner, calls: int) -> dict[str, float]:
    """CPU a call in microseconds, governed and bare, and their ratio."""
    pairs: list[tuple[float, float]] = []
    for _ in range(PAIRS + 1):
        agent = governed(calls)
        one = measured(runner, _run(agent))
        two = measured(runner, bare.loop(bare.Script(calls), bare.Tool(), "please look these up"))
        pairs.append((one, two))
    pairs = pairs[1:]
    return {
        "calls": calls,
        "governed_us": statistics.median(one for one, _ in pairs) / calls * 1e6,
        "bare_us": statistics.median(two for _, two in pairs) / calls * 1e6,
        "ratio": statistics.median(one / two for one, two in pairs),
    }


def reference(calls: int) -> float | None:
    """CPU a call in microseconds of the reference program, or None where it is not at hand."""
    if not SHARED.is_file():
        return None
    command = [sys.executable, "-B", str(SHARED), "--calls", str(calls), "--reps", str(PAIRS), "--no-mem"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    milliseconds: float = json.loads(done.stdout.splitlines()[-1])["cpu_ms_median"]
    return milliseconds / calls * 1000


async def _run(agent: Agent) -> None:
    await agent.run("please look these up")


def main() -> None:
    """Print one line a size."""
    with asyncio.Runner() as runner:
        for calls in (100, 1000):
            found = compare(runner, calls)
            print(
                f"CPU per call at N={calls}: governed {found['governed_us']:.1f} us, "
                f"bare {found['bare_us']:.1f} us, ratio {found['ratio']:.2f}"
            )
            shared = reference(calls)
            if shared is not None:
                differs = (found["bare_us"] / shared - 1) * 100
                print(f"  the reference: {shared:.1f} us a call; the bare loop differs by {differs:+.0f} %")


if __name__ == "__main__":
    main()
