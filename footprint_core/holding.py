"""Who still needs a ledger or a recorder: the last agent to leave closes it."""

from __future__ import annotations

import threading

_lock = threading.Lock()
_held: dict[int, tuple[object, int]] = {}


def hold(thing: object) -> None:
    """One more agent needs `thing`."""
    with _lock:
        _held[id(thing)] = (thing, _held.get(id(thing), (thing, 0))[1] + 1)


def release(thing: object) -> bool:
    """One agent less needs `thing`; whether it was the last."""
    with _lock:
        count = _held.get(id(thing), (thing, 1))[1] - 1
        if count > 0:
            _held[id(thing)] = (thing, count)
            return False
        _held.pop(id(thing), None)
        return True
