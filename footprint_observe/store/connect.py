"""Opening a ledger file: refuse what is not ours before writing a byte, then set it up for appends."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from pathlib import Path
from typing import Literal, TypeAlias

from footprint_core.errors import LedgerOpenError
from footprint_observe.store import forked, migrations, schema
from footprint_observe.store.failures import is_busy
from footprint_observe.store.log import LOG_BYTES, free_bytes, grow_log, log_of
from footprint_observe.store.mounts import network_of

Durability: TypeAlias = Literal["power", "process"]
"""What an append survives: a loss of power, or only the end of the process."""

_SYNCHRONOUS: dict[Durability, str] = {"power": "FULL", "process": "NORMAL"}
_RETRY_SECONDS = 0.02
_READER_SECONDS = 5.0
# Reads the file as it lies there: no lock, no log, not one byte or file written.
_AS_IT_LIES = "mode=ro&immutable=1"
# An empty ledger, the two files beside it, and a little to append; and only what stands beside it.
_NEW_BYTES = 512 * 1024
_BESIDE_BYTES = 64 * 1024


def resolve(path: str | os.PathLike[str]) -> Path:
    """The absolute path of a ledger file, so that a later change of folder does not move it.

    Raises:
        LedgerOpenError: The path is not that of a file.
    """
    try:
        text = os.fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise LedgerOpenError("The path of a ledger is a text or a pathlib.Path; give one.")
    if text in {"", ":memory:"}:
        raise LedgerOpenError("This ledger needs a file; give its path. MemoryLedger() keeps one in memory.")
    try:
        is_a_name = b"\0" not in os.fsencode(text)
    except UnicodeError:
        is_a_name = False
    if not is_a_name:
        raise LedgerOpenError("The path of the ledger is none a file can have; give another.")
    return Path(text).absolute()


def open_writer(
    path: Path, *, durability: Durability, busy_timeout: float, network: bool = False
) -> sqlite3.Connection:
    """A connection that appends; the file is made when there is none.

    It does not wait for locks: its busy timeout is 0, and who wants to wait sets another for a while.

    Args:
        path: The file.
        durability: What a commit survives.
        busy_timeout: Seconds to wait for another process while opening.
        network: Whether the file may lie on a network file system.

    Raises:
        LedgerOpenError: The folder, the file or its format is not usable. Nothing was written then.
    """
    _check_process(path)
    _check_folder(path)
    if not network:
        _check_disk(path)
    if _look(path) is not None:
        _probe(path)
    _check_room(path)
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


def open_reader(path: Path, *, patience: float = _READER_SECONDS) -> sqlite3.Connection:
    """A connection that can only read, and waits `patience` seconds for one who has locked the file.

    Raises:
        LedgerOpenError: There is no such file, or it is no ledger this release reads.
    """
    _check_process(path)
    found = _look(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise _folder(path)
    if found is None:
        raise LedgerOpenError(f"There is no ledger file {path}; check the path.")
    if not stat.S_ISREG(found.st_mode):
        raise LedgerOpenError(f"{path} is no file that holds something, as a ledger is; check the path.")
    if not os.access(path, os.R_OK):
        raise LedgerOpenError(f"The file {path} cannot be read; change its permissions.")
    # Even reading leaves files beside another program's database, when it uses a log.
    _probe(path)
    try:
        connection = _reader(path, "mode=ro", patience)
    except sqlite3.Error as error:
        if not _needs_a_writable_folder(error):
            raise _unusable(path, error) from None
        connection = _reader_beside_nothing(path, patience)
    if connection is None:
        raise LedgerOpenError(f"{path} is an empty database and no ledger; check the path.")
    return connection


def is_whole(path: Path) -> bool:
    """Whether a ledger file has all the pages its first one says it has."""
    try:
        connection = _reader(path, _AS_IT_LIES)
    except (sqlite3.Error, LedgerOpenError):
        return False
    if connection is not None:
        connection.close()
    return connection is not None


def _reader(path: Path, how: str, patience: float = _READER_SECONDS) -> sqlite3.Connection | None:
    """A connection that can only read; None when the file is an empty database."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{how}",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,
        factory=forked.Reader,
    )
    try:
        is_ours = _is_ours(connection, path)
    except BaseException:
        connection.close()
        raise
    version = _version_of(connection)
    if is_ours and version == schema.VERSION:
        return connection
    connection.close()
    if is_ours:
        raise LedgerOpenError(
            f"{path} was written by an older release (schema {version}, this one reads {schema.VERSION}); "
            "copy the file, then open it once with SqliteLedger, which brings it up to date."
        )
    return None


def _needs_a_writable_folder(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}


def _reader_beside_nothing(path: Path, patience: float) -> sqlite3.Connection | None:
    # To read, SQLite makes a file beside the ledger. Where it cannot, the file alone is read: all of it is
    # there while there is no log.
    if _journal_bytes(path):
        raise LedgerOpenError(
            f"A process died while it made {path}, and nothing is in it yet; open it once to append to it."
        )
    if _size_of(log_of(path)):
        raise LedgerOpenError(
            f"{path} has rows in its log that can only be read where its folder can be written to; read it "
            "as a user who may do that, or copy both files to another folder."
        )
    try:
        return _reader(path, _AS_IT_LIES, patience)
    except sqlite3.Error as error:
        raise _unusable(path, error) from None


def _look(path: Path) -> os.stat_result | None:
    """What is at a path; None when nothing is."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LedgerOpenError(
            f"{path} cannot be looked at ({type(error).__name__}); check the path and the permissions of its "
            "folders."
        ) from None


def _size_of(path: Path) -> int:
    found = _look(path)
    return 0 if found is None else found.st_size


def _journal_bytes(path: Path) -> int:
    """The size of what undoes a transaction that was cut off while the file was made: it has no log then."""
    return _size_of(path.with_name(f"{path.name}-journal"))


def _folder(path: Path) -> LedgerOpenError:
    return LedgerOpenError(f"{path} is a folder; give the path of a file in it.")


def _check_process(path: Path) -> None:
    # It would take no lock it believes to have, and another process would delete the log under it.
    if forked.copied_while_reading():
        raise LedgerOpenError(
            f"{path} cannot be opened here, for this process was forked while a ledger file was being read; "
            'start it anew (the start method "spawn"), or fork when no question to a ledger is open.'
        )


def _check_folder(path: Path) -> None:
    found = _look(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise _folder(path)
    folder = _look(path.parent)
    if folder is None or not stat.S_ISDIR(folder.st_mode):
        raise LedgerOpenError(f"The folder {path.parent} does not exist; make it first.")
    # SQLite keeps two files beside the ledger, so the folder itself has to be writable.
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise LedgerOpenError(f"The folder {path.parent} cannot be written to; change its permissions.")
    if found is not None and not os.access(path, os.R_OK | os.W_OK):
        raise LedgerOpenError(f"The file {path} cannot be read and written; change its permissions.")


def _check_disk(path: Path) -> None:
    kind = network_of(path)
    if kind is not None:
        raise LedgerOpenError(
            f"{path} lies on a network file system ({kind}), where two machines that write destroy it; put "
            "it on a local disk, or say network=True if this machine alone will ever open it."
        )


def _check_room(path: Path) -> None:
    # Found out halfway, it would leave files that are of no use, and take what room there is.
    if _look(path.with_name(f"{path.name}-shm")) is not None:
        return
    free = free_bytes(path.parent)
    if free is not None and free < (_NEW_BYTES if _look(path) is None else _BESIDE_BYTES):
        raise LedgerOpenError(f"The disk of {path.parent} has no room for a ledger; make room on it first.")


def _probe(path: Path) -> None:
    # Through SQLite and not through open(), because closing a descriptor of our own would drop the locks of
    # every other connection this process has on the file.
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?{_AS_IT_LIES}", uri=True, isolation_level=None)
    except sqlite3.Error as error:
        raise _unusable(path, error) from None
    log_bytes = _size_of(log_of(path))
    try:
        is_ours = _is_ours(connection, path)
    except sqlite3.Error as error:
        # A process that died while it moved its log into the file, or made the file, leaves one that is whole
        # only together with what lies beside it. Whose it is, its first page says, which is written first.
        if not (log_bytes or _journal_bytes(path)) or not _says_it_is_ours(connection):
            raise _unusable(path, error) from None
        is_ours = True
    finally:
        connection.close()
    if not is_ours and log_bytes:
        # All there is lies in the log, and opening it for real would move it into the file. A ledger's
        # tables are in its file before it has a log.
        raise LedgerOpenError(f"{path} is a database of another program; give the ledger a file of its own.")


def _says_it_is_ours(connection: sqlite3.Connection) -> bool:
    try:
        # This lets the first page of a file be read that is shorter than the page says.
        connection.execute("PRAGMA writable_schema = ON")
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.Error:
        return False
    return bool(application_id == schema.APPLICATION_ID)


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a ledger; False for an empty database, which may become one."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id == schema.APPLICATION_ID:
        version = _version_of(connection)
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


def _version_of(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _prepare(connection: sqlite3.Connection, path: Path, durability: Durability, busy_timeout: float) -> None:
    deadline = time.monotonic() + busy_timeout
    connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
    if not _is_ours(connection, path) or _version_of(connection) != schema.VERSION:
        _create_or_migrate(connection, path)
    _use_wal(connection, path, deadline)
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA busy_timeout = 0")
    grow_log(connection, path, _size_of(log_of(path)))


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


def _create_or_migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for the lock.
        if not _is_ours(connection, path):
            schema.create(connection)
        elif (version := _version_of(connection)) != schema.VERSION:
            migrations.migrate(connection, version)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _unusable(path: Path, error: sqlite3.Error) -> LedgerOpenError:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if name == "SQLITE_NOTADB":
        return LedgerOpenError(f"{path} is no SQLite database; check the path.")
    if name == "SQLITE_CORRUPT":
        return LedgerOpenError(f"{path} is a damaged SQLite database ({name}); restore it from a backup.")
    return LedgerOpenError(
        f"{path} cannot be opened ({name}); check the file, its disk and who else uses it."
    )
