"""What survives a loss of power was synced first: every commit, before anybody is told of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crash import strace
from crash.killable import Order
from crash.process import as_left_by_a_kill, notes_of, play

pytestmark = pytest.mark.skipif(bool(strace.why_not()), reason=strace.why_not() or "strace works")
SYNCED = re.compile(r"\bfdatasync\(\d+\)\s+= 0")


def lines(at: Path, order: Order) -> list[str]:
    """What a process wrote and synced while it played, in order."""
    as_left_by_a_kill(at)
    trace = at / "trace"
    assert play(at, order, *strace.traced(trace, "fdatasync,pwrite64,write")) == 0
    found = trace.read_text(errors="replace").splitlines()
    first = next(number for number, line in enumerate(found) if "opened" in line)
    last = next(number for number, line in enumerate(found) if "played" in line)
    return found[first:last]


def test_under_power_no_append_is_acknowledged_before_it_is_synced(tmp_path: Path) -> None:
    traced = lines(tmp_path / "at", Order(durability="power", short=True))
    begun = [number for number, line in enumerate(traced) if "begins" in line]
    kept = [number for number, line in enumerate(traced) if "kept" in line]
    assert len(begun) == len(kept) > 10
    for first, last in zip(begun, kept, strict=True):
        calls = traced[first:last]
        written = [number for number, line in enumerate(calls) if "pwrite64(" in line]
        synced = [number for number, line in enumerate(calls) if SYNCED.search(line)]
        assert written
        assert synced
        assert synced[-1] > written[-1]
    assert sum(bool(SYNCED.search(line)) for line in traced) >= len(kept)


def test_under_process_an_append_is_acknowledged_without_a_sync(tmp_path: Path) -> None:
    traced = lines(tmp_path / "at", Order(durability="process", short=True))
    assert sum("kept" in line for line in traced) > 10
    # The log that another process left is begun anew once, which is synced.
    assert sum("fdatasync" in line for line in traced) <= 2


def test_runs_at_once_share_their_syncs_and_are_synced_all_the_same(tmp_path: Path) -> None:
    at = tmp_path / "at"
    traced = lines(at, Order(durability="power", runs=8, short=True))
    with notes_of(at) as notes:
        appends = len(notes.of("kept"))
    syncs = sum(bool(SYNCED.search(line)) or "<... fdatasync resumed>" in line for line in traced)
    # A conversation alone makes so many commits, and each needs a sync of its own.
    assert appends / 8 <= syncs < appends
    print(f"{appends} appends of 8 runs in {syncs} syncs")
