"""Looks for a text in files, in every form a program could have written it."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

# A form shorter than that stands in any file by chance.
_SHORTEST = 8


def forms(text: str) -> dict[str, bytes]:
    """A text as bytes: raw, UTF-16, hexadecimal, percent-encoded, escaped, and base64 wherever it begins."""
    raw = text.encode()
    found = {
        "raw": raw,
        "UTF-16 LE": text.encode("utf-16-le"),
        "UTF-16 BE": text.encode("utf-16-be"),
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "percent, all of it": "".join(f"%{byte:02x}" for byte in raw).encode(),
        "PERCENT, all of it": "".join(f"%{byte:02X}" for byte in raw).encode(),
        "escaped": "".join(f"\\u{ord(one):04x}" for one in text).encode(),
        "ESCAPED": "".join(f"\\u{ord(one):04X}" for one in text).encode(),
    }
    for shift in range(3):
        # Only the characters that the text alone decides.
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        found[f"base64, shifted by {shift}"] = base64.b64encode(bytes(shift) + raw)[first:last]
        found[f"base64url, shifted by {shift}"] = base64.urlsafe_b64encode(bytes(shift) + raw)[first:last]
    assert all(len(form) >= _SHORTEST for form in found.values())
    return found


def found_in(folder: Path, text: str, *, process: int | None = None) -> list[str]:
    """Where a text is in the files of a folder, and in those that a process has open and were removed."""
    wanted = forms(text)
    contents = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    assert contents
    contents |= {} if process is None else dict(_nameless(process))
    return [
        f"{name}: {how}" for name, held in contents.items() for how, form in wanted.items() if form in held
    ]


def _nameless(process: int) -> Iterator[tuple[str, bytes]]:
    """The files a process has open that were removed, as temporary files are at once."""
    for link in Path(f"/proc/{process}/fd").iterdir():
        target = os.readlink(link)  # noqa: PTH115 - of a file that is gone
        if target.endswith(" (deleted)") and link.is_file():
            yield target, link.read_bytes()
