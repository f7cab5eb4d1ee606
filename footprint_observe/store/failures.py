"""What went wrong with a write, in one sentence that names the run and never a value."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

from footprint_core.errors import (
    LedgerBusyError,
    LedgerError,
    LedgerReadError,
    LedgerWriteError,
    RunTakenOverError,
)

_E = TypeVar("_E", bound=LedgerError)
_OF_THE_FILE = frozenset(
    {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def about(error: _E, run_id: str, segment: int) -> _E:
    """The error, saying which segment of which run it is about."""
    error.run_id = run_id
    error.segment = segment
    return error


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds the lock; the low byte is the same for every form of busy."""
    return (
        isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    )


def is_full(error: sqlite3.Error) -> bool:
    """Whether the disk, or its quota, has no room left."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


def is_about_the_file(error: BaseException) -> bool:
    """Whether SQLite complains about the file and not about what was asked of it."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_FILE


def taken_over() -> RunTakenOverError:
    """The batch does not follow what the file has of its run."""
    return RunTakenOverError(
        "This run was continued or given up elsewhere, so this process stopped; look at it with "
        "`footprint timeline`."
    )


def unknown_run() -> LedgerWriteError:
    """The file has nothing of a run that the batch does not begin."""
    return LedgerWriteError(
        "The ledger file has nothing of this run, so what comes later in it was not written; start the turn "
        "again."
    )


def locked_too_long(seconds: float) -> LedgerBusyError:
    """The lock did not become free in time."""
    return LedgerBusyError(
        f"Another process held the ledger file for more than {seconds:g} seconds, so nothing was written; "
        "find what keeps a write transaction open on it, or raise busy_timeout."
    )


def queue_full(bound: str) -> LedgerBusyError:
    """More is being appended than the disk takes; `bound` says how much that is."""
    return LedgerBusyError(
        f"{bound} already wait for the ledger file, so this append was not taken; run fewer at once."
    )


def closed() -> LedgerWriteError:
    """The ledger was closed before."""
    return LedgerWriteError("The ledger is closed, so nothing was written; open it again to append to it.")


def unwritable(error: BaseException) -> LedgerWriteError:
    """SQLite failed; said by name only, for a message may quote a value."""
    if isinstance(error, UnicodeError):
        return unencodable(error)
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
        return LedgerWriteError(
            f"The ledger file is damaged ({_name(error)}), and nothing of this append is in it; restore it "
            "from a backup, then open the ledger again."
        )
    return LedgerWriteError(
        f"The ledger file could not be written ({_name(error)}), and nothing of this append is in it; "
        "check its disk and its permissions, then start the turn again."
    )


def unreadable(error: sqlite3.Error) -> LedgerReadError:
    """SQLite could not read on; said by name only."""
    return LedgerReadError(
        f"The ledger file cannot be read to its end ({_name(error)}); its pages are damaged, so restore it "
        "from a backup."
    )


def unencodable(error: BaseException) -> LedgerWriteError:
    """No row could be made of a fact; said by name only."""
    if isinstance(error, UnicodeError):
        return LedgerWriteError(
            f"A text could not be encoded ({_name(error)}), so nothing of this append is in the ledger file; "
            "give rules, tools and messages only texts that are valid Unicode, without lone surrogates."
        )
    return LedgerWriteError(
        f"A fact could not be made a row ({_name(error)}), so nothing of this append is in the ledger file; "
        "give rules and tools only values that JSON can hold."
    )


def _name(error: BaseException) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
