"""What a text says under its disguises: full-width and invisible characters, percent-encoding, base64."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import unquote

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}+={0,2}")
_SHORTEST_BASE64 = 16
_UNPACKINGS = 3
# Characters without a look of their own: Default_Ignorable_Code_Point of Unicode 15, and the marks of Arabic
# and Syriac texts that are format characters, too (category Cf).
_NOT_SEEN = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class View:
    """A text without some of its disguises, and where everything in it came from.

    Attributes:
        text: What it says.
    """

    __slots__ = ("_before", "_came", "_starts", "text")

    def __init__(self, pieces: Sequence[tuple[str, int, int]], before: View | None) -> None:
        self.text = "".join(piece for piece, _, _ in pieces)
        # Pieces by their start here; each came from a start and a length there.
        self._starts = [0]
        for piece, _, _ in pieces:
            self._starts.append(self._starts[-1] + len(piece))
        self._came = [(start, length) for _, start, length in pieces]
        self._before = before

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """The first and stop index in the source of what is at `start` to `stop` here."""
        there = self._source(start, stop=False), self._source(stop - 1, stop=True)
        return there if self._before is None else self._before.span(*there)

    def _source(self, index: int, *, stop: bool) -> int:
        piece = bisect_right(self._starts, index, hi=len(self._came)) - 1
        here, length = self._starts[piece], self._starts[piece + 1] - self._starts[piece]
        start, came = self._came[piece]
        if came == length:
            return start + index - here + stop
        # What stands for something longer or shorter stands for all of it.
        return start + came if stop else start


def unveiled(text: str) -> View | None:
    """What a text says without its disguises; None when it wears none."""
    view = _in_other_form(text, _NON_ASCII, _plain_form, None) if _has_other_form(text) else None
    for _ in range(_UNPACKINGS):
        shown = text if view is None else view.text
        unpacked = _in_other_form(shown, _PERCENT, unquote, view) if "%" in shown else None
        if unpacked is None:
            break
        view = unpacked
    return view


def decoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Every part of a text that is base64 of a text: first and stop index, and what it says."""
    for match in _BASE64.finditer(text):
        said = _unpacked(match[0])
        if said is not None:
            yield match.start(), match.end(), said
            continue
        # A slash belongs to the alphabet, and stands between the parts of an address, too.
        at = match.start()
        for part in match[0].split("/") if "/" in match[0] else ():
            said = _unpacked(part) if len(part) >= _SHORTEST_BASE64 else None
            if said is not None:
                yield at, at + len(part), said
            at += len(part) + 1


def _unpacked(packed: str) -> str | None:
    # Base64 of a text has letters of both sizes; a hexadecimal id and a snake_case name have not.
    if packed.islower() or packed.isupper() or packed.isdigit():
        return None
    body = packed.rstrip("=")
    try:
        data = base64.b64decode(body.replace("-", "+").replace("_", "/") + "=" * (-len(body) % 4))
        text = data.decode()
    except (binascii.Error, ValueError):
        return None
    return text if text.isprintable() or all(c.isprintable() or c in "\t\r\n" for c in text) else None


def _has_other_form(text: str) -> bool:
    return not text.isascii() and (
        not unicodedata.is_normalized("NFKC", text) or _NOT_SEEN.search(text) is not None
    )


def _plain_form(text: str) -> str:
    return _NOT_SEEN.sub("", unicodedata.normalize("NFKC", text))


def _in_other_form(
    text: str, pattern: re.Pattern[str], form: Callable[[str], str], before: View | None
) -> View | None:
    """The text with every match in another form; None when none changes."""
    pieces: list[tuple[str, int, int]] = []
    done = 0
    for match in pattern.finditer(text):
        new = form(match[0])
        if new != match[0]:
            pieces.append((text[done : match.start()], done, match.start() - done))
            pieces.append((new, match.start(), len(match[0])))
            done = match.end()
    if not pieces:
        return None
    pieces.append((text[done:], done, len(text) - done))
    return View(pieces, before)
