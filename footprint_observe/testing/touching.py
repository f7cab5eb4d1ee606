"""What a call touches outside of the process, or waits for, in the thread that makes it."""

from __future__ import annotations

import gc
import io
import socket
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType

_READ_OR_WRITE = frozenset(
    {"write", "writelines", "flush", "read", "read1", "readinto", "readline", "readlines", "truncate"}
)
_OF_MODULES = {
    "builtins": frozenset({"input", "print"}),
    "io": frozenset({"open"}),
    "_io": frozenset({"open"}),
    "time": frozenset({"sleep"}),
    "select": frozenset({"select", "poll"}),
    "_socket": frozenset({"getaddrinfo", "gethostbyname"}),
    "_sqlite3": frozenset({"connect"}),
    "_posixsubprocess": frozenset({"fork_exec"}),
}
# Nearly everything in `os` is about files and other processes; this is about the process itself.
_OF_SYSTEM = frozenset({"posix", "nt"})
_HARMLESS = frozenset({"cpu_count", "fspath", "getpid", "getppid", "getrandom", "strerror", "urandom"})
_OF_SOCKETS = frozenset(
    {"connect", "connect_ex", "send", "sendall", "sendmsg", "sendto", "recv", "recv_into"}
)
_OF_DATABASES = frozenset({"execute", "executemany", "executescript", "commit"})
# What is built on these waits, too: an event, a queue, a future.
_WAITS: dict[CodeType, str] = {
    threading.Condition.wait.__code__: "Condition.wait",
    threading.Thread.join.__code__: "Thread.join",
}


def touched(function: Callable[[], object]) -> frozenset[str]:
    """What a function calls, by name, that leaves the process or waits.

    Seen are calls from Python, in this thread: of files, `os`, sockets, name servers and SQLite, of programs
    that are started, of `print`, `input`, `sleep` and `select`, and whatever waits for a condition or a
    thread. What is in memory (`StringIO`) is no file, and to read a clock is neither. Not seen is what
    compiled code does by itself; and a lock that is waited for looks like one that is had at once.
    """
    seen: set[str] = set()

    def profile(frame: FrameType, event: str, called: object) -> None:
        if event == "c_call":
            name = _named(called)
        elif event == "call":
            name = _WAITS.get(frame.f_code)
        else:
            return
        if name is not None:
            seen.add(name)

    before, collecting = sys.getprofile(), gc.isenabled()
    # A finalizer of something else that runs just now may close a file.
    gc.disable()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
    return frozenset(seen)


def _named(called: object) -> str | None:
    """The name of a built-in that leaves the process or waits; None of any other."""
    name: str = getattr(called, "__name__", "")
    owner: object = getattr(called, "__self__", None)
    module: str = getattr(called, "__module__", None) or ""
    if name in _OF_MODULES.get(module, ()) or (module in _OF_SYSTEM and name not in _HARMLESS):
        return f"{module}.{name}"
    if isinstance(owner, io.StringIO | io.BytesIO):
        return None
    of = type(owner)
    if (
        (isinstance(owner, io.IOBase) and name in _READ_OR_WRITE)
        or (isinstance(owner, socket.SocketType) and name in _OF_SOCKETS)
        or (of.__module__ == "sqlite3" and name in _OF_DATABASES)
        or (of.__module__ == "_ssl" and name in _READ_OR_WRITE)
    ):
        return f"{of.__name__}.{name}"
    return None
