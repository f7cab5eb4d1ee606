"""Remembers: the ledger in a file, its redaction, its queries, back-testing and the command line."""

from __future__ import annotations

from footprint_observe.redaction.detect import Detector
from footprint_observe.redaction.policy import Redaction
from footprint_observe.store.ledger import SqliteLedger

__all__ = ["Detector", "Redaction", "SqliteLedger"]
