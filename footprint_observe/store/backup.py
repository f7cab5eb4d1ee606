"""A copy of a ledger file, made while appends go on: all of it as it was at one moment.

SQLite's backup begins anew whenever somebody writes, and would never end beside a busy agent. So the copy
is made inside one read transaction; appends go on beside it, and the log grows until it is done.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeAlias

from footprint_core.errors import LedgerOpenError, LedgerWriteError
from footprint_observe.store.connect import open_reader, resolve
from footprint_observe.store.forked import suspend_when_forking

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many pages are copied, and of how many."""

_PAGES = 256
"""Pages copied at a time, 4 KiB each as a rule."""

_BESIDE = ("-wal", "-shm", "-journal")


class _Copying:
    """Keeps this process from forking while a copy is being made, for its connections cannot be closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        suspend_when_forking(self)

    def suspend(self) -> None:
        """Wait until the copy is made."""
        self._lock.acquire()

    def resume(self) -> None:
        """The process has forked."""
        self._lock.release()

    def run(self, source: Path, target: Path, progress: Progress | None) -> None:
        """Make the copy."""
        with self._lock:
            _copy(source, target, progress)


def backup(
    path: str | os.PathLike[str], dest: str | os.PathLike[str], *, progress: Progress | None = None
) -> None:
    """Copy a ledger file into a new one, while others append to it.

    The copy has all rows that were there when it began, is checked, synced to the disk and readable by its
    owner alone. Until then it has another name in the folder of `dest`; what fails leaves nothing behind.

    Args:
        path: The ledger file.
        dest: The new file. It must not exist, nor what SQLite keeps beside a file of that name.
        progress: Told after every step.

    Raises:
        LedgerOpenError: The ledger cannot be read, or there can be no new file at `dest`.
        LedgerWriteError: The copy could not be made.
    """
    source, target = resolve(path), resolve(dest)
    _check(source, target)
    part = target.with_name(f"{target.name}.part-{secrets.token_hex(4)}")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise LedgerOpenError(
            f"{target} cannot be made ({type(error).__name__}); check its folder and the permissions of that."
        ) from None
    try:
        _Copying().run(source, part, progress)
        _sync(part)
        _name(part, target)
    except sqlite3.Error as error:
        raise _failed(target, getattr(error, "sqlite_errorname", type(error).__name__)) from None
    except OSError as error:
        raise _failed(target, type(error).__name__) from None
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    with suppress(OSError):
        # Not every file system syncs a folder; the file itself is safe.
        _sync(target.parent)


def _check(source: Path, target: Path) -> None:
    real, wanted = os.path.realpath(source), os.path.realpath(target)
    if wanted in {real, *(f"{real}{suffix}" for suffix in _BESIDE)}:
        raise LedgerOpenError(f"{target} belongs to the ledger itself; give the backup another name.")
    for suffix in ("", *_BESIDE):
        # What an older file of that name left beside it, SQLite would take for a part of the new one.
        beside = target.with_name(target.name + suffix)
        if os.path.lexists(beside):
            raise LedgerOpenError(f"{beside} exists; give the backup a name of its own, or remove it first.")


def _copy(source: Path, target: Path, progress: Progress | None) -> None:
    def told(_status: int, left: int, pages: int) -> None:
        if progress is not None:
            progress(pages - left, pages)

    with closing(open_reader(source)) as reader, closing(sqlite3.connect(target)) as copy:
        # Nobody reads it before it is complete, so it needs no journal.
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        reader.execute("BEGIN")
        reader.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        # Always told, for only between two steps does Python hear of a signal.
        reader.backup(copy, pages=_PAGES, progress=told)
    with closing(sqlite3.connect(f"{target.as_uri()}?mode=ro&immutable=1", uri=True)) as copied:
        (found,) = copied.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise LedgerWriteError(
            f"The ledger {source} is damaged, so no backup was made; keep an older one, and look at its disk."
        )


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(part: Path, target: Path) -> None:
    """Give the copy its name, unless somebody else has taken it meanwhile."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise LedgerOpenError(f"{target} was made by somebody else meanwhile; give another name.") from None
    except OSError:
        # A file system without links; there the name could be taken in between.
        _check_free(target)
        part.rename(target)


def _check_free(target: Path) -> None:
    if os.path.lexists(target):
        raise LedgerOpenError(f"{target} was made by somebody else meanwhile; give another name.")


def _failed(target: Path, name: str) -> LedgerWriteError:
    return LedgerWriteError(
        f"The backup {target} could not be made ({name}), and nothing is left of it; check its disk and the "
        "ledger, then try again."
    )
