"""A question a person writes in SQL, to a file that is opened for reading only."""

from __future__ import annotations

import os
import sqlite3

from footprint_core.errors import LedgerError
from footprint_observe.query.database import reading

# `mode=ro` is about the ledger alone: these would read, and write, other files.
_ELSEWHERE = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


class QuestionError(LedgerError):
    """SQLite does not take a query."""


def answer(path: str | os.PathLike[str], query: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """The names of the columns a query gives, and its rows.

    Raises:
        QuestionError: SQLite does not take the query, or it is none that gives rows.
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    with reading(path) as db:
        db.conn.set_authorizer(_here_only)
        try:
            cursor = db.conn.execute(query)
            columns = [str(column[0]) for column in cursor.description or ()]
            rows: list[tuple[object, ...]] = cursor.fetchall()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            said = "it is no text" if isinstance(error, UnicodeError) else str(error).rstrip(".")
            raise QuestionError(f"SQLite does not take that query ({said}); correct it.") from None
    if not columns:
        raise QuestionError("That query gives no rows; ask one, like `select * from runs`.")
    return columns, rows


def _here_only(action: int, *_about: str | None) -> int:
    return sqlite3.SQLITE_DENY if action in _ELSEWHERE else sqlite3.SQLITE_OK
