"""A question to a ledger file, which is opened for reading only."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from sqlite_utils import Database

from footprint_observe.store.connect import open_reader, resolve

Record: TypeAlias = dict[str, Any]
"""One row, by column."""


@contextmanager
def reading(path: str | os.PathLike[str]) -> Generator[Database]:
    """The file, for reading only; writers are never blocked.

    Raises:
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    connection = open_reader(resolve(path))
    try:
        yield Database(connection)
    finally:
        connection.close()


def ask(path: str | os.PathLike[str], sql: str, values: Mapping[str, object]) -> list[Record]:
    """The rows of a query, whose named parameters are `values`.

    Raises:
        LedgerOpenError: There is no ledger at that path, or it cannot be read.
    """
    with reading(path) as db:
        rows = cast("Iterator[Record]", db.query(sql, dict(values)))  # pyright: ignore[reportUnknownMemberType]
        return list(rows)
