"""A write or a sync that fails, at every place of a run: the run ends with an error, and nothing is lost."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from crash import strace
from crash.disk import PLAYS, Call, Fault, wrong_behind
from crash.process import disk_calls, opening_calls

pytestmark = pytest.mark.skipif(bool(strace.why_not()), reason=strace.why_not() or "strace works")
FULL = bool(os.environ.get("FOOTPRINT_FULL"))
NAMES: tuple[Call, ...] = ("pwrite64", "fdatasync")


RUNS = 8


def disk_place(name: Call, *, opening: bool = False) -> tuple[int, int]:
    """The first and the last call of a name in a run, or while a file is made."""
    calls = opening_calls(name) if opening else disk_calls(msgspec.structs.replace(PLAYS, behind=0), name)
    return calls.first, calls.last


def faults(name: Call, *, opening: bool = False) -> list[Fault]:
    """Every fault at the calls of a name; a few of them in the ordinary suite."""
    first, last = disk_place(name, opening=opening)
    if opening and name == "pwrite64":
        # The log is grown by two thousand equal writes, of which some stand for all.
        places = [at for at in range(first, last + 1) if at < 40 or at % 97 == 0]
    else:
        places = list(range(first, last + 1))
    if not FULL:
        places = places[2 :: max(1, len(places) // 2)][: 1 if opening else 2]
    return [
        Fault(name=name, error=error, at=at, onwards=onwards)
        for at in places
        for error in ("EIO", "ENOSPC")
        for onwards in (False, True)
        if FULL or (error == "EIO") != onwards
    ]


def wrong(todo: list[Fault], folder: Path, *, opening: bool) -> dict[str, list[str]]:
    with ThreadPoolExecutor(2) as pool:
        behind = [
            pool.submit(wrong_behind, fault, folder / str(number), opening=opening)
            for number, fault in enumerate(todo)
        ]
        found = {str(fault): one.result(300) for fault, one in zip(todo, behind, strict=True)}
    print(f"{len(found)} faults")
    return {fault: one for fault, one in found.items() if one}


@pytest.mark.parametrize("name", NAMES)
def test_a_call_of_the_disk_that_fails_in_a_run_loses_nothing_and_lets_nothing_act(
    name: Call, tmp_path: Path
) -> None:
    assert wrong(faults(name), tmp_path, opening=False) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_call_of_the_disk_that_fails_in_a_commit_of_several_runs_loses_nothing_of_any(
    name: Call, tmp_path: Path
) -> None:
    calls = disk_calls(msgspec.structs.replace(PLAYS, behind=0, runs=RUNS), name)
    places = [calls.first + (calls.last - calls.first) * part // 21 for part in range(1, 21 if FULL else 2)]
    todo = [
        Fault(name=name, error="EIO", at=at, onwards=onwards, runs=RUNS)
        for at in places
        for onwards in (False, True)
    ]
    assert wrong(todo, tmp_path, opening=False) == {}


def test_a_disk_that_becomes_one_that_can_only_be_read_loses_nothing(tmp_path: Path) -> None:
    middle = sum(disk_place("pwrite64")) // 2
    fault = Fault(name="pwrite64", error="EROFS", at=middle, onwards=True)
    assert wrong([fault], tmp_path, opening=False) == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_call_of_the_disk_that_fails_while_a_file_is_made_leaves_what_can_be_opened(
    name: Call, tmp_path: Path
) -> None:
    assert wrong(faults(name, opening=True), tmp_path, opening=True) == {}
