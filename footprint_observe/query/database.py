"""A question to a ledger file, which is opened for reading only."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from sqlite_utils import Database

from footprint_core.errors import LedgerReadError
from footprint_observe.query.refusals import QuestionError
from footprint_observe.store.connect import open_reader, resolve

Record: TypeAlias = dict[str, Any]
"""One row, by column."""


@contextmanager
def reading(path: str | os.PathLike[str]) -> Generator[Database]:
    """The file, for reading only; writers are never blocked.

    Every query is a read transaction of its own, so that none keeps the log from being emptied for long.

    Raises:
        LedgerOpenError: There is no ledger at that path.
        LedgerReadError: It cannot be read.
        QuestionError: What is asked with cannot be part of a question.
    """
    connection = open_reader(resolve(path))
    try:
        yield Database(connection, execute_plugins=False)
    except sqlite3.Error as error:
        # By name only, for a message may quote a value.
        name = getattr(error, "sqlite_errorname", None) or type(error).__name__
        raise LedgerReadError(
            f"The ledger file could not be read ({name}); check its disk, or run `footprint verify` on it."
        ) from None
    except UnicodeEncodeError:
        raise QuestionError("What is asked for is no valid text; give it in UTF-8.") from None
    except OverflowError:
        raise QuestionError("A number that is asked with is beyond 64 bits; give a smaller one.") from None
    finally:
        connection.close()


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
