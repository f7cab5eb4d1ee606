"""The cutting: what is erasable in a fact's values is taken out of them before they are written.

What a cut value leaves behind, and how it is put back, is in `disclosures`. Most values hold nothing that is
erasable; one look at their JSON tells, which costs a tenth of the walk.
"""

from __future__ import annotations

import json as json_module
import os
import re
from functools import lru_cache
from typing import cast

import msgspec

from footprint_core.facts import Fact
from footprint_core.ledger import masked_fields
from footprint_core.messages import ToolCall
from footprint_core.plain import Json
from footprint_observe.redaction.paths import MATCHED, Left, behind
from footprint_observe.store import jsontext
from footprint_observe.store.codec import ValueField
from footprint_observe.store.disclosures import Steps
from footprint_observe.store.hashing import SALT_BYTES, disclosure_digest

_UNCLEAR = object()
_AWKWARD = re.compile(r"[\\.\x00-\x1f]")
# What JSON may write in another way than as it is, an escape with a code apart.
_ESCAPABLE = re.compile(r'["\\/\x00-\x1f]')

_encode = msgspec.json.Encoder().encode


class Cut(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A value that was cut out.

    Attributes:
        path: Where it was, the name of its field first.
        json: The value.
        salt: 16 random bytes.
        digest: What stands in its place.
    """

    path: str
    json: str
    salt: bytes
    digest: str


class _Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is erasable in one field.

    Attributes:
        left: What is left of the paths behind the field's name.
        args: The same behind `args`, for the calls of a reply; nothing for other fields.
        keys: For each path, keys that stand in any JSON it meets something in.
    """

    left: Left
    args: Left
    keys: tuple[tuple[bytes, ...], ...]

    def may_meet(self, json: bytes) -> bool:
        """Whether a path can meet something in a value, by a look at its JSON."""
        # A key in a JSON text within may be written with codes.
        return any(all(key in json for key in keys) for keys in self.keys) or b"\\\\u" in json


@lru_cache(maxsize=1024)
def _wanted(erasable: Left, name: str) -> _Wanted | None:
    left = _rest(behind(erasable, name))
    args = behind(erasable, "args") if name == "calls" else ()
    if not left and not args:
        return None
    keys = tuple(tuple(step.encode() for step in path if _is_written(step)) for path in (*left, *args))
    return _Wanted(left=left, args=args, keys=keys)


def _is_written(step: str) -> bool:
    """Whether a step is a key that stands as it is wherever it is met."""
    # An index is written nowhere, and `args` of a call is another name in what is kept.
    return step not in {"*", "**", "args"} and not step.isdecimal() and not _ESCAPABLE.search(step)


def cut_out(
    fact: Fact, values: list[tuple[ValueField, bytes]], erasable: Left
) -> tuple[list[tuple[ValueField, bytes]], list[Cut]]:
    """A fact's values as JSON with placeholders for what is erasable in them, and what was cut out.

    Args:
        fact: The fact.
        values: Its values as JSON.
        erasable: The paths.
    """
    cutting = _Cutting()
    names = masked_fields(fact)
    return [
        (field, cutting.field(field.name, getattr(fact, field.name), json, wanted))
        if field.name in names
        and (wanted := _wanted(erasable, field.name)) is not None
        and wanted.may_meet(json)
        else (field, json)
        for field, json in values
    ], cutting.cuts


def _escaped(step: str) -> str:
    return _AWKWARD.sub(_escape, step) if _AWKWARD.search(step) else step


def _escape(match: re.Match[str]) -> str:
    return f"\\{match[0]}" if match[0] in "\\." else f"\\x{ord(match[0]):02x}"


def _rest(left: Left) -> Left:
    return tuple(path for path in left if path != MATCHED) if MATCHED in left else left


def _within(left: Left, index: int) -> Left:
    """What is left at an item of an array, which a path may leave out, but one that ends at the item."""
    found: list[Steps] = []
    for path in left:
        met = behind((path,), str(index))
        found += met if MATCHED in met else (path, *met)
    return tuple(dict.fromkeys(found))


class _Cutting:
    """One walk over the values of a fact, inner values first, and what it cut out."""

    __slots__ = ("cuts",)

    def __init__(self) -> None:
        self.cuts: list[Cut] = []

    def field(self, name: str, value: Json, json: bytes, wanted: _Wanted) -> bytes:
        """The JSON of a field without what is erasable in it; the same when nothing is."""
        if name == "calls" and type(value) is tuple:
            kept: Json = self.calls(cast("tuple[object, ...]", value), wanted)
        else:
            kept = self.value(value, wanted.left, name)
        # A field is a row of its own, so that all of a text in which places cannot be told can go already.
        return json if kept is value or kept is _UNCLEAR else _encode(kept)

    def calls(self, calls: tuple[object, ...], wanted: _Wanted) -> Json:
        """The calls of a reply; of a call, only its arguments are cut."""
        kept = tuple(
            self._call(call, _within(wanted.left, at), wanted.args, at)
            if isinstance(call, ToolCall)
            else call
            for at, call in enumerate(calls)
        )
        return calls if all(new is old for new, old in zip(kept, calls, strict=True)) else kept

    def _call(self, call: ToolCall, below: Left, args: Left, at: int) -> ToolCall:
        left = (*behind(_rest(below), "args"), *args, *((MATCHED,) if MATCHED in below else ()))
        if not left:
            return call
        text, path = call.args_json, f"calls.{at}.args"
        parts = jsontext.parts(text)
        kept: Json = text if isinstance(parts, str) else self._json(text, parts, _rest(left), path)
        if MATCHED in left or isinstance(parts, str):
            kept = self._cut(path, "args", _encode(kept).decode())
        return call if kept is text else msgspec.structs.replace(call, args_json=kept)

    def value(self, value: Json, left: Left, path: str) -> Json:
        """The value; `_UNCLEAR` for a text in which the places cannot be told."""
        kind = cast("type[object]", type(value))
        if kind is dict:
            return self._dict(cast("dict[str, Json]", value), left, path)
        if kind is list or kind is tuple:
            return self._sequence(cast("list[Json] | tuple[Json, ...]", value), left, path)
        if kind is str and jsontext.opens(value):
            parts = jsontext.parts(value)
            if parts == "unclear":
                return _UNCLEAR
            return value if isinstance(parts, str) else self._json(value, parts, left, path)
        return value

    def _dict(self, value: dict[str, Json], left: Left, path: str) -> Json:
        out = {
            key: self._part(item, below, f"{path}.{_escaped(key)}", key)
            if (below := behind(left, key))
            else item
            for key, item in value.items()
        }
        return value if all(out[key] is item for key, item in value.items()) else out

    def _sequence(self, value: list[Json] | tuple[Json, ...], left: Left, path: str) -> Json:
        out = [self._part(item, _within(left, at), f"{path}.{at}", None) for at, item in enumerate(value)]
        return value if all(new is old for new, old in zip(out, value, strict=True)) else out

    def _part(self, item: Json, below: Left, path: str, key: str | None) -> Json:
        rest = _rest(below)
        kept = self.value(item, rest, path) if rest else item
        if kept is _UNCLEAR:
            return self._cut(path, key, _encode(item).decode())
        return self._cut(path, key, _encode(kept).decode()) if MATCHED in below else kept

    def _json(self, text: str, parts: list[jsontext.Part], left: Left, path: str) -> str:
        """A JSON text without what is erasable in it, every other byte as it was."""
        out: list[str] = []
        done = 0
        for part in parts:
            below = _within(left, int(part.step)) if part.key is None else behind(left, part.key)
            raw = text[part.start : part.end]
            kept = self._raw(raw, below, f"{path}.{_escaped(part.step)}", part.key) if below else raw
            if kept is not raw:
                out += (text[done : part.start], kept)
                done = part.end
        return "".join((*out, text[done:])) if out else text

    def _raw(self, raw: str, below: Left, path: str, key: str | None) -> str:
        rest, matched = _rest(below), MATCHED in below
        kept, before = raw, len(self.cuts)
        try:
            if rest and raw[0] == '"':
                # Written anew, the text within would not come back as it was.
                matched = matched or _holds(json_module.loads(raw), rest)
            elif rest and raw[0] in "{[":
                parts = jsontext.parts(raw)
                matched = matched or isinstance(parts, str)
                kept = raw if isinstance(parts, str) else self._json(raw, parts, rest, path)
        except RecursionError:
            matched = True
            del self.cuts[before:]
        return _encode(self._cut(path, key, kept)).decode() if matched else kept

    def _cut(self, path: str, key: str | None, json: str) -> dict[str, str]:
        salt = os.urandom(SALT_BYTES)
        digest = disclosure_digest(salt, key, json)
        self.cuts.append(Cut(path=path, json=json, salt=salt, digest=digest))
        return {"...": digest}


def _holds(text: str, left: Left) -> bool:
    """Whether something in a text is erasable, or could be."""
    parts = jsontext.parts(text)
    if isinstance(parts, str):
        return parts == "unclear"
    cutting = _Cutting()
    cutting.value(text, left, "")
    return bool(cutting.cuts)
