"""CPU of one call in the governed loop beside a bare loop in the same process, as ratios.

Run it as a program; it is no test. Pairs are interleaved, garbage collection is on and untouched, and each
figure is the median of the pairs; N=200 calls decide. `--json FILE` writes the figures too. Where the
reference that the bare loop was written after is at hand, it runs too, and how much they differ is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import bare

from footprint_core import (
    Agent,
    MessageContext,
    ToolCallContext,
    ToolResultContext,
    allow,
    deny,
)
from footprint_core.providers import Chunk, Completed, ModelRequest, Whole, call

PAIRS, DECIDES = 15, 200
GROWTH = (100, 1_000, 10_000)
BUDGET, BUDGET_SLOPE = 4.0, 1.05
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


class Scrub:
    """Masks a social security number in what it is shown."""

    name, version = "scrub", "1"

    def on_message(self, message: MessageContext) -> Any:
        text = message.content
        clean = bare.SSN.sub("[ssn]", text) if "-" in text else text
        return allow() if clean == text else allow(clean, why="masked a US SSN")

    def on_tool_result(self, call: ToolResultContext) -> Any:
        text = call.result
        clean = bare.SSN.sub("[ssn]", text) if "-" in text else text
        return allow() if clean == text else allow(clean, why="masked a US SSN")


class Ceiling:
    """Refuses what is above it."""

    name, version = "ceiling", "1"

    def on_tool_call(self, call: ToolCallContext) -> Any:
        return deny("too high") if call.args["n"] > 10_000 else allow()


def plain_lookup(key: str, n: int) -> str:
    """Look something up."""
    return bare.TEXT


def governed(calls: int, *, rules: bool = False, plain: bool = False) -> Agent:
    """The agent, with its ledger in memory and nobody watching."""
    builder = Agent.create(provider=Model(calls), model="m", name="bench", max_iterations=calls + 1)
    # A function with another name is the same tool to the model.
    plain_lookup.__name__ = "lookup"
    builder.tool(plain_lookup if plain else bare.Tool().lookup)
    if rules:
        scrub: Any = Scrub()
        builder.act(input=[scrub], before_tool=[Ceiling()], after_tool=[scrub], output=[scrub])
    return builder.build()


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began


def compare(
    runner: asyncio.Runner, calls: int, *, rules: bool = False, plain: bool = False, pairs: int = PAIRS
) -> dict[str, Any]:
    """CPU a call in microseconds, governed and bare, and their ratio."""
    found: list[tuple[float, float]] = []
    for _ in range(pairs + 1):
        agent = governed(calls, rules=rules, plain=plain)
        kept = bare.Rules() if rules else None
        reference = bare.loop(bare.Script(calls), bare.Tool(), bare.MESSAGE, kept)
        if plain:
            # It has an event loop of its own, so the reference gets one too.
            one = cpu(lambda: agent.run_sync(bare.MESSAGE))  # noqa: B023 - called at once
            two = cpu(lambda: asyncio.run(reference))  # noqa: B023 - called at once
        else:
            one = cpu(lambda: runner.run(_run(agent)))  # noqa: B023 - called at once
            two = cpu(lambda: runner.run(reference))  # noqa: B023 - called at once
        found.append((one, two))
    found = found[1:]
    return {
        "calls": calls,
        "rules": 4 if rules else 0,
        "plain": plain,
        "governed_us": statistics.median(one for one, _ in found) / calls * 1e6,
        "bare_us": statistics.median(two for _, two in found) / calls * 1e6,
        "added_us": statistics.median(one - two for one, two in found) / calls * 1e6,
        "ratio": statistics.median(one / two for one, two in found),
        "budget": BUDGET if calls == DECIDES else None,
    }


def reference(calls: int, *, rules: bool) -> float | None:
    """CPU a call in microseconds of the reference program, or None where it is not at hand."""
    if not SHARED.is_file():
        return None
    command = [sys.executable, "-B", str(SHARED), "--calls", str(calls), "--reps", str(PAIRS), "--no-mem"]
    done = subprocess.run(
        [*command, "--gov", "mw" if rules else "none"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    milliseconds: float = json.loads(done.stdout.splitlines()[-1])["cpu_ms_median"]
    return milliseconds / calls * 1000


def slope(sizes: list[dict[str, Any]], name: str) -> float:
    """The slope of log CPU over log N, by least squares: 1 where no call costs more than those before it."""
    xs = [math.log(one["calls"]) for one in sizes]
    ys = [math.log(one[name] * one["calls"]) for one in sizes]
    x, y = statistics.fmean(xs), statistics.fmean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def kept_bytes(calls: int) -> float:
    """Bytes a call that an agent and its ledger in memory hold at the end of a run."""
    agent = governed(calls)
    tracemalloc.start()
    try:
        asyncio.run(_run(agent))
        return tracemalloc.get_traced_memory()[0] / calls
    finally:
        tracemalloc.stop()


async def _run(agent: Agent) -> None:
    await agent.run(bare.MESSAGE)


def told(one: dict[str, Any]) -> str:
    """One line of the table."""
    what = f"{one['rules']} rules" + (", plain tool, run_sync" if one["plain"] else "")
    budget, ratio = one["budget"], one["ratio"]
    verdict = "" if budget is None else f"  budget {budget:.0f}" + ("" if ratio <= budget else "  missed")
    return (
        f"{what:<32}{one['calls']:>7}{one['governed_us']:>10.1f}{one['bare_us']:>8.1f}{ratio:>8.2f}{verdict}"
    )


def at_200(runner: asyncio.Runner) -> list[dict[str, Any]]:
    """The cases that are held to a budget, printed as they come."""
    found: list[dict[str, Any]] = []
    for how in ({}, {"plain": True}, {"rules": True}):
        one = compare(runner, DECIDES, **how)
        found.append(one)
        print(told(one), flush=True)
        shared = None if one["plain"] else reference(DECIDES, rules=bool(one["rules"]))
        if shared is not None:
            one["reference_us"] = shared
            differs = one["bare_us"] / shared - 1
            print(
                f"  the reference takes {shared:.1f} us; the bare loop differs by {differs:+.0%}", flush=True
            )
    return found


def growth(runner: asyncio.Runner) -> dict[str, Any]:
    """How the cost of a run grows with its calls, printed."""
    sizes = [compare(runner, calls, pairs=PAIRS if calls < GROWTH[-1] else 5) for calls in GROWTH]
    print("\n".join(map(told, sizes)))
    slopes = {name: slope(sizes, f"{name}_us") for name in ("governed", "bare", "added")}
    verdict = "" if slopes["added"] <= BUDGET_SLOPE else "  missed"
    print(
        f"slope of log CPU over log N: {slopes['governed']:.3f}, bare {slopes['bare']:.3f}; "
        f"of what is added to bare {slopes['added']:.3f}  budget {BUDGET_SLOPE}{verdict}"
    )
    held = {calls: kept_bytes(calls) for calls in GROWTH}
    print("bytes kept a call: " + ", ".join(f"{size:.0f} at {calls}" for calls, size in held.items()))
    return {"sizes": sizes, "slopes": slopes, "bytes_a_call": held}


def main() -> None:
    """Print one line a case and size."""
    parser = argparse.ArgumentParser(description="CPU of one call in the governed loop.")
    parser.add_argument("--json", type=Path, help="Write the figures here.")
    parser.add_argument("--no-growth", action="store_true", help="Leave out the long runs.")
    asked = parser.parse_args()
    print(f"{'CPU per call, microseconds':<32}{'N':>7}{'governed':>10}{'bare':>8}{'ratio':>8}")
    with asyncio.Runner() as runner:
        report: dict[str, Any] = {"cases": at_200(runner)}
        if not asked.no_growth:
            report["growth"] = growth(runner)
    if asked.json is not None:
        asked.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
