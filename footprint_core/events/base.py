"""What every event carries, and the words events share."""

from __future__ import annotations

from typing import Literal, NoReturn, TypeAlias, TypeVar

import msgspec

_K = TypeVar("_K")
_V = TypeVar("_V")

Slot: TypeAlias = Literal["system-prompt", "messages", "tools"]
"""A part of what the model is shown."""


class FrozenDict(dict[_K, _V]):
    """A dict that cannot be changed: every watcher is handed the same event."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("An event cannot be changed; copy the dict first.")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]


class EventBase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where an event comes from and when its fact was noted, microseconds since the Unix epoch, UTC.

    What does not apply is None, and absent where the event is written out.
    """

    run_id: str
    segment: int
    sequence: int
    time: int
