"""A window strategy engaged."""

from __future__ import annotations

from hashlib import blake2b
from typing import ClassVar, TypeAlias

import msgspec

from footprint_core.facts.words import Refusal, TokenPressure
from footprint_core.plain import Json

Figure: TypeAlias = bool | int | dict[str, int]
"""One of a strategy's own numbers: a count, a truth, or counts by name."""


class WindowVisited(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="window.visited"
):
    """A window strategy engaged: what left, and what refused to. Indices are those before the removal.

    Attributes:
        iteration: The model call that was about to be made.
        strategy: The strategy's name.
        removed: The messages that left, by index.
        removed_messages: How many they are.
        refusals: Turns that could not leave, the first 32.
        refusals_more: How many more there were.
        dropped_observations: The tools whose results left, in order of first appearance.
        pinned: The tools whose latest result was held outside the recent turns, newest first.
        yielded: Turns with a tool's latest result that were not held, since the limit was reached.
        stand_down: Whether nothing was pinned, since pins alone kept the two visits before from removing.
        figures: The strategy's own numbers.
        notice_after: The removed message in whose place the notice or the summary stands, by index.
        pressure: How far the window was over a token threshold, or None.
        same_as: The iteration of an earlier visit of the run that differed in nothing else; its refusals
            are those of this one, and are not repeated. None when this entry says all itself.
        refused_span: First and stop index of the messages whose summary was not smaller than they are.
        error_class: The class of what a summarizer raised, or None.
        notice: What the model reads in place of what left.
        summary: What it reads instead, where a summarizer folded the messages.
    """

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
    figures: dict[str, Figure]
    notice_after: int | None = None
    pressure: TokenPressure | None = None
    same_as: int | None = None
    refused_span: tuple[int, int] | None = None
    error_class: str | None = None
    notice: Json = msgspec.UNSET
    summary: Json = msgspec.UNSET


def likeness(visit: WindowVisited) -> str:
    """What visits share that differ in nothing but their iteration; 32 hex characters."""
    # Without what it says: a checkpoint carries this, and no digest over a value may be written unsalted.
    alike = msgspec.structs.replace(
        visit, iteration=0, same_as=None, notice=msgspec.UNSET, summary=msgspec.UNSET
    )
    return blake2b(msgspec.json.encode(alike), digest_size=16).hexdigest()
