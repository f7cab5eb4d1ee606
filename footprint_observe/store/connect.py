"""Opening a ledger file: refuse what is not ours before writing a byte, then set it up for appends."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from footprint_core.errors import LedgerOpenError
from footprint_observe.store import schema
from footprint_observe.store.failures import is_busy

Durability: TypeAlias = Literal["power", "process"]
"""What an append survives: a loss of power, or only the end of the process."""

_SYNCHRONOUS: dict[Durability, str] = {"power": "FULL", "process": "NORMAL"}
_WAL_BYTES = 4 * 1024 * 1024
_RETRY_SECONDS = 0.02


def resolve(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a ledger file, so that a later change of folder does not move it.

    Raises:
        LedgerOpenError: The path is not that of a file.
    """
    text = os.fspath(path)
    if text in {"", ":memory:"}:
        raise LedgerOpenError("SqliteLedger needs a file; use MemoryLedger() to keep a ledger in memory.")
    return Path(text).absolute()


def open_writer(path: Path, *, durability: Durability, busy_timeout: float) -> sqlite3.Connection:
    """A connection that appends; the file is made when there is none.

    It does not wait for locks: its busy timeout is 0, and who wants to wait sets another for a while.

    Args:
        path: The file.
        durability: What a commit survives.
        busy_timeout: Seconds to wait for another process while opening.

    Raises:
        LedgerOpenError: The folder, the file or its format is not usable. Nothing was written then.
    """
    _check_folder(path)
    if path.exists():
        _probe(path)
    try:
        connection = sqlite3.connect(
            path, timeout=busy_timeout, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise _unusable(path, error) from None
    try:
        _prepare(connection, path, durability, busy_timeout)
    except sqlite3.Error as error:
        connection.close()
        raise _unusable(path, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that can only read.

    Raises:
        LedgerOpenError: There is no such file, or it is no ledger this release reads.
    """
    if not path.is_file():
        raise LedgerOpenError(f"There is no ledger file {path}; check the path.")
    # Even reading leaves files beside another program's database, when it uses a log.
    _probe(path)
    try:
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro", uri=True, timeout=5.0, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise _unusable(path, error) from None
    try:
        is_ours = _is_ours(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise _unusable(path, error) from None
    except LedgerOpenError:
        connection.close()
        raise
    if not is_ours:
        connection.close()
        raise LedgerOpenError(f"{path} is an empty database and no ledger; check the path.")
    return connection


def _check_folder(path: Path) -> None:
    if path.is_dir():
        raise LedgerOpenError(f"{path} is a folder; give the path of a file in it.")
    if not path.parent.is_dir():
        raise LedgerOpenError(f"The folder {path.parent} does not exist; make it first.")
    # SQLite keeps two files beside the ledger, so the folder itself has to be writable.
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise LedgerOpenError(f"The folder {path.parent} cannot be written to; change its permissions.")
    if path.exists() and not os.access(path, os.R_OK | os.W_OK):
        raise LedgerOpenError(f"The file {path} cannot be read and written; change its permissions.")


def _probe(path: Path) -> None:
    # `immutable` reads the file as it lies there: no lock, no WAL, not one byte or file written. It goes
    # through SQLite and not through open(), because closing a descriptor of our own would drop the locks
    # of every other connection this process has on the file.
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise _unusable(path, error) from None
    try:
        is_ours = _is_ours(connection, path)
    except sqlite3.Error as error:
        raise _unusable(path, error) from None
    finally:
        connection.close()
    log = _log_of(path)
    if not is_ours and log.exists() and log.stat().st_size:
        # All there is lies in the log, and opening it for real would move it into the file. A ledger's
        # tables are in its file before it has a log.
        raise LedgerOpenError(f"{path} is a database of another program; give the ledger a file of its own.")


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a ledger; False for an empty database, which may become one."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id == schema.APPLICATION_ID:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > schema.VERSION:
            raise LedgerOpenError(
                f"{path} was written by a newer release (schema {version}, this one knows {schema.VERSION}); "
                "update this program."
            )
        return True
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if objects or application_id:
        raise LedgerOpenError(f"{path} is a database of another program; give the ledger a file of its own.")
    return False


def _prepare(connection: sqlite3.Connection, path: Path, durability: Durability, busy_timeout: float) -> None:
    deadline = time.monotonic() + busy_timeout
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
    if not _is_ours(connection, path):
        _create(connection, path)
    _use_wal(connection, path, deadline)
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA busy_timeout = 0")
    _grow_wal(connection, path)


def _use_wal(connection: sqlite3.Connection, path: Path, deadline: float) -> None:
    while True:
        # SQLite does not wait for this lock by itself: two processes that make one file would fail here.
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        else:
            if mode == "wal":
                return
            if time.monotonic() > deadline:
                raise LedgerOpenError(f"{path} cannot use a write-ahead log there; put it on a local disk.")
        time.sleep(_RETRY_SECONDS)


def _create(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have made the file while this one waited for the lock.
        if not _is_ours(connection, path):
            schema.create(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _grow_wal(connection: sqlite3.Connection, path: Path) -> None:
    # While the log still grows, each commit also journals its new size, which makes it slower.
    log = _log_of(path)
    if log.exists() and log.stat().st_size >= _WAL_BYTES:
        return
    # When somebody else writes, or the disk is nearly full, the log stays short, which is only slower.
    with suppress(sqlite3.OperationalError):
        overwrite_log(connection, _WAL_BYTES)


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


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _unusable(path: Path, error: sqlite3.Error) -> LedgerOpenError:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if name in {"SQLITE_NOTADB", "SQLITE_CORRUPT"}:
        return LedgerOpenError(
            f"{path} is not a readable SQLite database ({name}); restore it from a backup."
        )
    return LedgerOpenError(
        f"{path} cannot be opened ({name}); check the file, its disk and who else uses it."
    )
