"""strace: counts the disk calls of a process, makes one of them fail, or kills the process in it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec

TESTS = Path(__file__).parents[1]
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)")


class Calls(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one kind by one thread, numbered as strace numbers them, from 1.

    Attributes:
        thread: The thread.
        name: The system call.
        first: The first one behind the mark.
        last: The last one.
    """

    thread: str
    name: str
    first: int
    last: int


@cache
def why_not() -> str:
    """Why nothing can be traced here; empty when it can."""
    found = shutil.which("strace")
    if found is None:
        return "strace is not installed"
    tried = ran([*traced(Path("/dev/null"), "write"), "true"])
    return "strace may not trace processes here" if tried.returncode or tried.stderr else ""


def python(*arguments: str) -> list[str]:
    """The command of a module of these tests."""
    return [sys.executable, "-W", "error", "-m", *arguments]


def traced(trace: Path, names: str) -> list[str]:
    """What stands before a command to trace calls of it."""
    options = ["-f", "-qq", "-s", "40", "-e", "signal=none"]
    return ["strace", *options, "--seccomp-bpf", "-o", str(trace), "-e", f"trace={names}"]


def failing(trace: Path, name: str, *, error: str, when: str) -> list[str]:
    """What stands before a command to make its calls of a name fail, those `when` says, in each thread."""
    return [*traced(trace, name), "-e", f"inject={name}:error={error}:when={when}"]


def killing(trace: Path, name: str, *, when: int) -> list[str]:
    """What stands before a command to kill it in its call of a name with that number, in any thread."""
    # With seccomp the calls that are not traced cost nothing, and strace then injects no signals.
    slow = [one for one in traced(trace, name) if one != "--seccomp-bpf"]
    return [*slow, "-e", f"inject={name}:signal=KILL:when={when}"]


def ran(command: list[str], *, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    """A process of these tests, ended when it takes too long."""
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=TESTS)


def counted(trace: Path, mark: str, *, until: str) -> list[Calls]:
    """The calls in a trace between two written marks, by thread and name; no first one is the start."""
    seen: dict[tuple[str, str], int] = {}
    first: dict[tuple[str, str], int] = {}
    marked = not mark
    for line in trace.read_text(errors="replace").splitlines():
        found = _CALL.match(line)
        if found is None:
            continue
        thread, name, arguments = found.groups()
        if name == "write" and until in arguments:
            break
        marked = marked or (name == "write" and mark in arguments)
        seen[thread, name] = seen.get((thread, name), 0) + 1
        if marked:
            first.setdefault((thread, name), seen[thread, name])
    return [
        Calls(thread=thread, name=name, first=number, last=seen[thread, name])
        for (thread, name), number in first.items()
        if name != "write"
    ]


def last_call(trace: Path) -> str:
    """The name of the call a process was killed in."""
    names = [
        found[2] for line in trace.read_text(errors="replace").splitlines() if (found := _CALL.match(line))
    ]
    return names[-1] if names else ""
