"""Events in a file of JSON lines: told to its recorder, read back, and written by other processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from footprint_core.events import Event
from footprint_observe.testing import sample_events
from recorders.jsonl import Jsonl

ROOT = Path(__file__).parents[1]
SAMPLES = sample_events()


def tell(lines: Jsonl, times: int = 1) -> None:
    for _ in range(times):
        for event in SAMPLES:
            lines.on_event(event)


def events_in(path: Path) -> list[Event]:
    """The events of a file, each of whose lines must be whole."""
    text = path.read_bytes()
    assert text.endswith(b"\n")
    return [msgspec.json.decode(line, type=Event) for line in text.splitlines()]


def run(program: str) -> str:
    """What a program prints, in a process of its own."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert done.stderr == "", done.stderr
    return done.stdout
