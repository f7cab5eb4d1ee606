"""The bus: watchers are called one after another, and what one raises harms nobody else."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import msgspec

from footprint_core.errors import BuilderError, DuplicateWatcherError
from footprint_core.events import Event, ObserverError, TurnEnded
from footprint_core.facts import TraceRef

if TYPE_CHECKING:
    from collections.abc import Generator

_log = logging.getLogger("footprint")
_SLOW_SECONDS = 0.05
_NOTHING: AbstractContextManager[None] = nullcontext()

watching: ContextVar[bool] = ContextVar("footprint_watching", default=False)
"""True while a watcher is being told something."""


class Watcher(Protocol):
    """Is told what happened, synchronously and in order; it cannot change it."""

    @property
    def id(self) -> str:
        """A non-blank name, unique among the watchers of an agent."""
        ...

    def on_event(self, event: Event, /) -> None:
        """Take one event. Return at once: a slow watcher slows the run."""
        ...


class Scope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is about to run: a model call, or the body of a tool.

    Attributes:
        kind: Which of the two.
        run_id: The run.
        segment: Its segment.
        iteration: The model call, from 1.
        call_id: The tool call, for a tool.
    """

    kind: Literal["model", "tool"]
    run_id: str
    segment: int
    iteration: int
    call_id: str | None = None


@runtime_checkable
class Correlating(Protocol):
    """A watcher that gives the ids rows can be found by elsewhere."""

    def correlation(self, run_id: str, segment: int, /) -> TraceRef | None:
        """Asked once a segment, right after its first event was delivered."""
        ...


@runtime_checkable
class Enclosing(Protocol):
    """A watcher that is entered around what runs."""

    def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
        """Entered around exactly the model call or the tool body, in the task or thread that runs it."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A watcher that holds something: a recorder."""

    def flush(self, timeout: float, /) -> bool:
        """Ship what is queued, within `timeout` seconds; False when something is left."""
        ...

    def close(self, timeout: float, /) -> None:
        """Flush and give back everything, within `timeout` seconds. Closing twice is harmless."""
        ...


class WatcherHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How a watcher does.

    Attributes:
        watcher: Its id.
        failures: How often it raised.
        slowest: Its slowest call in seconds.
        slow: Whether that was slow enough to slow a run.
        notices: What the watcher says about itself.
    """

    watcher: str
    failures: int
    slowest: float
    slow: bool
    notices: tuple[str, ...] = ()


def attachable(watchers: Sequence[Watcher]) -> tuple[Watcher, ...]:
    """The watchers in order, each once.

    Raises:
        BuilderError: One has no id, or no `on_event`.
        DuplicateWatcherError: Two different ones share an id.
    """
    seen: dict[str, Watcher] = {}
    for watcher in watchers:
        name = getattr(watcher, "id", None)
        if not isinstance(name, str) or not name.strip():
            raise BuilderError(f"A watcher ({type(watcher).__name__}) has no id; give it a non-blank `id`.")
        if not callable(getattr(watcher, "on_event", None)):
            raise BuilderError(f"The watcher {name!r} has no on_event(event) method; give it one.")
        if seen.setdefault(name, watcher) is not watcher:
            raise DuplicateWatcherError(watcher=name)
    return tuple(seen.values())


class Bus:
    """The watchers of an agent, and how they do."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = attachable(watchers)
        self._failures = dict.fromkeys((w.id for w in self.watchers), 0)
        self._slowest = dict.fromkeys((w.id for w in self.watchers), 0.0)

    def audience(self) -> Audience:
        """Those who watch one segment."""
        return Audience(self, self.watchers)

    def failed(self, watcher: Watcher) -> int:
        """Count a failure; how many there are now."""
        self._failures[watcher.id] += 1
        return self._failures[watcher.id]

    def took(self, watcher: Watcher, seconds: float) -> None:
        """Note how long a call took."""
        self._slowest[watcher.id] = max(self._slowest[watcher.id], seconds)

    def health(self) -> tuple[WatcherHealth, ...]:
        """How each watcher does, in order."""
        return tuple(
            WatcherHealth(
                watcher=watcher.id,
                failures=self._failures[watcher.id],
                slowest=self._slowest[watcher.id],
                slow=self._slowest[watcher.id] > _SLOW_SECONDS,
                notices=tuple(getattr(watcher, "notices", ())),
            )
            for watcher in self.watchers
        )

    def close(self, watchers: Sequence[Watcher], timeout: float) -> None:
        """Close the recorders among `watchers`, all within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        for watcher in watchers:
            if isinstance(watcher, Closing):
                try:
                    watcher.close(max(0.0, deadline - time.monotonic()))
                except Exception:  # noqa: BLE001 - isolated like any failure of a watcher
                    self.failed(watcher)
                    _log.warning("The recorder %s could not be closed.", watcher.id, exc_info=True)


class Audience:
    """Those who watch one segment of a run."""

    __slots__ = ("_bus", "_enclosing", "_reported", "_watchers", "listening")

    def __init__(self, bus: Bus, watchers: tuple[Watcher, ...]) -> None:
        self._bus = bus
        self._watchers = watchers
        self._enclosing: tuple[tuple[Watcher, Enclosing], ...] = tuple(
            (watcher, watcher) for watcher in watchers if isinstance(watcher, Enclosing)
        )
        self._reported: set[str] = set()
        self.listening = bool(watchers)

    def publish(self, event: Event) -> None:
        """Tell every watcher, in order."""
        token = watching.set(True)
        try:
            for watcher in self._watchers:
                self._tell(watcher, event)
        finally:
            watching.reset(token)

    def _tell(self, watcher: Watcher, event: Event) -> None:
        began = time.perf_counter()
        try:
            watcher.on_event(event)
        except Exception as error:  # noqa: BLE001 - a watcher may raise anything, and must harm nobody
            self._report(watcher, error, event)
        self._bus.took(watcher, time.perf_counter() - began)

    def _report(self, watcher: Watcher, error: Exception, event: Event) -> None:
        count = self._bus.failed(watcher)
        if watcher.id in self._reported or isinstance(event, ObserverError):
            return
        self._reported.add(watcher.id)
        _log.warning("The watcher %s raised %s on %s.", watcher.id, type(error).__name__, event.type)
        if isinstance(event, TurnEnded):
            # It is the last event of its segment by law; a report behind it would take that place.
            return
        told = ObserverError(
            run_id=event.run_id,
            segment=event.segment,
            sequence=event.sequence,
            time=event.time,
            watcher=watcher.id,
            error_class=type(error).__name__,
            event=event.type,
            count=count,
        )
        for other in self._watchers:
            if other is not watcher:
                self._tell(other, told)

    def correlation(self, run_id: str, segment: int) -> TraceRef | None:
        """The ids the first correlating watcher gives."""
        for watcher in self._watchers:
            if isinstance(watcher, Correlating):
                try:
                    return watcher.correlation(run_id, segment)
                except Exception as error:  # noqa: BLE001 - isolated like any failure of a watcher
                    self._bus.failed(watcher)
                    _log.warning("The watcher %s raised %s in correlation.", watcher.id, type(error).__name__)
        return None

    def enclose(
        self,
        kind: Literal["model", "tool"],
        run_id: str,
        segment: int,
        iteration: int,
        call_id: str | None = None,
    ) -> AbstractContextManager[None]:
        """Enter every enclosing watcher around what runs; what they raise stays here."""
        if not self._enclosing:
            return _NOTHING
        return self._enclosed(
            Scope(kind=kind, run_id=run_id, segment=segment, iteration=iteration, call_id=call_id)
        )

    @contextmanager
    def _enclosed(self, scope: Scope) -> Generator[None]:
        entered: list[tuple[Watcher, AbstractContextManager[None]]] = []
        for watcher, enclosing in self._enclosing:
            try:
                manager = enclosing.enclose(scope)
                manager.__enter__()
            except Exception as error:  # noqa: BLE001 - isolated like any failure of a watcher
                self._enclose_failed(watcher, error)
            else:
                entered.append((watcher, manager))
        try:
            yield
        finally:
            for watcher, manager in reversed(entered):
                try:
                    # Told nothing of what was raised: a watcher must not swallow it.
                    manager.__exit__(None, None, None)
                except Exception as error:  # noqa: BLE001 - isolated like any failure of a watcher
                    self._enclose_failed(watcher, error)

    def _enclose_failed(self, watcher: Watcher, error: Exception) -> None:
        self._bus.failed(watcher)
        _log.warning("The watcher %s raised %s in enclose.", watcher.id, type(error).__name__)
