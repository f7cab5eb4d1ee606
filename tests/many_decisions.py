"""A file with more decisions than two blocks of sums hold, not in the order of their times."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

from file_ledger import on_file
from footprint_core.clock import iso
from footprint_core.decisions import Verdict
from footprint_core.facts import Decided, Fact, RunConfigured
from footprint_core.ledger import Batch, Entry
from footprint_observe.store.totals import BLOCK

DAY = 86_400_000_000
BEGAN = 20_500 * DAY
ROWS = 2 * BLOCK + 500
RULES = ("ceiling", "four-eyes", "fee")
OUTCOMES: tuple[Verdict, ...] = ("allow", "deny", "ask")


def time_of(day: int, hour: int = 0) -> str:
    """A time in the span of the file, which begins with day -1 and has five days."""
    return iso(BEGAN + day * DAY + hour * 3_600_000_000)


def _facts() -> Iterator[tuple[int, Fact]]:
    for i in range(ROWS):
        day = i * 5 // ROWS - (i % 11 == 0)
        at = BEGAN + day * DAY + i * 37_000_000 % DAY
        if i % 7 == 0:
            yield (
                at,
                RunConfigured(
                    agent_id="a", agent_name="a", provider="s", model="m", rules={}, tools=(), turn_index=1
                ),
            )
        else:
            yield (
                at,
                Decided(
                    middleware=RULES[i % 3],
                    moment="before-tool" if i % 5 else "input",
                    iteration=1,
                    outcome=OUTCOMES[i % 13 % 3],
                    version=None if i % 2 else str(i * 3 // ROWS),
                    tool_name=f"tool-{i % 2}" if i % 5 else None,
                    tool_source="shop" if i % 4 == 0 else None,
                    call_id="c" if i % 5 else None,
                    shadow=i % 17 == 0,
                    changed=i % 6 == 0,
                    why=f"number {i}",
                    decided_by="dana@ops" if i % 1009 == 0 else None,
                ),
            )


def write(path: Path) -> Path:
    """Write the file: runs of 1000 rows, whose ids are 1, 2 and so on."""
    ledger = on_file(path)
    facts = _facts()
    for run in itertools.count(1):
        part = list(itertools.islice(facts, 1000))
        if not part:
            break
        entries = tuple(Entry(position=p, time=at, fact=fact) for p, (at, fact) in enumerate(part, 1))
        ledger.append_inline(Batch(run_id=f"{run:032x}", segment=1, entries=entries))
    asyncio.run(ledger.close())
    return path
