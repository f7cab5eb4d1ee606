"""Patterns that take time in proportion to the text, whoever wrote them: RE2, loaded on first use.

RE2 has no look-around and no backreferences, which is why nothing in it can run away. It is written in C++
and has no types of its own, so all that is used of it stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from footprint_core.errors import BuilderError

SECRET = "secret"  # noqa: S105 - the name of a group
"""The group of a pattern that is replaced where there is one; without it the whole match is."""

_MEMORY = 64 << 20
# Bytes RE2 may take for one pattern: what is larger would take seconds to build, and every search as much.
_MEMORY_OF_ONE = 16 << 20
LARGEST = 400_000
"""Instructions of all patterns of a policy together, as RE2 counts them; \\pL alone is some 700."""


class Pattern:
    """One pattern.

    Args:
        text: The pattern, in RE2's syntax.
        what: What it belongs to, for the refusal.

    Raises:
        BuilderError: It is none RE2 takes, it is too large, or it matches the empty text.
    """

    __slots__ = ("_compiled", "_group")

    def __init__(self, text: str, what: str) -> None:
        self._compiled = _compiled(text, what)
        self._group: int = self._compiled.groupindex.get(SECRET, 0)
        if self._compiled.search("") is not None:
            raise BuilderError(
                f"The pattern of {what} matches the empty text; let it match at least a letter."
            )

    @property
    def size(self) -> int:
        """Its instructions."""
        return int(self._compiled._regexp.ProgramSize())  # noqa: SLF001 - the binding has no other door

    def found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Where it matches: first and stop index, and what stands there."""
        # Bytes spare the library the search for the place of every character.
        searched = text.encode() if text.isascii() else _encodable(text)
        for match in self._compiled.finditer(searched):
            start, stop = match.span(self._group)
            if start < stop:
                yield start, stop, text[start:stop]


class PatternSet:
    """Several patterns, looked for at once.

    Args:
        texts: The patterns, in RE2's syntax, each known to be one.

    Raises:
        BuilderError: They are too large together.
    """

    __slots__ = ("_match",)

    def __init__(self, texts: Sequence[str]) -> None:
        self._match: Callable[[bytes], list[int] | None] | None = None
        if texts:
            re2 = _re2()
            together = re2.Set.SearchSet(_options(re2, _MEMORY))
            for text in texts:
                together.Add(text)
            try:
                together.Compile()
            except re2.error:
                together = None
            if together is None:
                raise too_large()
            self._match = together.Match

    def hits(self, data: bytes) -> Sequence[int]:
        """Which of them match somewhere, by their place."""
        return (self._match(data) or ()) if self._match is not None else ()


def too_large() -> BuilderError:
    """The refusal of patterns that are too large together."""
    return BuilderError(
        "The paths, keys and detectors of this redaction policy are too large to be looked for together; "
        "take fewer, or detectors that repeat less, above all of \\pL and its like."
    )


def escaped(text: str) -> str:
    """A pattern that matches a text and nothing else."""
    return str(_re2().escape(text))


@lru_cache(maxsize=256)
def _compiled(text: str, what: str) -> Any:
    re2 = _re2()
    failure = "it is no text that can be written"
    try:
        text.encode()
        return re2.compile(text, _options(re2, _MEMORY_OF_ONE))
    except UnicodeEncodeError:
        pass
    except re2.error as error:
        said = error.args[0] if error.args else b""
        failure = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    if "too large" in failure:
        raise BuilderError(
            f"The pattern of {what} is too large; let it repeat less, above all of \\pL and its like."
        )
    raise BuilderError(
        f"The pattern of {what} is none RE2 takes ({failure}); it has no look-around, no backreferences and "
        "no possessive repeats, so write it without."
    )


def _encodable(text: str) -> str:
    """A text of the same length that can be written; a lone half of a character matches nothing."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("?" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def _options(re2: Any, memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    return options


def _re2() -> Any:
    return import_module("re2")
