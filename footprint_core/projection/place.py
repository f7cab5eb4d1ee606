"""Where an event comes from, and what of a name it may show."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from footprint_core.events import Event
from footprint_core.messages import TOOL_NAME

At: TypeAlias = tuple[str, int, int, int]
"""Where an event comes from: run id, segment, position, and time in microseconds."""

Kinds: TypeAlias = frozenset[type[Event]]
"""Classes of events."""

NONE: Kinds = frozenset()


@lru_cache(maxsize=1024)
def shown(name: str) -> str:
    """A tool's name as an event may show it: a model can choose it, and hide content in it."""
    return name if TOOL_NAME.fullmatch(name) else "(invalid)"


def seconds(microseconds: int | None) -> float | None:
    """Microseconds as seconds; None stays None."""
    return None if microseconds is None else microseconds / 1_000_000
