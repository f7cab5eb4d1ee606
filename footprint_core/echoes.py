"""Texts that were taken out of a call, and taking them out of what was said about it.

Texts are those of values and of keys, and whole numbers as they are written. A number with a fraction is
none: it can be written in more ways than can be looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

from footprint_core import plain
from footprint_core.ledger import REDACTED, Marks
from footprint_core.plain import Json

ECHO = "echo"
"""The mark of a text from which something was taken because it was taken out of the call it is about."""

Taken: TypeAlias = tuple[str, ...] | None
"""Texts that were taken out of a call, the longest first; None when they are too many to remember."""

_SHORTEST = 6
# What the mask holds itself; taking that out of a text would put it there again.
_OF_THE_MASK = frozenset({REDACTED, REDACTED.strip("[]")})
_MOST_TEXTS = 1_000
_MOST_CHARS = 1 << 16


def texts_of(value: Json, known: Taken) -> Taken:
    """The texts of a value that was taken out, and those that are known already."""
    if known is None:
        return None
    found = set(known)
    _gather(value, found)
    if len(found) > _MOST_TEXTS or sum(map(len, found)) > _MOST_CHARS:
        return None
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def without(value: Json, taken: Taken, path: str, found: list[str]) -> Json:
    """A value without texts that were taken; the same object when none is in it.

    Args:
        value: The value.
        taken: The texts; None takes the whole value.
        path: Where it stands.
        found: Is given the path of everything that changed.
    """
    if taken is None:
        found.append(path)
        return REDACTED
    if isinstance(value, str):
        return _text(value, taken, path, found)
    if plain.is_object(value):
        kept: dict[str, Json] = {}
        for key, item in value.items():
            name = _text(key, taken, path, found)
            while name is not key and (name in kept or name in value):
                # Two keys that were masked stay two.
                name += "'"
            kept[name] = without(item, taken, f"{path}.{name}", found)
        same = all(one is two and kept[one] is value[two] for one, two in zip(kept, value, strict=True))
        return value if same else kept
    if plain.is_array(value):
        items = [without(item, taken, f"{path}.{at}", found) for at, item in enumerate(value)]
        return value if all(one is two for one, two in zip(items, value, strict=True)) else items
    if isinstance(value, int) and not isinstance(value, bool) and str(value) in taken:
        found.append(path)
        return REDACTED
    return value


def echoed(paths: Iterable[str]) -> Marks:
    """The marks of echoes."""
    return tuple((path, ECHO) for path in dict.fromkeys(paths))


def _text(text: str, taken: tuple[str, ...], path: str, found: list[str]) -> str:
    marked: bytearray | None = None
    for one in taken:
        at = text.find(one)
        while at >= 0:
            marked = marked or bytearray(len(text))
            marked[at : at + len(one)] = b"\1" * len(one)
            at = text.find(one, at + 1)
    if marked is None:
        return text
    found.append(path)
    # Texts that overlap go as one, for what is left of the second would still tell its end.
    return "".join(
        [REDACTED if gone else text[first : first + length] for gone, first, length in _runs(marked)]
    )


def _runs(marked: bytearray) -> Iterator[tuple[int, int, int]]:
    """Every stretch of equal marks: its mark, its first index and its length."""
    at = 0
    for mark, run in groupby(marked):
        length = sum(1 for _ in run)
        yield mark, at, length
        at += length


def _gather(value: Json, found: set[str]) -> None:
    if isinstance(value, str):
        if len(value) >= _SHORTEST and value not in _OF_THE_MASK:
            found.add(value)
        if value[:1] in {"{", "["}:
            try:
                inner = plain.decode(value)
            except ValueError:
                return
            _gather(inner, found)
    elif isinstance(value, int) and not isinstance(value, bool):
        _gather(str(value), found)
    elif plain.is_object(value):
        for key, item in value.items():
            _gather(key, found)
            _gather(item, found)
    elif plain.is_array(value):
        for item in value:
            _gather(item, found)
