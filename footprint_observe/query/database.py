"""A question to a ledger file, which is opened for reading only."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from sqlite_utils import Database

from footprint_core.errors import LedgerReadError
from footprint_core.plain import Json, decode
from footprint_observe.query.refusals import QuestionError
from footprint_observe.store.connect import open_reader, resolve

Record: TypeAlias = dict[str, Any]
"""One row, by column."""

# SQLite says the name of what is not there, and nothing else of the question.
_NOT_THERE = re.compile(r"no such (table|column): ([\w.]+)", re.ASCII)
_SAID = {"table": "table or view", "column": "column"}


@contextmanager
def reading(path: str | os.PathLike[str], *, patience: float = 5.0) -> Generator[Database]:
    """The file, for reading only; writers are never blocked, and one who has locked it is waited for so long.

    Every query is a read transaction of its own, so that none keeps the log from being emptied for long.

    Raises:
        LedgerOpenError: There is no ledger at that path.
        LedgerReadError: It cannot be read.
        QuestionError: What is asked with cannot be part of a question.
    """
    connection = open_reader(resolve(path), patience=patience)
    try:
        yield Database(connection, execute_plugins=False)
    except sqlite3.Error as error:
        raise _unreadable(error) from None
    except UnicodeEncodeError:
        raise QuestionError("What is asked for is no valid text; give it in UTF-8.") from None
    except OverflowError:
        raise QuestionError("A number that is asked with is beyond 64 bits; give a smaller one.") from None
    finally:
        connection.close()


def _unreadable(error: sqlite3.Error) -> LedgerReadError:
    lacking = _NOT_THERE.fullmatch(str(error))
    if lacking is not None:
        return LedgerReadError(
            f"The ledger file lacks the {_SAID[lacking[1]]} {lacking[2]}, so it was changed; run `footprint "
            "verify` on it."
        )
    # By name only, for a message may quote a value.
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    return LedgerReadError(
        f"The ledger file could not be read ({name}); check its disk, or run `footprint verify` on it."
    )


def value_of(json: str) -> Json:
    """A value as it was, from the JSON text that is kept.

    Raises:
        LedgerReadError: It is no JSON any more.
    """
    try:
        return decode(json)
    except ValueError:
        raise LedgerReadError(
            "A value cannot be read as it stands in the file; look at it with `footprint verify`."
        ) from None


def query(db: Database, sql: str, values: Mapping[str, object]) -> Iterator[Record]:
    """The rows of a query, whose named parameters are `values`, as they are read."""
    return cast("Iterator[Record]", db.query(sql, dict(values)))  # pyright: ignore[reportUnknownMemberType]


def ask(path: str | os.PathLike[str], sql: str, values: Mapping[str, object]) -> list[Record]:
    """The rows of a query, whose named parameters are `values`.

    Raises:
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    with reading(path) as db:
        return list(query(db, sql, values))


def last_id(db: Database) -> int:
    """The id of the newest row; 0 in an empty ledger. What is asked up to it does not change any more."""
    (found,) = db.conn.execute("SELECT ifnull(max(id), 0) FROM facts").fetchone()
    return int(found)
