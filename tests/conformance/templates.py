"""Texts with `{{path}}` in them."""

from __future__ import annotations

import re
from typing import overload

from conformance.values import MISSING, Context, Json, at, canonical

_PLACE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


@overload
def fill(text: str, context: Context) -> str: ...
@overload
def fill(text: Json, context: Context) -> Json: ...
def fill(text: Json, context: Context) -> Json:
    """The text with every place filled in; what is no text stays as it is."""
    if not isinstance(text, str):
        return text

    def written(place: re.Match[str]) -> str:
        found = at(context, place[1])
        if found is MISSING:
            return ""
        return found if isinstance(found, str) else canonical(found)

    return _PLACE.sub(written, text)
