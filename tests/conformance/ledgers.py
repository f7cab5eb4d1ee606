"""The ledgers scenarios can be played on. Nothing is redacted, since rows are compared with their values."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias, assert_never

from conformance.world import ReadableLedger
from footprint_core import MemoryLedger
from footprint_observe import Redaction, SqliteLedger

LedgerKind: TypeAlias = Literal["memory", "sqlite"]


def open_ledger(kind: LedgerKind, directory: Path) -> ReadableLedger:
    """A ledger for any number of scenarios; a file is made in the directory."""
    match kind:
        case "memory":
            return MemoryLedger(redact=Redaction.none())
        case "sqlite":
            return SqliteLedger(directory / "ledger.db", redact=Redaction.none(), durability="process")
        case _:
            assert_never(kind)
