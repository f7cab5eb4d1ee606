"""What tests ask a ledger file with: the plain driver, and the bytes on the disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from footprint_core import Redactor
from footprint_observe import KeyRing, Redaction, SqliteLedger


def on_file(path: Path, *, redact: Redactor | None = None, keys: KeyRing | None = None) -> SqliteLedger:
    """A ledger in a file; nothing is redacted unless it is said."""
    return SqliteLedger(path, redact=redact or Redaction.none(), durability="process", keys=keys)


def select(path: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, over a connection of its own."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def file_bytes(path: Path) -> bytes:
    """Every byte the ledger has on the disk, its log included."""
    return b"".join(part.read_bytes() for part in sorted(path.parent.glob(f"{path.name}*")))
