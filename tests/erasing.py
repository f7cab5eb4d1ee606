"""A redactor that keeps everything and declares paths erasable."""

from __future__ import annotations

from footprint_core.facts import Fact
from footprint_core.ledger import Marks, Redactor
from footprint_observe.redaction.paths import Left, paths


class Erasing:
    """Redacts as another redactor does, or not at all, and declares paths erasable."""

    def __init__(self, *declared: str, redactor: Redactor | None = None) -> None:
        self.erasable: Left = paths(declared)
        self._redactor = redactor

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        return (fact, ()) if self._redactor is None else self._redactor.redact(fact)
