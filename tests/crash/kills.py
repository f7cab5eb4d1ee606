"""Kills at eight seams of a run, what holds behind each, and a table of them: `python tests/crash/kills.py`.

A kill is counted when it hit its seam. No kill waits for a time: a trap in the process ends it at the n-th
passage of a seam, and inside a commit strace does, at the n-th write or sync of the run.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from crash import strace
from crash.desk import Notes
from crash.going_on import NEVER_BEGAN, go_on
from crash.killable import Order
from crash.process import as_left_by_a_kill, disk_calls, notes_of, play
from crash.verdict import problems

Seam: TypeAlias = Literal[
    "before append",
    "inside the commit",
    "between commit and publish",
    "in the body",
    "between body and outcome",
    "in a group commit of 8 runs",
    "in a pause",
    "in a recover",
]

_TRAPS: dict[Seam, tuple[str, ...]] = {
    "before append": ("before:any",),
    "between commit and publish": ("after:any",),
    "in the body": ("in:body", "end:body"),
    "between body and outcome": ("before:tool.finished",),
    "in a pause": (
        "before:pause.opened",
        "after:pause.opened",
        "before:pause.answered",
        "after:pause.answered",
    ),
    "in a recover": ("before:any", "after:any", "in:body", "end:body"),
}
_DISK = ("pwrite64", "fdatasync")
STRACED: tuple[Seam, ...] = ("inside the commit", "in a group commit of 8 runs")
"""The seams only strace hits."""

SEAMS: tuple[Seam, ...] = get_args(Seam)
"""Where a run is killed."""


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """One kill.

    Attributes:
        seam: The seam.
        number: Its number among those of the seam, from 0.
        hit: Whether the process died at the seam.
        acknowledged: Rows the process was told were durable.
        bodies: Bodies that were entered.
        ends: How each of its runs went on.
        problems: What did not hold.
    """

    seam: Seam
    number: int
    hit: bool
    acknowledged: int
    bodies: int
    ends: tuple[str, ...]
    problems: tuple[str, ...]


def spread(index: int, count: int, total: int) -> int:
    """The passage to be killed at, from 1: those there are, spread over the kills; more come in between."""
    return 1 + ((2 * index + 1) * total // (2 * count) + index // count) % total


def kill(seam: Seam, index: int, count: int, folder: Path) -> Kill:
    """Kill a process at a seam in a folder of its own, look at what it left, and go on from there."""
    at = folder / f"{SEAMS.index(seam)}-{index}"
    # Some begin with a new file, and some with what another kill left.
    at.mkdir() if index % 5 == 4 and seam not in STRACED else as_left_by_a_kill(at)
    path = at / "l.db"
    with notes_of(at) as notes:
        hit = _KILLS.get(seam, _trapped)(seam, index, count, at)
        wrong = list(problems(path, notes))
        acknowledged, bodies = sum(len(note["prints"]) for note in notes.of("kept")), len(notes.of("body"))
        ends: list[str] = []
        for run in dict.fromkeys(note["run"] for note in notes.of("begins")) if hit else ():
            how, unlike = go_on(path, notes, run)
            ends.append(how)
            wrong += unlike
        if ends and set(ends) != {NEVER_BEGAN}:
            wrong += problems(path, notes)
        return Kill(
            seam=seam,
            number=index,
            hit=hit,
            acknowledged=acknowledged,
            bodies=bodies,
            ends=tuple(ends),
            problems=tuple(wrong),
        )


def _trapped(seam: Seam, index: int, count: int, at: Path) -> bool:
    traps = _TRAPS[seam]
    trap = traps[index % len(traps)]
    order = _order(index)
    when = spread(index // len(traps), -(-count // len(traps)), _passages(order.together, trap))
    return _died(at, msgspec.structs.replace(order, seam=trap, when=when))


def _died(at: Path, order: Order) -> bool:
    code = play(at, order)
    with notes_of(at) as notes:
        return code == -signal.SIGKILL and notes.of("killed")[-1]["by"] == order.seam


def _order(index: int, *, runs: int = 1) -> Order:
    durability = ("power", "process")[index % 2]
    return Order(durability=durability, together=index % 3 == 2, keyed=index // 2 % 2 == 0, runs=runs)


@cache
def _passages(together: bool, trap: str) -> int:
    """How often a run that nothing disturbs passes a trap."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        assert play(at, Order(together=together)) == 0
        with notes_of(at) as notes:
            _, kind = trap.split(":")
            if kind == "body":
                return len(notes.of("body"))
            return sum(kind in {"any", *note["kinds"]} for note in notes.of("begins"))


def _in_commit(seam: Seam, index: int, count: int, at: Path) -> bool:
    """Killed by strace in a write or a sync: which one it was, the trace says."""
    runs = 8 if seam == "in a group commit of 8 runs" else 1
    # Only where power is meant to be survived is there a sync.
    order, name = _order(index, runs=runs), _DISK[index % 4 == 2]
    # Of a log that is nearly full, a commit moves what is in it to the file.
    order = msgspec.structs.replace(order, filled=runs == 1 and index % 4 == 1)
    calls = disk_calls(order, name)
    when = calls.first + spread(index, count, calls.last - calls.first + 1) - 1
    trace = at / "trace"
    code = play(at, order, *strace.killing(trace, name, when=when))
    with notes_of(at) as notes:
        in_flight = _in_flight(notes)
    return code == -signal.SIGKILL and strace.last_call(trace) == name and in_flight >= min(runs, 2)


def _in_flight(notes: Notes) -> int:
    """How many runs wait for an append when a process dies."""
    last = {note["run"]: note["saw"] for note in notes if note["saw"] in {"begins", "kept", "queued"}}
    return sum(saw == "begins" for saw in last.values())


def _in_recover(seam: Seam, index: int, count: int, at: Path) -> bool:
    """Killed twice: in a body, and while another process recovers the run."""
    first = _order(index)
    if not _died(
        at, msgspec.structs.replace(first, seam=("in:body", "end:body")[index % 2], when=1 + index % 5)
    ):
        return False
    with notes_of(at) as notes:
        run = notes.of("begins")[-1]["run"]
    traps = _TRAPS[seam]
    again = msgspec.structs.replace(
        first, mode="recover", run_id=run, seam=traps[index % len(traps)], when=1 + index // len(traps) % 5
    )
    return _died(at, again)


_KILLS: dict[Seam, Callable[[Seam, int, int, Path], bool]] = {
    **dict.fromkeys(STRACED, _in_commit),
    "in a recover": _in_recover,
}


def kills(count: int, *, seams: tuple[Seam, ...] = SEAMS, workers: int = 2) -> Iterator[Kill]:
    """So many kills at each seam, two at a time; another one for each that missed, up to twice as many."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        for seam in seams:
            tried, missed = 0, count
            while missed and tried < 2 * count:
                todo = range(tried, min(tried + missed, 2 * count))
                done = list(pool.map(partial(kill, seam, count=count, folder=Path(folder)), todo))
                yield from done
                tried, missed = todo.stop, sum(not one.hit for one in done)


def table(done: list[Kill]) -> str:
    """The kills by seam."""
    lines = [f"{'seam':<28} {'kills':>5} {'missed':>6} {'rows kept':>9} {'bodies':>6} {'wrong':>5}  went on"]
    for seam in SEAMS:
        here = [one for one in done if one.seam == seam]
        hit = [one for one in here if one.hit]
        ends = Counter(end for one in hit for end in one.ends)
        went_on = ", ".join(f"{end} {number}" for end, number in sorted(ends.items()))
        lines.append(
            f"{seam:<28} {len(hit):>5} {len(here) - len(hit):>6} {sum(one.acknowledged for one in hit):>9} "
            f"{sum(one.bodies for one in hit):>6} {sum(bool(one.problems) for one in here):>5}  {went_on}"
        )
    return "\n".join(lines)


def main(count: int) -> int:
    """Print the table of so many kills a seam; 1 when something did not hold."""
    done: list[Kill] = []
    for one in kills(count):
        done.append(one)
        for problem in one.problems:
            print(f"{one.seam}, kill {one.number}: {problem}", flush=True)
        if not one.hit:
            print(f"{one.seam}, kill {one.number} did not hit its seam", flush=True)
    print(table(done))
    return int(any(one.problems for one in done))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 26))
