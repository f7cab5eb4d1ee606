"""The policy a ledger redacts by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, final

import msgspec

from footprint_core.errors import BuilderError
from footprint_core.facts import Fact
from footprint_core.ledger import Marks
from footprint_observe.redaction.apply import Rules, redacted
from footprint_observe.redaction.detect import CREDENTIALS, Detector
from footprint_observe.redaction.keys import HINTS, names_credential
from footprint_observe.redaction.paths import paths

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
    def of(
        cls,
        *,
        fields: Sequence[str] = (),
        detectors: Sequence[Detector] = (),
        credentials: bool = True,
    ) -> Redaction:
        """Masks fields by their path, and what detectors find.

        A path begins with the name of a value: `why`, `before`, `after` and `detail` of a decision, `args`
        and `result` of a call, `text` of a message or an answer, and so on. A whole value is named alone
        (`after`), a part of it by keys (`before.customer.ssn`), where `*` stands for one key and `**` for
        any number; the items of an array need no step. The same content can be held by more than one value,
        a result by `result` and by the `before` of a rule that changed it: name each, or write `**.ssn`.
        What is named and not there is no error.

        Args:
            fields: The paths.
            detectors: What to look for in every text and every key.
            credentials: Mask what `standard` masks, too.

        Raises:
            BuilderError: A path or a detector is none.
        """
        known = CREDENTIALS if credentials else ()
        rules = Rules(
            names=names_credential if credentials else _names_nothing,
            name_hints=HINTS if credentials else (),
            detectors=(*known, *_detectors(detectors)),
            fields=paths(fields),
            shortest=1 if detectors else _STANDARD.shortest,
        )
        return cls(rules=rules)

    @classmethod
    def none(cls) -> Redaction:
        """Keeps everything as it is."""
        return cls(rules=None)

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        """The fact as it may be kept, and path and method of what was masked.

        The fact itself, and no marks, when nothing was.
        """
        return (fact, ()) if self.rules is None else redacted(fact, self.rules)


def _names_nothing(_key: str) -> bool:
    return False


def _detectors(given: object) -> tuple[Detector, ...]:
    if not isinstance(given, list | tuple):
        raise BuilderError(
            f"Redaction.of(detectors=...) takes a list of detectors, not {type(given).__name__}; put them in "
            "brackets."
        )
    found: list[Detector] = []
    for one in cast("list[object] | tuple[object, ...]", given):
        if not isinstance(one, Detector) or not callable(getattr(one.pattern, "sub", None)):
            raise BuilderError(
                f"Redaction.of(detectors=...) takes detectors, not {type(one).__name__}; make each with "
                "Detector(name=..., pattern=re.compile(...))."
            )
        # Every text holds the empty one, so without hints no text is passed over.
        found.append(one if one.hints else msgspec.structs.replace(one, hints=("",)))
    return tuple(found)
