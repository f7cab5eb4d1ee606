"""Whether a file has the tables, indexes, triggers and views of this release, as this release makes them.

Rows can all follow while a view hides some of them, or while a trigger that kept them is gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cache
from typing import TypeAlias

from footprint_observe.store import schema

Objects: TypeAlias = Mapping[str, tuple[str, str, str | None]]
"""By name: what it is, the table it is about, and its SQL text (None for the index of a key)."""


def altered(connection: sqlite3.Connection) -> str | None:
    """What is not as this release makes it, in one sentence; None when everything is.

    What a file has besides is its owner's: other tables, views and indexes. A trigger is not, on a table of
    this release: it can keep rows out.
    """
    return next(_altered(objects_of(connection), made()), None)


def _altered(found: Objects, wanted: Objects) -> Iterator[str]:
    for name, (kind, owner, text) in wanted.items():
        if name not in found:
            yield f"The {kind} {name!r} is missing."
        elif found[name] != (kind, owner, text):
            yield f"The {kind} {name!r} is not the one this release makes."
    ours = {name.lower() for name, (kind, _, _) in wanted.items() if kind in {"table", "view"}}
    for name, (kind, owner, _) in found.items():
        if kind == "trigger" and name not in wanted and owner.lower() in ours:
            yield f"The trigger {name!r} on {owner!r} is none that this release makes."


def objects_of(connection: sqlite3.Connection) -> Objects:
    """What a file has."""
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema ORDER BY rowid")
    return {name: (kind, owner, text) for name, kind, owner, text in rows}


@cache
def made() -> Objects:
    """What this release makes."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create(connection)
        return objects_of(connection)
