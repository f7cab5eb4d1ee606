"""A question a person writes in SQL, to a file that is opened for reading only."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import msgspec

from footprint_core.errors import LedgerReadError
from footprint_observe.query.database import Record, reading
from footprint_observe.query.refusals import QuestionError, QuestionTimeoutError

# `mode=ro` is about the ledger alone: these would read, and write, other files.
_ELSEWHERE = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})
# The pragmas that only look, although they are given something: a name, or how much to check. Others that are
# given something set it, and a few write as they stand.
_LOOKING = frozenset(
    {
        "foreign_key_check",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
# It hands SQLite an address to call, where the system's library was built with that (Debian's is).
_POINTING = "fts3_tokenizer"
_WRITING = frozenset({"incremental_vacuum", "optimize", "wal_checkpoint"})
# Steps of SQLite between two looks at the clock; about a tenth of a millisecond.
_STEPS = 10_000
_OF_THE_FILE = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_NOTADB}
)


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What a question gives.

    Attributes:
        columns: The names of its columns; one that stands twice is numbered.
        rows: Its rows, read as they are taken; bytes are given as hex digits.
    """

    columns: tuple[str, ...]
    rows: Iterator[tuple[object, ...]]


def sql(
    path: str | os.PathLike[str],
    question: str,
    parameters: Mapping[str, object] | None = None,
    *,
    timeout: float = 60.0,
) -> list[Record]:
    """The rows a question in SQL gives, by column.

    Args:
        path: The ledger file.
        question: One statement that gives rows, like `select * from runs where agent = :name`.
        parameters: Its named parameters.
        timeout: Seconds after which it is stopped.

    Raises:
        QuestionError: SQLite does not take the question, or it is none that gives rows.
        QuestionTimeoutError: It took longer than the timeout.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    with asked(path, question, parameters or {}, timeout=timeout) as found:
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


@contextmanager
def asked(
    path: str | os.PathLike[str], question: str, parameters: Mapping[str, object], *, timeout: float
) -> Generator[Answers]:
    """What a question gives, row by row; the rows can be read within the block.

    Raises:
        LedgerError: As `sql`; a question may fail in the middle of its rows.
    """
    if not (isinstance(cast("object", question), str) and isinstance(cast("object", parameters), Mapping)):
        raise QuestionError("A query is a text, and its parameters a mapping from their names; give those.")
    with reading(path) as db:
        connection = db.conn
        connection.set_authorizer(here_only)
        # A text that is no UTF-8 can only be made by the question itself.
        connection.text_factory = _text
        limit = _Limit(timeout)
        connection.set_progress_handler(limit.is_over, _STEPS)
        try:
            given = _Given(parameters)
            cursor = connection.execute(question, given)
            columns = _names([str(column[0]) for column in cursor.description or ()])
            if not columns:
                raise QuestionError("That query gives no rows; ask one, like `select * from runs`.")
            given.check()
            yield Answers(columns=columns, rows=(tuple(map(_cell, row)) for row in cursor))
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise limit.refusal(error) from None


class _Given(dict[str, object]):
    """Named parameters, and which of them a query asks for."""

    def __init__(self, parameters: Mapping[str, object]) -> None:
        super().__init__(parameters)
        self._asked_for: set[str] = set()

    def __getitem__(self, name: str) -> object:
        self._asked_for.add(name)
        return super().__getitem__(name)

    def check(self) -> None:
        """Refuse a parameter that was given for nothing: the question is another than was meant."""
        spare = self.keys() - self._asked_for
        if spare:
            raise QuestionError(f"The query has no parameter :{min(spare)}; give only those it has.")


class _Limit:
    """The time a question is given."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether it is over; SQLite stops the question then."""
        return time.monotonic() > self._end

    def refusal(self, error: Exception) -> LedgerReadError | QuestionError:
        """Why there is no answer, or no more of it."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_INTERRUPT:
            if not self.is_over():
                # The clock was looked at when the person pressed Ctrl-C, and SQLite kept that to itself.
                raise KeyboardInterrupt
            return QuestionTimeoutError(
                f"The query took longer than {self._seconds:g} seconds and was stopped; ask for less, or "
                "give it more time with --timeout."
            )
        if code in _OF_THE_FILE:
            name = getattr(error, "sqlite_errorname", "")
            return LedgerReadError(f"The ledger file could not be read ({name}); check its disk.")
        said = "it is no text" if isinstance(error, UnicodeError) else str(error).rstrip(".")
        if code == sqlite3.SQLITE_AUTH:
            said = "it would set something, or open another file"
        return QuestionError(f"SQLite does not take that query ({said}); correct it.")


def here_only(action: int, name: str | None, value: str | None, *_where: str | None) -> int:
    """What SQLite asks before it prepares a statement: refuse other files, and what sets something."""
    if action == sqlite3.SQLITE_PRAGMA:
        pragma = (name or "").lower()
        refused = pragma in _WRITING or (value is not None and pragma not in _LOOKING)
    elif action == sqlite3.SQLITE_FUNCTION:
        refused = (value or "").lower() == _POINTING
    else:
        refused = action in _ELSEWHERE
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


def _names(given: list[str]) -> tuple[str, ...]:
    names: list[str] = []
    for name in given:
        number, unique = 2, name
        while unique in names:
            unique, number = f"{name}_{number}", number + 1
        names.append(unique)
    return tuple(names)


def _text(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")


def _cell(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value
