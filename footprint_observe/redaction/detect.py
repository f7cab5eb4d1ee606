"""Detectors: what something looks like inside a text, whatever key it stands under."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import msgspec

from footprint_core.errors import BuilderError
from footprint_observe.redaction.linear import Pattern


class Detector(msgspec.Struct, frozen=True, kw_only=True):
    r"""One thing that can be recognised.

    Attributes:
        name: What it recognises, for example `order-number`.
        pattern: What it looks like, in RE2's syntax: no look-around, no backreferences, `(?i)` for any case.
            A group `(?P<secret>...)` is what is replaced, without one the whole match is.
        check: Whether a match is one indeed, by what would be replaced; a checksum for example.
    """

    name: str
    pattern: str
    check: Callable[[str], bool] | None = None

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it is recognised: first and stop index, in order and without overlaps."""
        check = self.check
        for start, stop, what in compiled(self).found(text):
            if check is None or check(what):
                yield start, stop


def checked(detector: object) -> Detector:
    """A detector that can be used.

    Raises:
        BuilderError: It is none, or its pattern is none.
    """
    if not isinstance(detector, Detector):
        raise BuilderError(
            f"A policy takes detectors, not {type(detector).__name__}; make each with Detector(name=..., "
            "pattern=...)."
        )
    if not _is_text(detector.name):
        raise BuilderError("A detector has no name; say what it recognises.")
    if not _is_text(detector.pattern):
        raise BuilderError(
            f"The pattern of the detector {detector.name!r} is no text; write it as text in RE2's syntax."
        )
    if detector.check is not None and not callable(detector.check):
        raise BuilderError(f"The check of the detector {detector.name!r} cannot be called; give a function.")
    compiled(detector)
    return detector


def compiled(detector: Detector) -> Pattern:
    """The pattern of a detector.

    Raises:
        BuilderError: It is none RE2 takes.
    """
    return _pattern(detector.pattern, detector.name)


def _is_text(given: object) -> bool:
    return isinstance(given, str) and bool(given.strip())


@lru_cache(maxsize=256)
def _pattern(text: str, name: str) -> Pattern:
    return Pattern(text, f"the detector {name!r}")
