"""Paths with the rank of their rule, met step by step; the lowest rank wins where several match."""

from __future__ import annotations

from typing import TypeAlias

from footprint_observe.redaction.paths import MATCHED, Path, behind

Ranked: TypeAlias = tuple[tuple[int, Path], ...]
"""What is still to be met of some paths, each with its rank."""

NEVER = 1 << 30
"""The rank of no rule."""


def deeper(left: Ranked, key: str) -> Ranked:
    """What is left behind a key."""
    found: list[tuple[int, Path]] = []
    for one in left:
        rank, path = one
        if path and path[0] == "**" and len(path) > 1 and path[1] not in {"*", key}:
            # The usual one, `**.ssn`: nothing of it is met yet.
            found.append(one)
        elif path:
            found += ((rank, rest) for rest in behind((path,), key))
    return tuple(dict.fromkeys(found))


def within(left: Ranked, index: int) -> Ranked:
    """What is left at an item of an array, which a path may leave out."""
    return tuple(dict.fromkeys((*left, *deeper(left, str(index))))) if left else left


def matched(left: Ranked) -> int:
    """The lowest rank of the paths of which nothing is left; `NEVER` when something is left of all."""
    # Most policies name no place, and this is asked of every value.
    return min((rank for rank, path in left if path == MATCHED), default=NEVER) if left else NEVER
