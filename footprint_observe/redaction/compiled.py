"""A policy made ready: its rules by rank, and one look that tells which of them could match at all.

The rank of a rule is its place in the policy. The look is one pass of RE2 over the JSON of a value; most
values pass it and are not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from footprint_core.plain import Json
from footprint_observe.keyring import KeyRing
from footprint_observe.redaction.detect import Detector, compiled
from footprint_observe.redaction.keys import (
    CREDENTIAL_HINT,
    hint_of,
    is_spared,
    names,
    names_credential,
    words_of,
)
from footprint_observe.redaction.linear import LARGEST, PatternSet, escaped, too_large
from footprint_observe.redaction.paths import VALUES, Path, parsed
from footprint_observe.redaction.ranked import NEVER, Ranked
from footprint_observe.redaction.rules import Rule, Strategy

Hits: TypeAlias = frozenset[int]
"""What a look found: `NAMED`, `VEILED`, `PACKED`, `PLACED`, and the ranks of detectors."""

NAMED = -1
"""A key that a rule names could be in it."""

VEILED = -2
"""Characters in it could look like others, be invisible, or be encoded with a percent sign."""

PACKED = -3
"""Base64 could be in it."""

PLACED = -4
"""A key that a path ends in stands in it."""

_LONGEST_KNOWN = 128
_MOST_KNOWN = 4_096
_OTHER_ESCAPES = re.compile(rb'\\[^nrt"/]')
_ESCAPED = ((b"\\n", b"\n"), (b"\\r", b"\r"), (b"\\t", b"\t"), (b'\\"', b'"'), (b"\\/", b"/"))
# Long enough for a name, with a capital far enough from one of its ends: what 24 letters of base64 always
# have and a hexadecimal id never does.
_PACKED = r"[A-Za-z0-9+/_-]{12,}[A-Z]|[A-Z][A-Za-z0-9+/_-]{12,}"
_VEILED = r"[^\x00-\x7f]|%[0-9A-Fa-f]{2}"
_NOT_ANCHORS = re.compile(r"\\[^AzZ]|\[\^")
_encode = msgspec.json.Encoder().encode


class CredentialKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The rule about every key that names a credential, which no list of words is exact enough for."""

    strategy: Strategy = "mask"


class Compiled:
    """A policy made ready.

    Args:
        rules: The rules in their order, checked.
        keys: The keys of pseudonyms and seals.
        shortest: Characters of the shortest text a detector can find something in.
        own: How many of the rules were given; those behind them are included ones.

    Raises:
        BuilderError: The rules are too large together.

    Attributes:
        strategies: By rank.
        fields: The paths, with their ranks.
        detectors: The detectors, with their ranks.
        seen_by_key: Whether a look finds `PLACED` wherever a path matches.
        keys: The keys.
        shortest: As given.
        rank_of: The rank of the rule that names a key, or `NEVER`.
        tool_names: What is kept of each name of a tool that was looked at.
    """

    def __init__(
        self, rules: Sequence[Rule | CredentialKeys], keys: KeyRing | None, shortest: int, own: int = 0
    ) -> None:
        self.strategies: tuple[Strategy, ...] = tuple(rule.strategy for rule in rules)
        self.keys = keys
        self.shortest = shortest
        self._own = own
        fields: list[tuple[int, tuple[str, ...]]] = []
        detectors: list[tuple[int, Detector]] = []
        self._wanted: list[tuple[int, list[str] | None]] = []
        for rank, rule in enumerate(rules):
            if isinstance(rule, CredentialKeys):
                self._wanted.append((rank, None))
            elif rule.path is not None:
                fields.append((rank, parsed(rule.path)))
            elif rule.key is not None:
                self._wanted.append((rank, words_of(rule.key)))
            elif rule.detector is not None:
                detectors.append((rank, rule.detector))
        self.fields: Ranked = tuple(fields)
        self.detectors = tuple(detectors)
        self._ranks: dict[str, int] = {}
        self.tool_names: dict[str, str] = {}
        # A whole value is met by its name, and nothing in it needs to be looked for.
        self.seen_by_key = all(len(path) == 1 or _last_key(path) is not None for _, path in fields)
        if sum(compiled(detector).size for _, detector in detectors) > LARGEST:
            raise too_large()
        looks = self._looks()
        self._all: Hits = frozenset(looks)
        self._means = tuple(looks)
        self._set = PatternSet(tuple(looks.values()))
        # `^` and `$` are meant of one text and say nothing of many at once.
        self._alone = any(_is_anchored(detector.pattern) for _, detector in detectors)

    def rank_of(self, key: str) -> int:
        """The rank of the rule that names a key, or `NEVER`."""
        rank = self._ranks.get(key)
        if rank is None:
            rank = self._rank_of(key)
            # A key can be as long as a model likes, and what is remembered stays in memory.
            if len(key) <= _LONGEST_KNOWN and len(self._ranks) < _MOST_KNOWN:
                self._ranks[key] = rank
        return rank

    def spares(self, rank: int, key: str, value: object) -> bool:
        """Whether an included rule about a key leaves a value, for it is none of what the key names."""
        return rank >= self._own and is_spared(key, value)

    def remember_tool_name(self, name: str, kept: str) -> None:
        """Keep what is kept of a tool's name, within bounds: a model can make up any number of them."""
        if len(name) <= _LONGEST_KNOWN and len(self.tool_names) < _MOST_KNOWN:
            self.tool_names[name] = kept

    def look(self, value: Json) -> Hits | None:
        """What could match in a value; None when each of its texts must be looked at by itself."""
        if type(value) is str:
            return self.look_at(value)
        if self._alone:
            return None
        data = _encode(value)
        read = _unescaped(data) if b"\\" in data else data
        return None if read is None else self._hits(read)

    def look_at(self, text: str) -> Hits:
        """What could match in a text, or in JSON that stands in it."""
        data = text.encode(errors="replace")
        hits = self._hits(data)
        if b"\\" not in data or (b"{" not in data and b"[" not in data):
            return hits
        read = _unescaped(data)
        return self._all if read is None else hits | self._hits(read)

    def _hits(self, data: bytes) -> Hits:
        hits = self._set.hits(data)
        return frozenset([self._means[hit] for hit in hits]) if hits else _NOTHING

    def _rank_of(self, key: str) -> int:
        words = words_of(key)
        for rank, wanted in self._wanted:
            if names_credential(key) if wanted is None else names(words, wanted):
                return rank
        return NEVER

    def _looks(self) -> dict[int, str]:
        """A pattern for everything a look can find."""
        looks = {rank: detector.pattern for rank, detector in self.detectors}
        hints = [CREDENTIAL_HINT if wanted is None else hint_of(wanted) for _, wanted in self._wanted]
        if hints:
            looks[NAMED] = f"(?i){'|'.join(hints)}"
        if looks:
            looks |= {VEILED: _VEILED, PACKED: _PACKED}
        lasts = sorted({last for _, path in self.fields if (last := _last_key(path)) is not None})
        if lasts:
            looks[PLACED] = "|".join(escaped(_encode(last).decode()) for last in lasts)
        return looks


_NOTHING: Hits = frozenset()
_OF_KEYS: Hits = frozenset({NAMED, PLACED})


def only_keys(hits: Hits) -> bool:
    """Whether nothing could match but a key."""
    return hits <= _OF_KEYS


def _unescaped(data: bytes) -> bytes | None:
    """JSON with the characters its usual escapes stand for; None when there are others in it."""
    if _OTHER_ESCAPES.search(data) is not None:
        return None
    for escape, character in _ESCAPED:
        data = data.replace(escape, character)
    return data


def _last_key(path: Path) -> str | None:
    """The key of which a value holds the JSON text whenever a path matches in it; None when there is none."""
    named = [step for step in path[1:] if step not in {"*", "**"} and not step.isdigit()]
    # A name of a value can be met outside of it: `**.args.*` by all args, `calls.*.args` by those of a call.
    return named[-1] if named and named[-1] not in VALUES and _is_written_as_it_is(named[-1]) else None


def _is_written_as_it_is(key: str) -> bool:
    """Whether a key has no character that JSON escapes: a look sees JSON without its escapes."""
    try:
        return _encode(key) == f'"{key}"'.encode()
    except UnicodeEncodeError:
        return False


def _is_anchored(pattern: str) -> bool:
    bare = _NOT_ANCHORS.sub("", pattern)
    return "^" in bare or "$" in bare or "\\" in bare
