"""Durable appends beside hand-written code that builds, hashes and inserts the same rows, as ratios.

Run it as a program; it is no test. `--folder` is where the files lie: a disk that syncs tells what a user
waits for, and one in memory (/dev/shm) what the code costs. `--json FILE` writes the figures too.

The rows of a tool call are one reply, four rules before it (one changes the arguments), the intent, an
outcome of 200 bytes, and two rules behind it (one changes the result); they are committed as the loop does.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

sys.path.insert(0, str(Path(__file__).parent))

from handwritten import Handwritten

from footprint_core.facts import (
    Decided,
    Fact,
    ModelReplied,
    RunConfigured,
    ToolFinished,
    ToolIntended,
    TraceRef,
)
from footprint_core.facts.words import Usage
from footprint_core.ledger import Batch, Entry, Redactor
from footprint_core.messages import ToolCall
from footprint_observe import Redaction, SqliteLedger
from footprint_observe.store.schema import HASHED_COLUMNS

PAIRS = 15
CALLS, RUNS, CALLS_OF_A_RUN = 200, 64, 8

Spent: TypeAlias = tuple[float, float]
"""Wall and CPU seconds."""

RESULT = {"order": 4711, "status": "refunded", "customer": "c-1009", "note": "n" * 136}
ARGS = {"order": 4711, "amount": 4200, "currency": "EUR", "reason": "the parcel came late"}


def of_a_call(number: int, *, results: bool) -> tuple[tuple[Fact, ...], ...]:
    """The facts of one tool call, a tuple for each commit."""
    call = f"call-{number}"
    about: dict[str, Any] = {"iteration": number, "call_id": call, "tool_name": "issue_refund"}
    judged: dict[str, Any] = {**about, "outcome": "allow", "duration_us": 7}
    before = [
        Decided(**judged, middleware=name, version="549331a9fdbe", moment="before-tool")
        for name in ("known-order", "four-eyes", "rate")
    ]
    lowered = Decided(
        **judged, middleware="refund-ceiling", version="5654d6a3d8c7", moment="before-tool", changed=True,
        why="over the ceiling, so it was lowered", before=ARGS, after=ARGS | {"amount": 3000},
    )  # fmt: skip
    reply = ModelReplied(
        iteration=number, call_count=1, stop_reason="tool_use", duration_us=812_345, route="tool-calls",
        usage=Usage(input=1200, output=80), text="I will refund that order now.",
        calls=(ToolCall(id=call, name="issue_refund", args_json=json.dumps(ARGS)),),
    )  # fmt: skip
    intended = ToolIntended(**about, args=ARGS | {"amount": 3000})
    finished = ToolFinished(**about, failed=False, duration_us=15_321, result=RESULT)
    commits: tuple[tuple[Fact, ...], ...] = ((reply, *before, lowered, intended), (finished,))
    if results:
        looked = Decided(**judged, middleware="fresh", version="77aa31a9fdbe", moment="after-tool")
        cut = Decided(
            **judged, middleware="strip-note", version="5654d6a3d8aa", moment="after-tool", changed=True,
            why="notes are not for the model", before=RESULT, after=RESULT | {"note": ""},
        )  # fmt: skip
        commits += ((looked, cut),)
    return commits


CONFIGURED = RunConfigured(
    agent_id="a" * 32, agent_name="bench", provider="p", model="m", rules={}, tools=(), turn_index=1
)
TRACE = TraceRef(trace_id="a" * 32, span_id="b" * 16)


class Run:
    """The batches of one run: the one that begins it, and those of its calls."""

    def __init__(self, run_id: str, calls: int, *, results: bool) -> None:
        self._run_id = run_id
        self._position = 0
        self.first = self._batch((CONFIGURED,))
        self.batches = [
            self._batch(facts)
            for number in range(1, calls + 1)
            for facts in of_a_call(number, results=results)
        ]

    def _batch(self, facts: Sequence[Fact]) -> Batch:
        first = self._position + 1
        self._position += len(facts)
        entries = tuple(
            Entry(position=at, time=1_700_000_000_000_000 + at, fact=fact)
            for at, fact in enumerate(facts, first)
        )
        return Batch(run_id=self._run_id, segment=1, entries=entries, trace=TRACE)


class Side(Protocol):
    """One of the two that are compared, over a file of its own."""

    def spent(self, runs: Sequence[Run]) -> Spent: ...

    def close(self) -> None: ...


class Ours:
    """The ledger, through its two ways in."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        self._ledger = SqliteLedger(path, redact=redact)

    def spent(self, runs: Sequence[Run]) -> Spent:
        async def follow(run: Run) -> None:
            for batch in run.batches:
                if self._ledger.append_inline(batch) is None:
                    await self._ledger.append(batch)

        async def story() -> Spent:
            for run in runs:
                _ = self._ledger.append_inline(run.first) or await self._ledger.append(run.first)
            return await together(follow, runs)

        return asyncio.run(story())

    def close(self) -> None:
        asyncio.run(self._ledger.close())


class Theirs:
    """The reference."""

    def __init__(self, path: Path) -> None:
        self._written = Handwritten(path)

    def spent(self, runs: Sequence[Run]) -> Spent:
        async def follow(run: Run) -> None:
            for batch in run.batches:
                if len(runs) == 1:
                    self._written.append(batch)
                else:
                    await self._written.put(batch)

        return asyncio.run(together(follow, runs))

    def close(self) -> None:
        self._written.close()


async def together(follow: Callable[[Run], Any], runs: Sequence[Run]) -> Spent:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(follow, runs))
    return time.perf_counter() - wall, time.process_time() - cpu


class Case:
    """One comparison: who appends, how the batches are cut, and what is redacted."""

    def __init__(self, name: str, redact: Redactor, *, many: bool, results: bool) -> None:
        self.name = name
        self._redact = redact
        given = [(f"{at:032x}", CALLS_OF_A_RUN) for at in range(RUNS)] if many else [("f" * 32, CALLS)]
        self._runs = [Run(run_id, calls, results=results) for run_id, calls in given]
        self.rows = sum(len(batch.entries) for run in self._runs for batch in run.batches)
        self.commits = sum(len(run.batches) for run in self._runs)

    def pair(self, folder: Path) -> tuple[Spent, Spent]:
        """Ours and theirs, each over a new file."""
        ours = self._measured(Ours(folder / "ours.db", self._redact))
        theirs = self._measured(Theirs(folder / "theirs.db"))
        return ours, theirs

    def _measured(self, side: Side) -> Spent:
        try:
            return side.spent(self._runs)
        finally:
            side.close()


def compared(case: Case, base: Path, count: int = PAIRS) -> dict[str, Any]:
    """The medians of interleaved pairs."""
    pairs: list[tuple[Spent, Spent]] = []
    bytes_a_row = 0.0
    for at in range(count + 1):
        with tempfile.TemporaryDirectory(dir=base) as made:
            folder = Path(made)
            pairs.append(case.pair(folder))
            if not at:
                same_rows(folder)
                bytes_a_row = (folder / "ours.db").stat().st_size / case.rows
    del pairs[0]
    found: dict[str, Any] = {"case": case.name, "rows": case.rows, "bytes_a_row": bytes_a_row}
    for at, clock in enumerate(("wall", "cpu")):
        found[f"{clock}_ratio"] = statistics.median(two[at] / one[at] for one, two in pairs)
        found[f"{clock}_rows_s"] = case.rows / statistics.median(one[at] for one, _ in pairs)
        found[f"{clock}_reference_rows_s"] = case.rows / statistics.median(two[at] for _, two in pairs)
    return found


SALTED = {"commitments", "prev_hash", "hash", "id"}
"""What differs between equal rows: it hangs on random salts, and on whose turn it was."""


def same_rows(folder: Path) -> None:
    """Both files hold the same rows and values, or the comparison is none."""
    kept = [column for column in HASHED_COLUMNS if column not in SALTED]
    marks = " AND redacted IS NULL" if "redacted" in kept else ""
    rows = (
        f"SELECT {', '.join(kept)} FROM facts WHERE kind <> 'run.configured'{marks} ORDER BY run_id, position"
    )
    values = (
        "SELECT run_id, position, field, json FROM vals JOIN facts ON fact_id = id "
        "WHERE kind <> 'run.configured' ORDER BY run_id, position, field"
    )
    asked = [
        [sqlite3.connect(folder / name).execute(query).fetchall() for query in (rows, values)]
        for name in ("ours.db", "theirs.db")
    ]
    if asked[0] != asked[1]:
        raise SystemExit("The two sides did not write the same rows, so nothing was compared.")


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the files lie; the system's temporary folder")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs a case; %(default)s")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    asked = parser.parse_args()
    found: list[dict[str, Any]] = []
    for many in (False, True):
        for results in (True, False):
            for redacted, redact in (("none", Redaction.none()), ("standard", Redaction.standard())):
                name = (
                    f"{RUNS if many else 1} run{'s' * many}, {3 if results else 2} commits a call, {redacted}"
                )
                one = compared(Case(name, redact, many=many, results=results), asked.folder, asked.pairs)
                found.append(one)
                print(
                    f"{one['case']:<40} wall {one['wall_ratio']:.2f}x ({one['wall_rows_s']:,.0f} of "
                    f"{one['wall_reference_rows_s']:,.0f} rows/s)  CPU {one['cpu_ratio']:.2f}x "
                    f"({one['cpu_rows_s']:,.0f} of {one['cpu_reference_rows_s']:,.0f})  "
                    f"{one['bytes_a_row']:.0f} B a row",
                    flush=True,
                )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
