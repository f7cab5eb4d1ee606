"""A rule of a policy: what it is about, and what is done about that."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from footprint_core.errors import BuilderError
from footprint_observe.redaction.detect import Detector, checked
from footprint_observe.redaction.keys import words_of
from footprint_observe.redaction.paths import parsed

Strategy: TypeAlias = Literal["mask", "drop", "partial", "pseudonym", "seal", "keep"]
"""What is done:

- `mask`: `[redacted]` takes its place.
- `drop`: a key goes together with its value, a match goes from its text. A whole field, an item of an array
  and the arguments of a call have a place that stays, and are masked there.
- `partial`: `[redacted]` and the last four characters, of a text or number of eight and more; what is
  shorter, or neither, is masked.
- `pseudonym`: `pseudonym:<key id>:<letters>`, the same for equal values wherever they stand, and nothing
  without the key. Equal is meant of JSON: 1 and 1.0 are, "1" and 1 are not, "Dana" and "dana" are not.
  Another current key gives other pseudonyms.
- `seal`: `sealed:<key id>:<letters>`, which `footprint open` opens with the key, at the same path of a row
  of the same kind and nowhere else. Where the policy seals, a sealed text that comes from outside is sealed
  again, and opens as that text. Where it does not, one that was copied to the same path of another row of
  that kind stays and opens there, too.
- `keep`: it stays, and so does all in it, as far as later rules go.
"""

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)

KEYED: frozenset[Strategy] = frozenset({"pseudonym", "seal"})
"""The strategies that need keys."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule; of `path`, `key` and `detector` it has exactly one.

    A path begins with the name of a value: `why`, `before`, `after` and `detail` of a decision, `args` and
    `result` of a call, `text` of a message or an answer, and so on. A whole value is named alone (`after`),
    a part of it by keys (`before.customer.ssn`), where `*` stands for one key and `**` for any number; the
    items of an array need no step. The same content can be held by more than one value, a result by
    `result` and by the `before` of a rule that changed it: name each, or write `**.ssn`.

    Attributes:
        strategy: What is done.
        path: The place of the values it is about.
        key: The words of the keys whose values it is about: `birth date` is met by `birthDate`,
            `customer-birth-date` and `BIRTHDATE`. In a text it is met by `birth_date=...` and the like.
        detector: What it is about inside texts, keys and numbers.
    """

    strategy: Strategy = "mask"
    path: str | None = None
    key: str | None = None
    detector: Detector | None = None


def checked_rule(rule: object, *, keyed: bool) -> Rule:
    """A rule that can be used.

    Args:
        rule: The rule.
        keyed: Whether the policy has keys.

    Raises:
        BuilderError: It is none.
    """
    if not isinstance(rule, Rule):
        raise BuilderError(
            f"Redaction.of(rules=...) takes rules, not {type(rule).__name__}; make each with Rule(path=..., "
            "strategy=...)."
        )
    strategy: object = rule.strategy
    if strategy not in STRATEGIES:
        raise BuilderError(
            f"A rule of a redaction policy has an unknown strategy; use one of {', '.join(STRATEGIES)}."
        )
    if strategy in KEYED and not keyed:
        raise BuilderError(
            f"The strategy {strategy} needs keys; give the policy keys=KeyRing.from_env() or another ring."
        )
    if sum(part is not None for part in (rule.path, rule.key, rule.detector)) != 1:
        raise BuilderError(
            "A rule of a redaction policy has a path, a key or a detector; give it one of them."
        )
    if rule.path is not None:
        parsed(rule.path)
    if rule.key is not None and not _has_words(rule.key):
        raise BuilderError(
            "The key of a rule is a text of at least one word, like 'birth date'; write it so."
        )
    if rule.detector is not None:
        checked(rule.detector)
    return rule


def _has_words(key: object) -> bool:
    return isinstance(key, str) and bool(words_of(key))
