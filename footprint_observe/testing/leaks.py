"""Looks for a word in bytes, in the forms a program could have written it."""

from __future__ import annotations

import base64


def leaks(data: bytes, word: str) -> tuple[str, ...]:
    """The forms in which a word stands in bytes, whatever its case; none when it does not.

    Args:
        data: Where it is looked for.
        word: Eight or more ASCII letters in lower case.
    """
    folded = data.lower()
    raw = word.encode()
    found = [how for how, form in _folded_forms(word).items() if form in folded]
    for shift in range(3):
        # Only the characters that the word alone decides, wherever it begins in what was encoded.
        first, last = -(-shift * 8 // 6), (shift + len(raw)) * 8 // 6
        if base64.b64encode(bytes(shift) + raw)[first:last] in data:
            found.append("base64")
    return tuple(dict.fromkeys(found))


def _folded_forms(word: str) -> dict[str, bytes]:
    raw = word.encode()
    return {
        "as it is": raw,
        "backwards": raw[::-1],
        "UTF-16": word.encode("utf-16-le"),
        "hexadecimal": raw.hex().encode(),
        "percent-encoded": "".join(f"%{byte:02x}" for byte in raw).encode(),
        "escaped": "".join(f"\\u{byte:04x}" for byte in raw).encode(),
    }
