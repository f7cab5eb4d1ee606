"""The log beside a ledger file: grown in advance, kept short, given back when the disk has no room for it.

SQLite moves the log into the file by itself, and begins it anew when no reader needs what is in it. Where
readers always overlap that moment never comes. So when a log became long, its readers are waited for, and
other writers wait meanwhile; new readers do not. A reader that stays stops this too: the log then grows
until it ends, and a warning says so.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import time
from contextlib import suppress
from pathlib import Path

from footprint_observe.store.failures import is_busy

LOG_BYTES = 4 * 1024 * 1024
"""The size the log is grown to, and cut back to."""

LONG_BYTES = 4 * LOG_BYTES
"""A log beyond this is begun anew as soon as its readers allow it."""

# The longer the log, the longer readers are waited for; and writers wait a fifth of the time at most.
_WAIT_SECONDS, _MOST_SECONDS, _SHARE = 0.5, 2.0, 5
_AGAIN_SECONDS = 1.0
# Commits between two looks at it.
_LOOK_EVERY = 32
_MOVE = "PRAGMA wal_checkpoint(PASSIVE)"
_BEGIN_ANEW = "PRAGMA wal_checkpoint(RESTART)"

_log = logging.getLogger("footprint")

# A log that took the last room would stop the ledger it is to make faster.
_ROOM = 4 * LOG_BYTES
_EMPTY_IT = "PRAGMA wal_checkpoint(TRUNCATE)"


class Log:
    """The log of an open ledger file, as it was when it was last looked at.

    Args:
        path: The ledger file, absolute.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(log_of(path))
        self._bytes = 0
        self._unseen = 0
        self._moved = -1
        self._not_before = 0.0
        self._tell_at = LONG_BYTES

    @property
    def is_long(self) -> bool:
        """Whether it grew beyond what is kept."""
        return self._bytes > LONG_BYTES

    def grew(self) -> None:
        """Something was committed; now and then that is a reason to look."""
        self._unseen += 1
        if self._unseen < _LOOK_EVERY:
            return
        self._unseen = 0
        try:
            self._bytes = os.stat(self._name).st_size  # noqa: PTH116 - a Path costs as much again, at every append
        except OSError:
            self._bytes = 0
        if not self.is_long:
            self._moved, self._not_before, self._tell_at = -1, 0.0, LONG_BYTES

    def shorten(self, connection: sqlite3.Connection) -> None:
        """Begin a long log anew; the next commit cuts it to `LOG_BYTES`. Waits for readers, within bounds."""
        if not self.is_long or time.monotonic() < self._not_before:
            return
        wait = min(self._bytes / LONG_BYTES * _WAIT_SECONDS, _MOST_SECONDS)
        try:
            (_, frames, moved) = connection.execute(_MOVE).fetchone()
            # A reader that stays keeps the log where it was at the last try, and waiting for it is of no use.
            stays = moved < frames and moved == self._moved
            self._moved = moved
            busy = stays or _begin_anew(connection, wait)
        except sqlite3.Error:
            # What was appended is safe where it is. A disk that fails is told of by the append it fails.
            busy = stays = True
        if not busy:
            self._bytes = 0
            return
        self._not_before = time.monotonic() + (_AGAIN_SECONDS if stays else _SHARE * wait)
        if self._bytes >= self._tell_at:
            self._tell_at = 2 * self._bytes
            _log.warning(
                "The log of %s has grown to %d MiB, because a read transaction on it stays open; end what "
                "reads for so long, and it shrinks by itself.",
                self._path,
                self._bytes >> 20,
            )


def _begin_anew(connection: sqlite3.Connection, wait: float) -> bool:
    """Whether readers were in the way for all the seconds that were waited."""
    connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
    try:
        return bool(connection.execute(_BEGIN_ANEW).fetchone()[0])
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def log_of(path: Path) -> Path:
    """The log of a ledger file."""
    return path.with_name(f"{path.name}-wal")


def free_bytes(folder: Path) -> int | None:
    """What the disk of a folder has left for us; None when it does not say."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return usage.free if usage.total else None


def grow_log(connection: sqlite3.Connection, path: Path, size: int) -> None:
    """Grow the log of a ledger file, which has `size` bytes.

    While it still grows, each commit also journals its new size, which makes it slower. When somebody else
    writes or the disk has no room, the log stays short, which is only slower.
    """
    free = free_bytes(path.parent)
    if size >= LOG_BYTES or (free is not None and free < _ROOM):
        return
    try:
        # Emptied first: if growing fails, what is behind the last commit can then be given back without
        # any room for the rows before it.
        if size and connection.execute(_EMPTY_IT).fetchone()[0]:
            return
        overwrite_log(connection, LOG_BYTES)
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            with suppress(sqlite3.OperationalError):
                connection.execute(_EMPTY_IT).fetchone()


def overwrite_log(connection: sqlite3.Connection, size: int) -> None:
    """Write `size` bytes to the log behind its last commit, where they belong to none.

    Pages that do not fit the cache go to the log at once, and rolling back leaves them there.
    """
    (cache,) = connection.execute("PRAGMA cache_size").fetchone()
    try:
        connection.execute("PRAGMA cache_size = 10")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE filler (bytes)")
        connection.execute("INSERT INTO filler VALUES (zeroblob(?))", (size,))
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA cache_size = {cache}")
