"""A ledger file opened for reading only, as a sqlite-utils database."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

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
    connection = open_reader(resolve(Path(path)))
    try:
        yield Database(connection)
    finally:
        connection.close()
