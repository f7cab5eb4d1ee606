"""Sealed values of a fact, opened with their keys."""

from __future__ import annotations

import re
from typing import cast

import msgspec

from footprint_core import plain
from footprint_core.errors import KeyRingError
from footprint_core.facts import Fact
from footprint_core.ledger import masked_fields
from footprint_core.messages import ToolCall
from footprint_core.plain import Json
from footprint_observe.keyring import KeyRing
from footprint_observe.redaction import nested
from footprint_observe.redaction.strategies import SEALED, opened, place_of


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A value that was sealed.

    Attributes:
        path: Where it stands in its row.
        value: What it is; None when it did not open.
        refusal: Why it did not open: the keys do not open it, it was moved or damaged, or it is a text that
            only looks sealed. None when it did.
    """

    path: str
    value: Json
    refusal: str | None = None


def opened_fields(fact: Fact, keys: KeyRing, field: str | None = None) -> tuple[Opened, ...]:
    """Everything sealed in the values of a fact, in its order; what does not open says why.

    Args:
        fact: The fact.
        keys: The keys it was sealed under.
        field: Only this value, and what stands below it; nothing else is opened.
    """
    found: list[Opened] = []
    opening = _Opening(str(fact.__struct_config__.tag), keys, field, found)
    for name in masked_fields(fact):
        opening.value(getattr(fact, name), name)
    return tuple(found)


class _Opening:
    """A walk over the values of a fact, by the paths under which the redactor met them."""

    __slots__ = ("_field", "_found", "_keys", "_kind")

    def __init__(self, kind: str, keys: KeyRing, field: str | None, found: list[Opened]) -> None:
        self._kind = kind
        self._keys = keys
        self._field = field
        self._found = found

    def value(self, value: Json, path: str) -> None:
        if plain.is_object(value):
            for key, item in value.items():
                self._text(key, path)
                self.value(item, f"{path}.{key}")
        elif isinstance(value, list | tuple):
            for at, item in enumerate(cast("list[Json]", value)):
                self.value(item, f"{path}.{at}")
        elif isinstance(value, ToolCall):
            self.value(value.name, f"{path}.name")
            self._text(value.args_json, f"{path}.args")
        elif isinstance(value, str):
            self._text(value, path)

    def _text(self, text: str, path: str) -> None:
        if "sealed:" not in text:
            return
        if nested.opens_json(text) and nested.is_clear_json(text):
            self.value(nested.parsed_json(text), path)
            return
        for start, stop, value in nested.fragments(text):
            if value is nested.TANGLED:
                break
            self.value(value, path)
            text = text[:start] + " " * (stop - start) + text[stop:]
        if self._field is None or path == self._field or path.startswith(f"{self._field}."):
            self._found += (self._opened(sealed[0], path) for sealed in re.finditer(SEALED, text))

    def _opened(self, sealed: str, path: str) -> Opened:
        # One that does not open keeps no other from it: whoever can write a text can write one like it.
        try:
            return Opened(path=path, value=opened(sealed, place_of(self._kind, path), self._keys))
        except KeyRingError as error:
            return Opened(path=path, value=None, refusal=str(error))
