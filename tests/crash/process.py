"""Starts the process that is killed or whose disk fails, and counts what it does to the disk."""

from __future__ import annotations

import atexit
import shutil
import signal
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import msgspec

from crash import strace
from crash.desk import Notes
from crash.killable import Order


def play(at: Path, order: Order, *before: str) -> int:
    """Play in a folder, behind a command that may do something to the process; its exit code.

    Raises:
        AssertionError: The process complained, and was not killed.
    """
    command = strace.python("crash.killable", str(at / "l.db"), str(at / "notes"))
    done = strace.ran([*before, *command, msgspec.json.encode(order).decode()])
    if done.returncode != -signal.SIGKILL and done.stderr:
        raise AssertionError(done.stderr)
    return done.returncode


@contextmanager
def notes_of(at: Path) -> Generator[Notes]:
    """What the processes in a folder saw."""
    notes = Notes(at / "notes")
    try:
        yield notes
    finally:
        notes.close()


def as_left_by_a_kill(at: Path) -> None:
    """Make a folder with a ledger file and its log as a process left them that was killed behind its opening.

    The log has its size then, so that the writes of a run stand out from the two thousand of its growth.
    """
    shutil.copytree(_left_by_a_kill(), at)


@cache
def _left_by_a_kill() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="footprint-left-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    assert play(folder, Order(seam="opened", durability="power")) == -signal.SIGKILL
    (folder / "notes").unlink()
    return folder


@cache
def disk_calls(order: Order, name: str) -> strace.Calls:
    """The calls of a name that a run makes which nothing disturbs, of the thread that makes most of them.

    Those are left out whose number a call of another thread has, too, which would come first.
    """
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "at"
        as_left_by_a_kill(at)
        trace = at / "trace"
        assert play(at, order, *strace.traced(trace, f"{name},write")) == 0
        opening = strace.counted(trace, "", until="opened")
        found = strace.counted(trace, "opened", until="played")
    most = max((one for one in found if one.name == name), key=lambda one: one.last - one.first)
    others = [one.last for one in (*opening, *found) if one.name == name and one.thread != most.thread]
    return msgspec.structs.replace(most, first=max(most.first, *(last + 1 for last in others), 1))


@cache
def opening_calls(name: str) -> strace.Calls:
    """The calls of a name that are made until a new file is open."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        trace = at / "trace"
        assert play(at, Order(short=True, durability="power"), *strace.traced(trace, f"{name},write")) == 0
        return next(one for one in strace.counted(trace, "", until="opened") if one.name == name)
