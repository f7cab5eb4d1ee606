"""What rules find inside one text, under its disguises too, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise

import msgspec

from footprint_observe.redaction.assignments import assignments
from footprint_observe.redaction.compiled import NAMED, PACKED, VEILED, Compiled, Hits
from footprint_observe.redaction.views import View, decoded, unveiled

_UNPACKINGS = 3


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A part of a text that a rule is about.

    Attributes:
        start: Its first index.
        stop: The index behind it.
        rank: The rule.
        named: Whether it is the value of a key and no match of a detector.
        instead: What takes its place, where that is known already.
    """

    start: int
    stop: int
    rank: int
    named: bool = False
    instead: str | None = None


def spans(text: str, hits: Hits, policy: Compiled, limit: int, depth: int = 0) -> list[Span]:
    """Everything rules of a rank below `limit` are about in a text; they may overlap.

    Args:
        text: The text.
        hits: What a look found in it, or in more than it.
        policy: The policy.
        limit: The first rank that does not apply.
        depth: How often it was unpacked.
    """
    found = list(_seen(text, hits, policy, limit, None))
    view = unveiled(text) if VEILED in hits else None
    if view is not None:
        hits = policy.look_at(view.text)
        found += _seen(view.text, hits, policy, limit, view)
    if PACKED not in hits or depth == _UNPACKINGS:
        return found
    for start, stop, said in decoded(text if view is None else view.text):
        inner = [
            span
            for span in spans(said, policy.look_at(said), policy, limit, depth + 1)
            if policy.strategies[span.rank] != "keep"
        ]
        if inner:
            first = min(inner, key=_order)
            there = (start, stop) if view is None else view.span(start, stop)
            found.append(Span(start=there[0], stop=there[1], rank=first.rank, named=first.named))
    return found


def apart(found: list[Span]) -> list[Span]:
    """Spans in their order in the text, without overlaps: where several are, the first rule has it."""
    found.sort(key=lambda span: span.start)
    if all(one.stop <= other.start for one, other in pairwise(found)):
        return found
    start, stop = found[0].start, max(span.stop for span in found)
    owners: list[Span | None] = [None] * (stop - start)
    for span in sorted(found, key=_order, reverse=True):
        owners[span.start - start : span.stop - start] = [span] * (span.stop - span.start)
    kept: list[Span] = []
    at = start
    for _, part in groupby(owners, key=id):
        same = list(part)
        if (owner := same[0]) is not None:
            kept.append(msgspec.structs.replace(owner, start=at, stop=at + len(same)))
        at += len(same)
    return kept


def _seen(text: str, hits: Hits, policy: Compiled, limit: int, view: View | None) -> Iterator[Span]:
    if NAMED in hits:
        for start, stop, rank in assignments(text, policy.rank_of, policy.spares):
            if rank < limit:
                there = (start, stop) if view is None else view.span(start, stop)
                yield Span(start=there[0], stop=there[1], rank=rank, named=True)
    for rank, detector in policy.detectors:
        if rank in hits and rank < limit:
            for start, stop in detector.found(text):
                there = (start, stop) if view is None else view.span(start, stop)
                yield Span(start=there[0], stop=there[1], rank=rank)


def _order(span: Span) -> tuple[bool, bool, int, int]:
    return span.instead is None, not span.named, span.rank, span.start
