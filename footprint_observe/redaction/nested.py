"""JSON in a text: all of it, or parts of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from footprint_core.plain import Json

NO_JSON = object()
"""What a text decodes to that is no JSON."""

_OPENS = frozenset("{[ \t\r\n")
_OPENER = re.compile(r'\{\s{0,64}+"|\[\s{0,64}+["{\[]')
_SPENT_AT_LEAST = 10_000
_SPENT_A_LETTER = 64


TANGLED = object()
"""What cannot be told apart: an object with a key that stands twice, of which decoding overlooks a value;
what is too deep; and a text in which more begins than is worth a look."""


def opens_json(text: str) -> bool:
    """Whether a text could be an object or an array."""
    return text[:1] in _OPENS and text.lstrip()[:1] in {"{", "["}


def parsed_json(text: str) -> Json:
    """The decoded text, `NO_JSON` or `TANGLED`."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (_TwiceError, RecursionError):
        return TANGLED
    except ValueError:
        return NO_JSON


def is_clear_json(text: str) -> bool:
    """Whether a text is JSON in which nothing is overlooked."""
    value = parsed_json(text)
    return value is not NO_JSON and value is not TANGLED


def fragments(text: str) -> Iterator[tuple[int, int, Json]]:
    """Every object and array that stands inside a text: first and stop index, and the value.

    The last one is `TANGLED` when what follows cannot be told apart.
    """
    at = spent = 0
    most = _SPENT_AT_LEAST + _SPENT_A_LETTER * len(text)
    while (opener := _OPENER.search(text, at)) is not None:
        start = opener.start()
        try:
            value, stop = _decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            # What was read for nothing, and what the error costs that counts the lines before it.
            spent += 64 + error.pos - start + error.pos // 1024
            value, stop = NO_JSON, start + 1
        except (_TwiceError, RecursionError):
            value, stop = TANGLED, len(text)
        if spent > most:
            value, stop = TANGLED, len(text)
        if value is not NO_JSON:
            yield start, stop, value
        at = stop


def written_json(value: Json) -> str:
    """A value as compact JSON text that can be written."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        # The text had an escaped lone surrogate, which only an escape can hold.
        return json.dumps(value, separators=(",", ":"))
    return text


class _TwiceError(Exception):
    """An object has a key twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _TwiceError
    return out


_decoder = json.JSONDecoder(object_pairs_hook=_once)
