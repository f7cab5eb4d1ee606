"""The walk over a fact's values: decoded data, never serialized text; only what changes is copied."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn, cast

import msgspec

from footprint_core.facts import Fact
from footprint_core.ledger import FAILED, REDACTED, Marks, masked_fields
from footprint_core.messages import ToolCall
from footprint_core.plain import Json
from footprint_observe.redaction.detect import Detector
from footprint_observe.redaction.paths import MATCHED, Left, behind, within

_SHORTEST = 8
_MAX_DEPTH = 150
_encode = msgspec.json.Encoder().encode
_OPENS_JSON = frozenset("{[ \t\r\n")
_MASKED_JSON = f'"{REDACTED}"'


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What is masked.

    Attributes:
        names: Whether a key names something to mask, whatever stands under it.
        name_hints: Texts of which every such key holds one, when it is ASCII and in lower case.
        detectors: What is masked inside a text.
        fields: The paths of what is masked whatever it is.
        shortest: Characters of the shortest text a detector can find something in.
    """

    names: Callable[[str], bool]
    name_hints: tuple[str, ...]
    detectors: tuple[Detector, ...]
    fields: Left = ()
    shortest: int = _SHORTEST


def redacted(fact: Fact, rules: Rules) -> tuple[Fact, Marks]:
    """The fact without what the rules mask, and the marks; the fact itself when nothing matched."""
    walk: _Walk | None = None
    changed: dict[str, Json] = {}
    for name in masked_fields(fact):
        value = getattr(fact, name)
        if not _is_there(value):
            continue
        walk = walk or _Walk(rules)
        try:
            kept = walk.field(name, value)
        except Exception:  # noqa: BLE001 - what could not be looked through is not kept
            # The calls of a reply stay calls, so that the row can still be read back.
            kept = () if name == "calls" else REDACTED
            walk.marks[name] = FAILED
        if kept is not value:
            changed[name] = kept
    if walk is None or not changed:
        return fact, ()
    return msgspec.structs.replace(fact, **changed), tuple(walk.marks.items())


def _is_there(value: Json) -> bool:
    return value is not msgspec.UNSET and value is not None and value != ()


class _Walk:
    """One walk over the values of one fact, and the marks it leaves by path."""

    __slots__ = ("_rules", "_shortest", "marks")

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._shortest = rules.shortest
        self.marks: dict[str, str] = {}

    def field(self, name: str, value: Json) -> Json:
        """One value of a fact as it may be kept; the same object when nothing in it matched."""
        fields = self._rules.fields
        left = behind(fields, name) if fields else ()
        if MATCHED in left:
            # The calls of a reply stay calls, so that the row can still be read back.
            masked = self._mask(name)
            return () if name == "calls" else masked
        held = left or (fields and name == "calls" and behind(fields, "args"))
        return value if not held and self.is_plain(value) else self.value(value, name, 0, left)

    def is_plain(self, value: Json) -> bool:
        """Whether nothing in an object or array can match, by one look at its JSON text.

        Most values are, and a look costs a tenth of the walk.
        """
        return type(value) is not str and not self._may_hold(_encode(value).decode())

    def value(self, value: Json, path: str, depth: int, left: Left = ()) -> Json:
        """The value as it may be kept; the same object when nothing in it matched.

        Args:
            value: The value.
            path: Where it stands.
            depth: How deep that is.
            left: What is left of the paths that could match in it.
        """
        kind = cast("type[object]", type(value))
        if kind is str:
            return value if len(value) < self._shortest and not left else self._text(value, path, depth, left)
        if kind is dict:
            return self._dict(cast("dict[str, Json]", value), path, depth, left)
        if kind is list or kind is tuple:
            return self._sequence(cast("list[Json] | tuple[Json, ...]", value), path, depth, left)
        if kind is ToolCall:
            return self._call(cast("ToolCall", value), path, depth, left)
        return value

    def _mask(self, path: str) -> str:
        self.marks[path] = "mask"
        return REDACTED

    def _dict(self, value: dict[str, Json], path: str, depth: int, left: Left) -> Json:
        if depth > _MAX_DEPTH:
            return self._mask(path)
        names = self._rules.names
        out: dict[str, Json] = {}
        changed = False
        for key, item in value.items():
            name = key if len(key) < self._shortest else self._detect(key, path)
            below = behind(left, key) if left else left
            if MATCHED in below or (item is not None and names(key)):
                kept: Json = self._mask(f"{path}.{name}")
            else:
                kept = self.value(item, f"{path}.{name}", depth + 1, below)
            if name is not key:
                # Two keys that were masked stay two.
                while name in out or name in value:
                    name += "'"
                changed = True
            changed = changed or kept is not item
            out[name] = kept
        return out if changed else value

    def _sequence(self, value: list[Json] | tuple[Json, ...], path: str, depth: int, left: Left) -> Json:
        if depth > _MAX_DEPTH:
            return self._mask(path)
        kept = [
            self._item(item, f"{path}.{at}", depth + 1, within(left, at)) for at, item in enumerate(value)
        ]
        if all(new is old for new, old in zip(kept, value, strict=True)):
            return value
        return kept if isinstance(value, list) else tuple(kept)

    def _item(self, item: Json, path: str, depth: int, left: Left) -> Json:
        return self._mask(path) if MATCHED in left else self.value(item, path, depth, left)

    def _call(self, call: ToolCall, path: str, depth: int, left: Left) -> ToolCall:
        # The id stays: it is in the ledger's own columns too, and what joins a call to its rows.
        name = self.value(call.name, f"{path}.name", depth)
        repeats = self.value(call.repeats, f"{path}.repeats", depth)
        # What a path says of the args that run is meant of the args the model asked for, too.
        fields = self._rules.fields
        below = (*behind(left, "args"), *behind(fields, "args")) if fields else ()
        args = self._args(call.args_json, f"{path}.args", depth, below)
        if name is call.name and repeats is call.repeats and args is call.args_json:
            return call
        return msgspec.structs.replace(call, name=name, repeats=repeats, args_json=args)

    def _args(self, text: str, path: str, depth: int, left: Left) -> str:
        if MATCHED in left or ((left or self._may_hold(text)) and not _is_clear(text)):
            # Arguments a model broke off: nobody can say where the value of a key ends.
            self._mask(path)
            return _MASKED_JSON
        return text if len(text) < self._shortest and not left else self._text(text, path, depth, left)

    def _text(self, text: str, path: str, depth: int, left: Left) -> str:
        opens = text[:1] in _OPENS_JSON and text.lstrip()[:1] in {"{", "["}
        if opens and (left or self._may_hold(text)):
            text = self._nested(text, path, depth, left)
        return self._detect(text, path)

    def _detect(self, text: str, path: str) -> str:
        for detector in self._rules.detectors:
            for hint in detector.hints:
                if hint in text:
                    kept = detector.pattern.sub(REDACTED, text)
                    if kept != text:
                        self._mask(path)
                        text = kept
                    break
        return text

    def _may_hold(self, text: str) -> bool:
        """Whether anything in a JSON text could be masked; escapes and other alphabets could hide it."""
        if "\\u" in text or not text.isascii():
            return True
        lower = text.lower()
        if any(hint in lower for hint in self._rules.name_hints):
            return True
        return any(hint in text for detector in self._rules.detectors for hint in detector.hints)

    def _nested(self, text: str, path: str, depth: int, left: Left) -> str:
        if depth > _MAX_DEPTH:
            return self._mask(path)
        try:
            value = _parsed(text)
        except (_TwiceError, RecursionError):
            return self._mask(path)
        if value is _NO_JSON:
            return text
        kept = self.value(value, path, depth + 1, left)
        if kept is value:
            return text
        written = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        try:
            written.encode()
        except UnicodeEncodeError:
            # The text had an escaped lone surrogate, which only an escape can hold.
            return json.dumps(kept, separators=(",", ":"))
        return written


class _TwiceError(Exception):
    """An object has a key twice, so decoding it would overlook a value."""


_NO_JSON = object()


def _parsed(text: str) -> Json:
    """The decoded text, or `_NO_JSON`."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except ValueError:
        return _NO_JSON


def _is_clear(text: str) -> bool:
    try:
        return _parsed(text) is not _NO_JSON
    except (_TwiceError, RecursionError):
        return False


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        _twice()
    return out


def _twice() -> NoReturn:
    raise _TwiceError
