"""JSON values: equal by value, written canonically, and found by a dotted path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

import msgspec

Json: TypeAlias = Any
"""Plain JSON data."""

Context: TypeAlias = Mapping[str, Json]
"""What a predicate or a template may look at."""


class Missing:
    """Stands for what a path does not lead to; null is a value."""


MISSING: Final = Missing()


def is_object(value: object) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def is_number(value: object) -> TypeGuard[int | float]:
    # In Python a boolean is a whole number; in JSON it is not.
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(one: Json, other: Json) -> bool:
    """Equal as JSON: numbers by value, `true` is not 1, an absent key is not null."""
    if is_number(one) and is_number(other):
        return one == other
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if is_list(one) and is_list(other):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def canonical(value: Json) -> str:
    """JSON with sorted keys, no spaces, whole numbers without a point, and no escapes that are not needed."""
    return msgspec.json.encode(_by_value(value), order="deterministic").decode()


def _by_value(value: Json) -> Json:
    if is_object(value):
        return {key: _by_value(item) for key, item in value.items()}
    if is_list(value):
        return [_by_value(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def at(context: Context, path: str) -> Json | Missing:
    """What stands at a dotted path: keys of objects, places in lists, `length` of a list or a text."""
    here: Json = context
    for part in path.split("."):
        if isinstance(here, Mapping):
            if part not in here:
                return MISSING
            here = here[part]
        elif part == "length" and isinstance(here, list | str):
            here = len(here)
        elif is_list(here) and part.isdigit() and int(part) < len(here):
            here = here[int(part)]
        else:
            return MISSING
    return here
