"""What recorders hold and get stays as it is, however long a process lives and a conversation grows."""

from __future__ import annotations

import asyncio
import gc
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from footprint_core import Agent, allow, on_message
from footprint_core.events import Event
from footprint_core.providers import ModelRequest, Whole, call, reply
from footprint_observe.recording import handovers
from recorders.console import Console
from recorders.memory import Memory

TESTS = Path(__file__).parents[1]
EARLY, LATE = 2_000, 10_000
GROWTH_KIB = 4096
"""Half a KiB a turn. What was reported was 196, for ever."""

SOAK = f"""
import asyncio, gc, logging, sys
from pathlib import Path

from complaints.test_recorder_memory import Talks, passes
from file_ledger import on_file
from footprint_core import Agent
from footprint_core.providers import reply
from footprint_observe.recording import handovers, queued
from recorders.console import Console
from recorders.otel_spans import OtelSpans
from telling.faults.collectors import free_port

class Counts:
    id = "counts"
    count = 0
    def on_event(self, event):
        self.count += 1

def kib():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4

async def soak(folder, lines):
    spans = OtelSpans.to_otlp(f"http://127.0.0.1:{{free_port()}}")
    counts = Counts()
    builder = Agent.create(provider=Talks(reply(text="done")), model="m", name="soak")
    builder.act(input=[passes]).watch(spans, queued(counts), Console(file=lines))
    agent = builder.ledger(on_file(folder / "l.db")).build()
    sizes = {{}}
    for turn in range(1, {LATE} + 1):
        await agent.session().run("go")
        if turn in ({EARLY}, {LATE}):
            sizes[turn] = kib()
    held = sum(one.queued for one in handovers())
    await agent.close()
    assert spans.dropped > 3 * {LATE} - 3000, spans.dropped
    assert counts.count > 10 * {LATE}, counts.count
    print(sizes[{EARLY}], sizes[{LATE}], held)

logging.disable()
folder = Path(sys.argv[1])
with (folder / "lines").open("w") as lines:
    asyncio.run(soak(folder, lines))
"""


class Talks:
    """A model that says the same in every turn and keeps nothing."""

    name = "talks"

    def __init__(self, *replies: Any) -> None:
        self._replies = replies
        self._asked = 0

    def reply(self, _request: ModelRequest, /) -> Whole:
        self._asked += 1
        return Whole(self._replies[(self._asked - 1) % len(self._replies)])


@on_message("passes")
def passes(_message: Any) -> Any:
    return allow()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="The memory of a process is not told here.")
def test_c092_ten_thousand_turns_with_a_dead_collector_take_no_more_memory_than_two_thousand(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SOAK, os.fspath(tmp_path)],
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    early, late, held = map(int, done.stdout.split())
    assert late - early < GROWTH_KIB
    # One queue of spans with a batch on its way, one of lines, one of events.
    assert held <= 2048 + 128 + 2 * 4096


def look(q: str) -> str:
    """Look something up."""
    return q * 50


def test_c091_a_watcher_gets_as_much_of_a_late_turn_as_of_an_early_one() -> None:
    step = (reply(text="I look", calls=[call("c", "look", {"q": "x" * 500})]), reply(text="done " * 500))
    memory = Memory(keep=None)
    agent = (
        Agent.create(provider=Talks(*step), model="m", name="talks")
        .tool(look)
        .act(input=[passes])
        .watch(memory)
        .build()
    )

    async def talk() -> None:
        await agent.run("go " * 500)
        for _ in range(99):
            await agent.follow_up("go on " * 500)

    asyncio.run(talk())
    turns = of_turns(memory.events)
    assert len(turns) == 100
    assert [event.type for event in turns[1]] == [event.type for event in turns[99]]
    for early, late in zip(turns[1], turns[99], strict=True):
        # Counts have a digit more, and nothing else.
        assert abs(size(late) - size(early)) <= 24
        assert size(late) < 1024


def size(event: Event) -> int:
    return len(msgspec.json.encode(event))


def of_turns(events: tuple[Event, ...]) -> list[list[Event]]:
    """The events of each run, in order."""
    out: dict[str, list[Event]] = {}
    for event in events:
        out.setdefault(event.run_id, []).append(event)
    return list(out.values())


def test_c092_a_queue_that_nobody_has_any_more_is_forgotten() -> None:
    before = len(handovers())
    for _ in range(100):
        Console(file=io.StringIO()).close(1.0)
    gc.collect()
    assert len(handovers()) <= before
