r"""Erasable paths: values are cut out of the one that holds them when written, and put back when read.

A cut value is a row of `vals` of its own, under the concrete path it was at, so that it can go alone. In its
place stands `{"...": digest}`, with the digest the row commits to it by (see `hashing`).

A concrete path is the name of the field and the steps to the value, joined by dots, as in
`args.items.2.card`. In a step, a backslash, a dot and a control character are written as `\\`, `\.` and
`\x` with two hex digits, so that two places never share a path.

A path that names a whole field cuts nothing: the field is a row of its own already. When a path and one
below it are both erasable, the inner value is cut out of the outer one, and goes alone or with it. Only what
the row commits to under a path is put back: data that looks like a placeholder is data.

A step into a text goes into the JSON in it, where the value is cut as it is written, so that the text comes
back byte for byte; the arguments a model asked for (`calls.0.args`) are such a text, and what a path says of
`args` is meant of them, too. What cannot be told apart in a text (a key that stands twice, arguments that are
no JSON, JSON in a text within that JSON) is cut as a whole, at the nearest place above it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias, cast

import msgspec

from footprint_core.ledger import REDACTED
from footprint_core.plain import Json
from footprint_observe.store import jsontext

_REDACTED_JSON = f'"{REDACTED}"'
# As in `calls.0.args`, the name of the field apart.
_WHOLE_ARGS = 2
_STEP = re.compile(r"(?:[^\\.]|\\x[0-9a-f]{2}|\\[\\.])*")
_ESCAPED = re.compile(r"\\(x[0-9a-f]{2}|[\\.])")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

Steps: TypeAlias = tuple[str, ...]


class Kept(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a row commits to under a path, and the JSON the file has of it; None when it was erased."""

    digest: str
    json: str | None


def put_back(field: str, value: Json, kept: Mapping[str, Kept]) -> Json:
    """The value of a field with what was cut out of it at its place again.

    Args:
        field: The field's name.
        value: Its value, decoded; it is changed.
        kept: By path, what the row commits to of this field and what the file has.

    Raises:
        ValueError: There is no placeholder at one of the paths, or it is another one's.
    """
    top = _Place()
    for path, one in kept.items():
        steps = steps_of(path)[1:]
        # Of a call, only its arguments are cut, and they are kept as a text of JSON.
        steps_in = (steps[0], "args_json", *steps[2:]) if field == "calls" else steps
        place = top
        for step in steps_in:
            place = place.below.setdefault(step, _Place())
        place.kept = one
        if field == "calls" and len(steps) == _WHOLE_ARGS:
            place.missing = _encode(_REDACTED_JSON).decode()
    return _filled(value, top)


def steps_of(path: str) -> Steps:
    """A concrete path as its steps, the name of the field first."""
    found: list[str] = []
    at = 0
    while at <= len(path):
        step = cast("re.Match[str]", _STEP.match(path, at))
        found.append(_ESCAPED.sub(_unescaped, step[0]))
        if step.end() < len(path) and path[step.end()] != ".":
            raise _misplaced()
        at = step.end() + 1
    return tuple(found)


def field_of(path: str) -> str:
    """The field a concrete path begins with."""
    return path[: path.index(".")]


class _Place:
    """A place in a value, what was cut out there, and the places below it."""

    __slots__ = ("below", "kept", "missing")

    def __init__(self) -> None:
        self.kept: Kept | None = None
        self.below: dict[str, _Place] = {}
        self.missing = _REDACTED_JSON


def _filled(value: Json, place: _Place) -> Json:
    if place.kept is not None:
        if value != {"...": place.kept.digest}:
            raise _misplaced()
        if place.kept.json is None:
            # What was cut out of an erased value has no place any more.
            return _decode(place.missing)
        value = _decode(place.kept.json)
    if not place.below:
        return value
    kind = cast("type[object]", type(value))
    if kind is str:
        return _filled_text(cast("str", value), place)
    if kind is not dict and kind is not list:
        raise _misplaced()
    for step, below in place.below.items():
        at = step if kind is dict else _index(step)
        try:
            value[at] = _filled(value[at], below)
        except LookupError:
            raise _misplaced() from None
    return value


def _index(step: str) -> int:
    if not step.isdecimal():
        raise _misplaced()
    return int(step)


def _filled_text(text: str, place: _Place) -> str:
    out: list[str] = []
    done = met = 0
    parts = jsontext.parts(text)
    if isinstance(parts, str):
        raise _misplaced()
    for part in parts:
        below = place.below.get(part.step)
        if below is not None:
            out += (text[done : part.start], _filled_raw(text[part.start : part.end], below))
            done = part.end
            met += 1
    if met != len(place.below):
        raise _misplaced()
    return "".join((*out, text[done:]))


def _filled_raw(raw: str, place: _Place) -> str:
    if place.kept is not None:
        if raw != _encode({"...": place.kept.digest}).decode():
            raise _misplaced()
        if place.kept.json is None:
            return place.missing
        raw = place.kept.json
    return _filled_text(raw, place) if place.below else raw


def _misplaced() -> ValueError:
    return ValueError("A row commits to a value under a path at which nothing stands for it.")


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1][1:], 16)) if match[1][0] == "x" else match[1]
