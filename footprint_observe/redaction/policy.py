"""The policy a ledger redacts by."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import cast, final

from footprint_core.errors import BuilderError
from footprint_core.facts import Decided, Fact, ModelReplied, ToolFinished, ToolIntended
from footprint_core.ledger import Marks
from footprint_core.plain import Json
from footprint_observe.keyring import KeyRing
from footprint_observe.redaction.apply import redacted, removed
from footprint_observe.redaction.compiled import Compiled, CredentialKeys
from footprint_observe.redaction.credentials import CREDENTIALS
from footprint_observe.redaction.detect import Detector, checked
from footprint_observe.redaction.paths import Left, paths
from footprint_observe.redaction.personal import PERSONAL, PERSONAL_KEYS
from footprint_observe.redaction.rules import Rule, checked_rule

_SHORTEST_KNOWN = 5
_WHO = ("decided_by", "by")
_OF_CALLS: dict[type[Fact], tuple[str, ...]] = {
    ModelReplied: ("calls",),
    ToolIntended: ("args",),
    ToolFinished: ("result",),
    Decided: ("before", "after"),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Redaction:
    """What is taken out of values before they are written: a `Redactor`.

    It is made by `standard`, `personal`, `of`, `from_toml` or `none`, and cannot be changed. Two policies
    that say the same are equal.

    Its rules have an order, and the first one that matches wins: those of `rules`, then `fields`, then
    `detectors`, then what `credentials` and `personal` stand for. Rules about paths and keys decide about
    whole values, the outermost first; detectors look into the texts no such rule took.

    Attributes:
        rules: The rules that were given, in their order.
        credentials: Whether credentials are masked behind them.
        is_personal: Whether personal data is masked behind these.
        erasable: The paths of what is kept so that it can be erased by itself.
        keys: The keys of pseudonyms and seals, or None.
    """

    rules: tuple[Rule, ...]
    credentials: bool
    is_personal: bool
    erasable: Left
    keys: KeyRing | None
    _compiled: Compiled | None = field(compare=False)

    @classmethod
    def standard(cls) -> Redaction:
        """Masks credentials: by the name of their key, and by their look inside any text."""
        return cls.of()

    @classmethod
    def personal(cls) -> Redaction:
        """Masks credentials and personal data.

        Personal data are payment cards, US social security numbers, e-mail addresses, phone numbers, IBANs
        and IP addresses by their look; and these, dates of birth, passports, licences and tax ids by the
        name of their key. Names and postal addresses have no look of their own: write rules for them. The
        person who decided (`decided_by` of a decision, `by` of a run that was given up) is kept.
        """
        return cls.of(personal=True)

    @classmethod
    def none(cls) -> Redaction:
        """Keeps everything as it is."""
        return cls.of(credentials=False)

    @classmethod
    def of(
        cls,
        *,
        rules: Sequence[Rule] = (),
        fields: Sequence[str] = (),
        detectors: Sequence[Detector] = (),
        credentials: bool = True,
        personal: bool = False,
        erasable: Sequence[str] = (),
        keys: KeyRing | None = None,
    ) -> Redaction:
        """A policy of its own.

        Paths are written as `Rule` says; one that names nothing is no error.

        Args:
            rules: Rules, each with its strategy.
            fields: Paths of what is masked: a rule each, behind `rules`.
            detectors: What is masked in every text, key and number: a rule each, behind `fields`.
            credentials: Mask what `standard` masks, too.
            personal: Mask what `personal` masks, too.
            erasable: Paths of values that are kept apart, each with a salt of its own, so that one of them
                can be erased and the rest of its row proved.
            keys: The keys of the strategies `pseudonym` and `seal`.

        Raises:
            BuilderError: A rule, a path or a detector is none, a strategy lacks its keys, or the patterns are
                so large that building them would take seconds.
        """
        _check_keys(keys)
        _check_flag(credentials, "credentials")
        _check_flag(personal, "personal")
        paths(fields)
        given = (
            *(checked_rule(rule, keyed=keys is not None) for rule in _listed(rules, "rules")),
            *(Rule(path=path) for path in fields),
            *(Rule(detector=checked(detector)) for detector in _listed(detectors, "detectors")),
        )
        return cls(
            rules=given,
            credentials=credentials,
            is_personal=personal,
            erasable=paths(erasable, "erasable"),
            keys=keys,
            _compiled=_compiled(given, credentials=credentials, personal=personal, keys=keys),
        )

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str], *, keys: KeyRing | None = None) -> Redaction:
        """A policy from a TOML file; its entries are named as the arguments of `of`.

        `detectors` is an array of tables with `name` and `pattern`; the detector of a rule is the name of
        one of them, or of one that is included: see `toml_policy.KNOWN`.

        Args:
            path: The file.
            keys: The keys of the strategies `pseudonym` and `seal`; they never stand in the file.

        Raises:
            BuilderError: The file cannot be read, or something in it is not understood.
        """
        from footprint_observe.redaction.toml_policy import read_toml

        read = read_toml(path)
        return cls.of(
            rules=read.rules,
            fields=read.fields,
            detectors=read.detectors,
            credentials=read.credentials,
            personal=read.personal,
            erasable=read.erasable,
            keys=keys,
        )

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        """The fact as it may be kept, and path and method of what was taken out.

        The fact itself, and no marks, when nothing was.
        """
        return (fact, ()) if self._compiled is None else redacted(fact, self._compiled)

    def removed(self, fact: Fact) -> tuple[tuple[str, Json], ...]:
        """Call and value of everything that rules about places and keys take out of args and results.

        What detectors take out is not among it: they look into every text themselves.
        """
        fields = _OF_CALLS.get(type(fact), ())
        return removed(fact, fields, self._compiled) if fields and self._compiled is not None else ()

    def __repr__(self) -> str:
        said = [f"rules={list(self.rules)}"] if self.rules else []
        said += [f"credentials={self.credentials}", f"personal={self.is_personal}"]
        said += [f"erasable={['.'.join(path) for path in self.erasable]}"] if self.erasable else []
        said += [f"keys={self.keys!r}"] if self.keys is not None else []
        return f"Redaction.of({', '.join(said)})"


def _check_keys(keys: object) -> None:
    if keys is not None and not isinstance(keys, KeyRing):
        raise BuilderError(
            f"Redaction.of(keys=...) takes a KeyRing, not {type(keys).__name__}; make one with KeyRing.of()."
        )


def _check_flag(given: object, argument: str) -> None:
    if not isinstance(given, bool):
        # "no" would count as yes.
        raise BuilderError(
            f"Redaction.of({argument}=...) takes True or False, not {type(given).__name__}; give one of them."
        )


def _listed(given: object, argument: str) -> Sequence[object]:
    if not isinstance(given, list | tuple):
        raise BuilderError(
            f"Redaction.of({argument}=...) takes a list, not {type(given).__name__}; put it in brackets."
        )
    return cast("list[object] | tuple[object, ...]", given)


def _compiled(
    rules: tuple[Rule, ...], *, credentials: bool, personal: bool, keys: KeyRing | None
) -> Compiled | None:
    if not rules:
        return _known_alone(credentials=credentials, personal=personal)
    known = _known(credentials=credentials, personal=personal)
    own = any(rule.detector is not None for rule in rules)
    return Compiled((*rules, *known), keys, shortest=1 if own else _SHORTEST_KNOWN, own=len(rules))


@cache
def _known_alone(*, credentials: bool, personal: bool) -> Compiled | None:
    known = _known(credentials=credentials, personal=personal)
    return Compiled(known, None, shortest=_SHORTEST_KNOWN) if known else None


def _known(*, credentials: bool, personal: bool) -> tuple[Rule | CredentialKeys, ...]:
    """What stands behind the words `credentials` and `personal`, as rules."""
    known: list[Rule | CredentialKeys] = []
    if credentials:
        known += [CredentialKeys(), *(Rule(detector=detector) for detector in CREDENTIALS)]
    if personal:
        # Who decided is what a ledger is for; a person's name is often an address.
        known += (Rule(path=path, strategy="keep") for path in _WHO)
        known += (Rule(key=key) for key in PERSONAL_KEYS)
        known += (Rule(detector=detector) for detector in PERSONAL)
    return tuple(known)
