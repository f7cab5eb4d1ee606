"""The log beside a ledger file: grown in advance, and given back when the disk has no room for it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from footprint_observe.store.failures import is_busy

LOG_BYTES = 4 * 1024 * 1024
"""The size the log is grown to, and cut back to."""

# A log that took the last room would stop the ledger it is to make faster.
_ROOM = 4 * LOG_BYTES
_EMPTY_IT = "PRAGMA wal_checkpoint(TRUNCATE)"


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
