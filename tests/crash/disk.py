"""Disk errors in a run: one at a chosen write or sync, or from there on; and what must hold behind it."""

from __future__ import annotations

import signal
import sqlite3
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from crash import strace
from crash.desk import CANARY
from crash.killable import Order
from crash.process import as_left_by_a_kill, notes_of, play
from crash.verdict import positions, problems

Call: TypeAlias = Literal["pwrite64", "fdatasync"]
PLAYS = Order(durability="power", short=True, behind=2)
"""Three conversations, so that what comes behind a disk that works again is seen too.

strace counts the calls of each thread for itself, and behind a failure the writer's opens the file: the
second conversation can meet the same failure there.
"""


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An error of the disk.

    Attributes:
        name: The system call that fails.
        error: How.
        at: Which one, from 1.
        onwards: Whether all behind it fail, too.
        runs: How many conversations there are at once.
    """

    name: Call
    error: Literal["EIO", "ENOSPC", "EROFS"]
    at: int
    onwards: bool = False
    runs: int = 1

    def __str__(self) -> str:
        return f"{self.error} at {self.name} {self.at}{' and all behind it' if self.onwards else ''}"


def wrong_behind(fault: Fault, at: Path, *, opening: bool = False) -> list[str]:
    """Play with a fault in a new folder, and say what did not hold."""
    at.mkdir() if opening else as_left_by_a_kill(at)
    # One of two leaves the file as it is, so that it is also looked at behind a crash.
    order = msgspec.structs.replace(PLAYS, runs=fault.runs, end=("close", "die")[fault.at % 2])
    when, trace = f"{fault.at}{'+' if fault.onwards else ''}", at / "trace"
    code = play(at, order, *strace.failing(trace, fault.name, error=fault.error, when=when))
    with notes_of(at) as notes:
        said = [note["text"] for note in notes if "text" in note and note["saw"] != "answer"]
        found = [f"a value is in the error: {text}" for text in said if CANARY in text]
        if "(INJECTED)" not in trace.read_text(errors="replace"):
            found.append("no call failed")
        found += [f"it failed with {one['error']}" for one in notes.of("failed") if not one["of_the_ledger"]]
        unopened = notes.of("not opened")
        if code != (0 if order.end == "close" or unopened else -signal.SIGKILL):
            found.append(f"it ended with {code}")
        if unopened:
            return found + opened_later(at)
        found += problems(at / "l.db", notes)
        there = positions(at / "l.db")
        for one in notes.of("refused"):
            if set(there.get(one["run"], ())) & set(range(one["first"], one["last"] + 1)):
                found.append(f"positions {one['first']} to {one['last']} were refused and are in the file")
        if not fault.onwards and not notes.of("answer"):
            found.append("the disk worked again, and the ledger took nothing")
    return found


def opened_later(at: Path) -> list[str]:
    """What is wrong with a file that could not be made at first; the next process has to get it."""
    (at / "notes").unlink(missing_ok=True)
    code = play(at, msgspec.structs.replace(PLAYS, behind=0))
    with notes_of(at) as notes:
        if code or not notes.of("answer"):
            return ["it could not be opened when the disk worked again"]
        try:
            return problems(at / "l.db", notes)
        except sqlite3.Error as error:
            return [f"it is no database: {error}"]
