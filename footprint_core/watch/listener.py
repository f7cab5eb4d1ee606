"""Whoever is told of events, a watcher or a subscriber: what is called, and how it does."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, cast

import msgspec

from footprint_core.errors import BuilderError
from footprint_core.events import EVENTS, Event
from footprint_core.watch.ports import Correlating, Enclosing, Watcher

_log = logging.getLogger("footprint")
_SLOW_SECONDS = 0.05
_RUNS = 4096
_CLASSES: frozenset[type[Event]] = frozenset(EVENTS.values())
_FIGURES = ("dropped", "queued", "errors")
_NONE = object()
_RUN_LATER = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)

Tell: TypeAlias = Callable[[Event], object]
"""What is called with an event; nobody reads what it returns."""


class WatcherHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How a watcher or a subscriber does.

    Attributes:
        watcher: The watcher's id; of a subscriber, its function and what it subscribed to.
        failures: How often it raised.
        slowest: Its slowest call in seconds.
        slow: Whether that was slow enough to slow a run.
        dropped: How many items the watcher lost; this and the others are 0 when it does not say.
        queued: How many items wait in it.
        errors: How often it failed to ship some.
        notices: What the watcher says about itself.
    """

    watcher: str
    failures: int
    slowest: float
    slow: bool
    dropped: int = 0
    queued: int = 0
    errors: int = 0
    notices: tuple[str, ...] = ()


class Runs:
    """Runs in which something happened once. The oldest is forgotten, so that a server does not grow."""

    __slots__ = ("_lock", "_runs")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, None] = {}

    def first(self, run_id: str) -> bool:
        """Whether it had not happened in that run yet; now it has."""
        # Turns of one agent may run in several threads.
        with self._lock:
            if run_id in self._runs:
                return False
            self._runs[run_id] = None
            if len(self._runs) > _RUNS:
                del self._runs[next(iter(self._runs))]
            return True


class Listener:
    """One attachment of a watcher, or one subscription of a function.

    Attributes:
        name: What reports and health call it; of a watcher, its id when it was attached.
        tell: What is called with an event.
        watcher: The watcher, or None for a subscriber.
        correlating: The watcher, if it gives ids.
        enclosing: The watcher, if it is entered around what runs.
        attached: Whether it is to be told anything. Once False, it stays so.
        ignores: The events it is not told of.
        failures: How often it raised.
        slowest: Its slowest call in seconds.
        reported: The runs in which watchers were told that it raised.
    """

    __slots__ = (
        "_lock",
        "_logged",
        "attached",
        "correlating",
        "enclosing",
        "failures",
        "ignores",
        "name",
        "reported",
        "slowest",
        "tell",
        "watcher",
    )

    def __init__(self, name: str, tell: Tell, watcher: object = None) -> None:
        self.name = name
        self.tell = tell
        self.watcher = watcher
        self.correlating = watcher if isinstance(watcher, Correlating) else None
        self.enclosing = watcher if isinstance(watcher, Enclosing) else None
        self.ignores = _ignored_by(watcher)
        self.attached = True
        self.failures = 0
        self.slowest = 0.0
        self.reported = Runs()
        self._logged = Runs()
        self._lock = threading.Lock()

    def failed(self, error: BaseException, where: str, run_id: str) -> int:
        """Count a failure, and log it if it is the first in its run; how many there are now."""
        # A tool's thread may count at the same time.
        with self._lock:
            self.failures += 1
            count = self.failures
        if self._logged.first(run_id):
            kind = "subscriber" if self.watcher is None else "watcher"
            _log.warning("The %s %s raised %s in %s.", kind, self.name, type(error).__name__, where)
        return count

    def health(self) -> WatcherHealth:
        """How it does. What cannot be read of a watcher fails nothing, and a notice says so."""
        unread: list[str] = []
        dropped, queued, errors = (_figure(self.watcher, name, unread) for name in _FIGURES)
        return WatcherHealth(
            watcher=self.name,
            failures=self.failures,
            slowest=self.slowest,
            slow=self.slowest > _SLOW_SECONDS,
            dropped=dropped,
            queued=queued,
            errors=errors,
            notices=(*_notices(self.watcher, unread), *dict.fromkeys(unread)),
        )


def _figure(watcher: object, name: str, unread: list[str]) -> int:
    said = _said(watcher, name, unread)
    # Anything else is a name a watcher happens to use otherwise: a list of errors, say.
    return said if type(said) is int else 0


def _notices(watcher: object, unread: list[str]) -> tuple[str, ...]:
    said = _said(watcher, "notices", unread)
    if not isinstance(said, tuple | list):
        return ()
    return tuple(one for one in cast("Sequence[object]", said) if isinstance(one, str))


def _said(watcher: object, name: str, unread: list[str]) -> object:
    """What a watcher says of itself under a name; None when it says nothing, or cannot be read."""
    try:
        return getattr(watcher, name)
    except Exception as error:  # noqa: BLE001 - a property of a watcher may raise anything
        # Most watchers have no such thing; one that has it failed inside of it, by whatever error.
        if not isinstance(error, AttributeError) or inspect.getattr_static(watcher, name, _NONE) is not _NONE:
            unread.append(f"What this watcher says of itself could not be read: {type(error).__name__}.")
        return None


def _ignored_by(watcher: object) -> frozenset[type[Event]]:
    ignored: object = getattr(watcher, "ignores", None)
    # Anything else is a name a watcher happens to use otherwise, and it is told of everything.
    if not isinstance(ignored, set | frozenset):
        return frozenset()
    classes = frozenset(cast("frozenset[type[Event]]", ignored))
    return classes if classes <= _CLASSES else frozenset()


def watching(watcher: Watcher) -> Listener:
    """The attachment of a watcher.

    Raises:
        BuilderError: It has no id, or no `on_event` that could be called.
    """
    name: object = getattr(watcher, "id", None)
    if not isinstance(name, str) or not name.strip():
        raise BuilderError(f"A watcher ({type(watcher).__name__}) has no id; give it a non-blank `id`.")
    hook: object = getattr(watcher, "on_event", None)
    if not callable(hook) or isinstance(watcher, type):
        raise BuilderError(
            f"The watcher {name!r} has no on_event(event) to call; pass an object, and give it one."
        )
    if runs_nothing(hook):
        raise BuilderError(
            f"The watcher {name!r} has an async on_event, which nobody would await; make it plain."
        )
    return Listener(name, cast("Tell", hook), watcher)


def runs_nothing(function: object) -> bool:
    """Whether a call of `function` only makes a coroutine or a generator, which nobody would run."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return any(kind(one) for one in (function, type(function).__call__) for kind in _RUN_LATER)
