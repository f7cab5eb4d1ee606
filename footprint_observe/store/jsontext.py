"""JSON text in its parts, each with where it stands: what is needed to change one place and no other byte."""

from __future__ import annotations

import json
import re
from typing import Literal, NoReturn, TypeAlias

import msgspec

_SPACE = re.compile(r"[ \t\n\r]*")


Trouble: TypeAlias = Literal["no-json", "unclear"]
"""Why a text has no parts: it is no JSON object or array, or not only one; or a place in it cannot be told by
its path, for a key stands twice or it is too deep."""


class Part(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A member of an object or an item of an array.

    Attributes:
        key: Its key; None for an item.
        step: Its key, or its index as text.
        start: Where its value begins in the text.
        end: Behind the value's last character.
    """

    key: str | None
    step: str
    start: int
    end: int


def opens(text: str) -> bool:
    """Whether a text could be a JSON object or array."""
    return text[:1] in {"{", "["} or text.lstrip(" \t\n\r")[:1] in {"{", "["}


def parts(text: str) -> list[Part] | Trouble:
    """The parts of the one object or array that is the text, space around it allowed; or why it has none."""
    try:
        found = _Reading(text).parts()
    except ValueError:
        return "no-json"
    except RecursionError:
        return "unclear"
    return found if len({part.step for part in found}) == len(found) else "unclear"


def _no_number(_name: str) -> NoReturn:
    raise ValueError


_value = json.JSONDecoder(parse_constant=_no_number).raw_decode


class _Reading:
    """One pass over a text."""

    __slots__ = ("_at", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def parts(self) -> list[Part]:
        is_object = self._mark() == "{"
        closes = "}" if is_object else "]"
        if not is_object and self._mark() != "[":
            raise ValueError
        self._at += 1
        found: list[Part] = []
        if self._mark() == closes:
            self._at += 1
        else:
            while True:
                found.append(self._part(len(found), is_object=is_object))
                mark = self._mark()
                self._at += 1
                if mark == closes:
                    break
                if mark != ",":
                    raise ValueError
        if self._mark():
            raise ValueError
        return found

    def _mark(self) -> str:
        """The next character that is no space; '' at the end."""
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at
        return self._text[self._at : self._at + 1]

    def _part(self, index: int, *, is_object: bool) -> Part:
        key: str | None = None
        if is_object:
            if self._mark() != '"':
                raise ValueError
            key, self._at = _value(self._text, self._at)
            if self._mark() != ":":
                raise ValueError
            self._at += 1
        self._mark()
        start = self._at
        _, self._at = _value(self._text, start)
        return Part(key=key, step=str(index) if key is None else key, start=start, end=self._at)
