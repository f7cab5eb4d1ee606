"""A window strategy engaged."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from footprint_core.facts.words import Refusal, TokenPressure
from footprint_core.plain import Json


class WindowVisited(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="window.visited"
):
    """A window strategy engaged: what left, and what refused to."""

    values: ClassVar[tuple[str, ...]] = ("notice", "summary")
    iteration: int
    strategy: str
    removed: tuple[int, ...]
    removed_messages: int
    refusals: tuple[Refusal, ...]
    refusals_more: int
    dropped_observations: tuple[str, ...]
    pinned: tuple[str, ...]
    yielded: int
    stand_down: bool
    figures: dict[str, int]
    notice_after: int | None = None
    pressure: TokenPressure | None = None
    notice: Json = msgspec.UNSET
    summary: Json = msgspec.UNSET
