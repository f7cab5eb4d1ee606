"""What the SDK can hold: texts, numbers and times within their bounds.

A value it cannot hold costs the attribute, one attribute too many costs the first ones set, and a number
beyond what the wire holds costs everything that is exported with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeAlias

from opentelemetry.util.types import AttributeValue

Fact: TypeAlias = str | bool | int | float | tuple[str, ...] | None
"""What an attribute is made of; None is left out."""

Attributes: TypeAlias = dict[str, AttributeValue]
"""Attributes as the SDK takes them."""

MAX_CHARS = 256
MAX_ITEMS = 20
_MAX_INT = 2**63 - 1
_MIN_INT = -(2**63)
_MAX_MICROSECONDS = _MAX_INT // 1000
# Controls, line and paragraph ends, what turns the direction of writing, and halves of characters: the last
# cannot be written, the others make a name read as another, or steer whoever prints it.
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def text(value: str) -> str:
    """At most 256 characters, those that are none to look at as question marks."""
    if len(value) > MAX_CHARS:
        value = value[:MAX_CHARS]
    return value if value.isprintable() else _UNSHOWN.sub("?", value)


def named(kind: str, name: str) -> str:
    """The name of a span: what it is, and of whom."""
    return text(f"{kind} {text(name)}")


def whole(value: int) -> int:
    """A number of 64 bits: the nearest one."""
    if _MIN_INT <= value <= _MAX_INT:
        return value
    return _MAX_INT if value > 0 else _MIN_INT


def nanoseconds(microseconds: int) -> int:
    """An instant as the SDK takes it; one that the wire cannot hold is the nearest it can."""
    if 0 <= microseconds <= _MAX_MICROSECONDS:
        return microseconds * 1000
    return _MAX_MICROSECONDS * 1000 if microseconds > 0 else 0


def began(ended: int, duration: float | None) -> int:
    """When something began, nanoseconds: its end less how long it took, seconds.

    It took a nanosecond at least, for viewers warn of a span that took no time.
    """
    if duration is None or not 0.0 <= duration * 1e9 <= ended:
        return max(ended - 1, 0)
    return max(ended - max(round(duration * 1e6) * 1000, 1), 0)


def clean(facts: Mapping[str, Fact]) -> Attributes:
    """The facts that are known, within the bounds."""
    out: Attributes = {}
    for name, fact in facts.items():
        match fact:
            case None:
                continue
            case str():
                out[name] = text(fact)
            case bool():
                out[name] = fact
            case int():
                out[name] = whole(fact)
            case float():
                if math.isfinite(fact):
                    out[name] = fact
            case _:
                out[name] = tuple(text(item) for item in fact[:MAX_ITEMS])
    return out
