"""Whether an actual value is the expected one, matchers included, and where it is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, TypeAlias

from conformance.values import Json, is_list, is_object, same

Mismatch: TypeAlias = tuple[str, Json, Json]
"""Where, what was expected there, and what came."""


class Absent:
    """Stands for a key that is not there, and equals no value."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT: Final = Absent()


def differences(expected: Json, actual: Json, where: str = "") -> Iterator[Mismatch]:
    """Every place at which the two differ. An absent key and a null differ."""
    if is_object(expected) and ("$authored" in expected or "$contains" in expected):
        parts = expected["contains"] if "$authored" in expected else expected["$contains"]
        if not isinstance(actual, str) or not all(part in actual for part in parts):
            yield where, expected, actual
    elif is_object(expected) and "$json" in expected:
        yield from _of_json(expected["$json"], actual, where)
    elif is_object(expected) and is_object(actual):
        for key in expected.keys() | actual.keys():
            if key not in expected or key not in actual:
                yield f"{where}.{key}", expected.get(key, ABSENT), actual.get(key, ABSENT)
            else:
                yield from differences(expected[key], actual[key], f"{where}.{key}")
    elif is_list(expected) and is_list(actual):
        for place in range(max(len(expected), len(actual))):
            here = f"{where}[{place}]"
            if place >= len(expected) or place >= len(actual):
                yield (
                    here,
                    expected[place] if place < len(expected) else ABSENT,
                    actual[place] if place < len(actual) else ABSENT,
                )
            else:
                yield from differences(expected[place], actual[place], here)
    elif not same(expected, actual):
        yield where, expected, actual


def _of_json(expected: Json, actual: Json, where: str) -> Iterator[Mismatch]:
    try:
        parsed = json.loads(actual)
    except (TypeError, ValueError):
        yield where, {"$json": expected}, actual
        return
    yield from differences(expected, parsed, f"{where}($json)")
