"""Files of older schemas: opening one to append to it makes it one of this release.

All of it happens in one transaction, so a file is of one schema or the other, whenever a process dies. Which
steps are due says `PRAGMA user_version`; sqlite-utils notes in `_sqlite_migrations` when each was taken, a
table like any other, which only a file that was migrated has. Triggers and views hold no rows, so a step need
not mind them: those of this release are written behind the last step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from footprint_core.errors import LedgerOpenError
from footprint_observe.store import schema

if TYPE_CHECKING:
    from sqlite_utils import Database

Step: TypeAlias = Callable[["Database"], None]
"""Changes tables and indexes from one schema to the next. Rows stay: their hashes are over what they hold."""

STEPS: tuple[Step, ...] = ()
"""The first makes a file of schema 1 one of schema 2, and so on: `schema.VERSION - 1` of them, each named for
the schema it makes. Together they leave, to the letter, what `schema.create` writes: `verify` compares."""


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Take the steps from a schema to this release's, inside the transaction the caller has begun.

    Raises:
        LedgerOpenError: A step failed; the caller rolls back.
    """
    if version < 1:
        raise LedgerOpenError(
            f"The ledger file says it has schema {version}, which there never was; restore it from a backup."
        )
    # Only a file of an older release needs it, and it takes longer to import than all of the store.
    from sqlite_utils import Database, Migrations

    due = Migrations("footprint")
    for step in STEPS[version - 1 :]:
        due()(step)
    try:
        due.apply(Database(connection, recursive_triggers=False))
        schema.renew(connection)
    except sqlite3.Error as error:
        failure = LedgerOpenError(
            f"The ledger file could not be brought from schema {version} to {schema.VERSION} "
            f"({getattr(error, 'sqlite_errorname', type(error).__name__)}), and nothing in it was changed; "
            "go on with the release that wrote it, and report this."
        )
    else:
        return
    raise failure
