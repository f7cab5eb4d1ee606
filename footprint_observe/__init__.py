"""Remembers: the ledger in a file, its redaction, its queries, back-testing and the command line."""

from __future__ import annotations

from footprint_observe.keyring import KeyRing
from footprint_observe.redaction.detect import Detector
from footprint_observe.redaction.policy import Redaction
from footprint_observe.redaction.rules import Rule
from footprint_observe.store.backup import backup
from footprint_observe.store.ledger import SqliteLedger
from footprint_observe.store.verify import Fault, Head, Verified, heads, verify

__all__ = [
    "Detector",
    "Fault",
    "Head",
    "KeyRing",
    "Redaction",
    "Rule",
    "SqliteLedger",
    "Verified",
    "backup",
    "heads",
    "verify",
]
