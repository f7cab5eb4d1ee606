"""The policy a ledger redacts by."""

from __future__ import annotations

from typing import final

import msgspec

from footprint_core.facts import Fact
from footprint_core.ledger import Marks
from footprint_observe.redaction.apply import Rules, redacted
from footprint_observe.redaction.detect import CREDENTIALS
from footprint_observe.redaction.keys import HINTS, names_credential

_STANDARD = Rules(names=names_credential, name_hints=HINTS, detectors=CREDENTIALS)


@final
class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """What is removed from values before they are written: a `Redactor`.

    Attributes:
        rules: What is masked; None for nothing.
    """

    rules: Rules | None

    @classmethod
    def standard(cls) -> Redaction:
        """Masks credentials: by the name of their key, and by their look inside any text."""
        return cls(rules=_STANDARD)

    @classmethod
    def none(cls) -> Redaction:
        """Keeps everything as it is."""
        return cls(rules=None)

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        """The fact as it may be kept, and path and method of what was masked.

        The fact itself, and no marks, when nothing was.
        """
        return (fact, ()) if self.rules is None else redacted(fact, self.rules)
