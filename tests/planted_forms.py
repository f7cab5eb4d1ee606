"""Looks for a text in bytes and in files, in every form a program could have written it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, quote_plus

# A form shorter than that stands in any file by chance.
_SHORTEST = 8


@cache
def forms(text: str) -> Mapping[str, bytes]:
    """A text as bytes: raw, encoded, escaped as each format does, digested, and base64 wherever it begins."""
    raw = text.encode()
    every = {
        "raw": raw,
        "lower case": text.lower().encode(),
        "UPPER CASE": text.upper().encode(),
        "backwards": text[::-1].encode(),
        "UTF-16 LE": text.encode("utf-16-le"),
        "UTF-16 BE": text.encode("utf-16-be"),
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "base32": base64.b32encode(raw)[: len(raw) * 8 // 5],
        "percent": quote(text, safe="").encode(),
        "percent in a form": quote_plus(text).encode(),
        "percent, all of it": "".join(f"%{byte:02x}" for byte in raw).encode(),
        "PERCENT, all of it": "".join(f"%{byte:02X}" for byte in raw).encode(),
        "JSON": json.dumps(text)[1:-1].encode(),
        "JSON in Unicode": json.dumps(text, ensure_ascii=False)[1:-1].encode(),
        "JSON in JSON": json.dumps(json.dumps(text))[3:-3].encode(),
        "Python": repr(text)[1:-1].encode(),
        "Python in ASCII": ascii(text)[1:-1].encode(),
        "bytes in Python": repr(raw)[2:-1].encode(),
        "HTML": html.escape(text).encode(),
        "escaped": "".join(f"\\u{ord(one):04x}" for one in text).encode(),
        "ESCAPED": "".join(f"\\u{ord(one):04X}" for one in text).encode(),
        "a metric's name": re.sub(r"\W", "_", text, flags=re.ASCII).encode(),
    }
    for name in ("md5", "sha1", "sha256"):
        digest = hashlib.new(name, raw, usedforsecurity=False).hexdigest()
        every[f"digest by {name}"] = digest[: 2 * _SHORTEST].encode()
    for shift in range(3):
        # Only the characters that the text alone decides.
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        every[f"base64, shifted by {shift}"] = base64.b64encode(bytes(shift) + raw)[first:last]
        every[f"base64url, shifted by {shift}"] = base64.urlsafe_b64encode(bytes(shift) + raw)[first:last]
    # Of a text without letters that names may hold, nothing would be left.
    if not every["a metric's name"].strip(b"_"):
        del every["a metric's name"]
    assert all(len(form) >= _SHORTEST for form in every.values())
    # Many forms of a plain word are the word.
    first_of = {form: how for how, form in reversed(every.items())}
    return MappingProxyType({how: form for how, form in every.items() if first_of[form] == how})


@cache
def pieces(text: str) -> Mapping[str, bytes]:
    """The pieces of a text that was split: half of it from anywhere, but no more than eight characters."""
    size = min(_SHORTEST, len(text) // 2)
    starts = range(len(text) - size + 1)
    return MappingProxyType({f"a piece, from {at} on": text[at : at + size].encode() for at in starts})


def found(held: Mapping[str, bytes], wanted: Mapping[str, bytes]) -> list[str]:
    """Where which of the forms stand."""
    return [f"{name}: {how}" for name, data in held.items() for how, form in wanted.items() if form in data]


def found_in(folder: Path, text: str, *, process: int | None = None) -> list[str]:
    """Where a text is in the files of a folder, and in those that a process has open and were removed."""
    contents = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    assert contents
    return found(contents | ({} if process is None else dict(_nameless(process))), forms(text))


def _nameless(process: int) -> Iterator[tuple[str, bytes]]:
    """The files a process has open that were removed, as temporary files are at once."""
    for link in Path(f"/proc/{process}/fd").iterdir():
        target = os.readlink(link)  # noqa: PTH115 - of a file that is gone
        if target.endswith(" (deleted)") and link.is_file():
            yield target, link.read_bytes()
