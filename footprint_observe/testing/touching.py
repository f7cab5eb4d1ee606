"""What a call touches outside of the process, or waits for, in the thread that makes it."""

from __future__ import annotations

import gc
import io
import socket
import sys
from collections.abc import Callable
from types import FrameType

_READ_OR_WRITE = frozenset(
    {"write", "writelines", "flush", "read", "read1", "readinto", "readline", "readlines", "truncate"}
)
_OF_MODULES = {
    "builtins": frozenset({"input", "print"}),
    "io": frozenset({"open"}),
    "_io": frozenset({"open"}),
    "time": frozenset({"sleep"}),
    "posix": frozenset(
        {"open", "write", "writev", "pwrite", "read", "pread", "fsync", "fdatasync", "sendfile", "system"}
    ),
    "nt": frozenset({"open", "write", "read", "fsync", "system"}),
    "select": frozenset({"select", "poll"}),
    "_socket": frozenset({"getaddrinfo", "gethostbyname"}),
    "_posixsubprocess": frozenset({"fork_exec"}),
}
_OF_SOCKETS = frozenset(
    {"connect", "connect_ex", "send", "sendall", "sendmsg", "sendto", "recv", "recv_into"}
)
_OF_DATABASES = frozenset({"execute", "executemany", "executescript", "commit", "connect"})


def touched(function: Callable[[], object]) -> frozenset[str]:
    """The calls of files, sockets, databases and clocks that are made while a function runs, by name.

    Only calls from Python are seen, and only those of this thread. What is in memory (`StringIO`) is no file.
    """
    seen: set[str] = set()

    def profile(_frame: FrameType, event: str, called: object) -> None:
        if event == "c_call" and (name := _named(called)) is not None:
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
    if name in _OF_MODULES.get(module, ()):
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
