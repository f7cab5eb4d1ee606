"""Who asked to be called for which events, and the handle that ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Self, cast

from footprint_core.errors import BuilderError
from footprint_core.events import EVENTS
from footprint_core.watch.listener import Listener, Tell, runs_nothing

_NAMES: dict[object, str] = {kind: name for name, kind in EVENTS.items()}
_DOMAINS = {name: f"{name.partition('.')[0]}.*" for name in EVENTS}
_PATTERNS = frozenset({"*", *EVENTS, *_DOMAINS.values()})


class Subscription:
    """The caller's handle on a watcher that was attached, or a function that subscribed.

    Calling it, or leaving its `with` block, ends that: nothing is delivered any more from this moment on,
    also in the middle of a run or of the delivery of an event. Calling it again is harmless. Dropping it
    ends nothing.
    """

    __slots__ = ("_end",)

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def __call__(self) -> None:
        """End it."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()


class Subscribers:
    """The functions that subscribed, under what they subscribed to, in order of registration.

    Attributes:
        under: The subscribers of an event's name, of `<domain>.*` and of `*`; no pattern without any.
    """

    __slots__ = ("under",)

    def __init__(self) -> None:
        self.under: dict[str, tuple[Listener, ...]] = {}

    def add(self, pattern: str, listener: Listener) -> None:
        """Put one behind the others of its pattern."""
        self.under[pattern] = (*self.under.get(pattern, ()), listener)

    def sweep(self, pattern: str) -> None:
        """Drop those of a pattern that are detached."""
        left = tuple(one for one in self.under.get(pattern, ()) if one.attached)
        if left:
            self.under[pattern] = left
        else:
            self.under.pop(pattern, None)

    def of(self, name: str) -> tuple[Listener, ...]:
        """Those who are told of an event of that name, in order."""
        under = self.under
        return under.get(name, ()) + under.get(_DOMAINS[name], ()) + under.get("*", ())


def subscribing(event: object, function: object) -> tuple[str, Listener]:
    """What a function subscribes to, and its subscription.

    Raises:
        BuilderError: There is no such event, or the function is none, or a call would not run it.
    """
    pattern = _pattern(event)
    if not callable(function):
        raise BuilderError(f"on() calls a function, not {type(function).__name__}; pass one.")
    name = _called(function)
    if runs_nothing(function):
        raise BuilderError(
            f"{name} is async or a generator, and nobody would await or iterate it; make it plain."
        )
    return pattern, Listener(f"{name} on {pattern}", cast("Tell", function))


def _pattern(event: object) -> str:
    if isinstance(event, str):
        if event in _PATTERNS:
            return event
        spelled = {**{name: name for name in _PATTERNS}, **{k.__name__: n for n, k in EVENTS.items()}}
        near = spelled[_nearest(event, spelled)]
        raise BuilderError(f"No event is called {event!r}; use the nearest, {near!r}, or '*'.")
    if isinstance(event, type):
        if event in _NAMES:
            return _NAMES[event]
        near = _nearest(event.__name__, [kind.__name__ for kind in EVENTS.values()])
        raise BuilderError(f"The class {event.__name__} is no event; use the nearest, {near}, or '*'.")
    raise BuilderError(
        f"on() takes an event's class or name, '<domain>.*' or '*', not {type(event).__name__}; pass one."
    )


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib

    return difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.0)[0]


def _called(function: object) -> str:
    """The qualified name of a function, or of the class whose instance is called."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    name: object = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__
