"""The bus: watchers are called one after another, and what one raises harms nobody else."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
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

_telling: ContextVar[object] = ContextVar("footprint_telling", default=None)


def _here() -> object:
    """The task that runs, or the thread when there is none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident() if task is None else task


def being_told() -> bool:
    """Whether a watcher is being told something here; a task that it started is not here."""
    told = _telling.get()
    return told is not None and told == _here()


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


class Listener:
    """A watcher that is attached: its name read once, and how it does.

    Attributes:
        name: The watcher's id when it was attached.
        watcher: The watcher.
        failures: How often it raised.
        slowest: Its slowest call in seconds.
    """

    __slots__ = ("failures", "name", "slowest", "watcher")

    def __init__(self, name: str, watcher: Watcher) -> None:
        self.name = name
        self.watcher = watcher
        self.failures = 0
        self.slowest = 0.0

    def failed(self, error: BaseException, where: str) -> int:
        """Count a failure and log it; how many there are now."""
        self.failures += 1
        _log.warning("The watcher %s raised %s in %s.", self.name, type(error).__name__, where)
        return self.failures


def _listeners(watchers: Sequence[Watcher]) -> tuple[Listener, ...]:
    seen: dict[str, Listener] = {}
    for watcher in watchers:
        name: object = getattr(watcher, "id", None)
        if not isinstance(name, str) or not name.strip():
            raise BuilderError(f"A watcher ({type(watcher).__name__}) has no id; give it a non-blank `id`.")
        hook: object = getattr(watcher, "on_event", None)
        if not callable(hook) or isinstance(watcher, type):
            raise BuilderError(
                f"The watcher {name!r} has no on_event(event) to call; pass an object, and give it one."
            )
        if inspect.iscoroutinefunction(hook):
            raise BuilderError(
                f"The watcher {name!r} has an async on_event, which nobody would await; make it plain."
            )
        if seen.setdefault(name, Listener(name, watcher)).watcher is not watcher:
            raise DuplicateWatcherError(watcher=name)
    return tuple(seen.values())


class Bus:
    """The watchers of an agent, each once and in order, and how they do.

    Raises:
        BuilderError: A watcher has no id, or no `on_event`.
        DuplicateWatcherError: Two different ones share an id.
    """

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._listeners = _listeners(watchers)

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """The watchers, in order."""
        return tuple(listener.watcher for listener in self._listeners)

    def audience(self) -> Audience:
        """Those who watch one segment."""
        return Audience(self._listeners)

    def health(self) -> tuple[WatcherHealth, ...]:
        """How each watcher does, in order."""
        return tuple(
            WatcherHealth(
                watcher=listener.name,
                failures=listener.failures,
                slowest=listener.slowest,
                slow=listener.slowest > _SLOW_SECONDS,
                notices=tuple(getattr(listener.watcher, "notices", ())),
            )
            for listener in self._listeners
        )

    def close(self, watchers: Sequence[Watcher], timeout: float) -> None:
        """Close the recorders among `watchers`, all within `timeout` seconds."""
        deadline = time.monotonic() + timeout
        for listener in self._listeners:
            watcher = listener.watcher
            if any(watcher is other for other in watchers) and isinstance(watcher, Closing):
                try:
                    watcher.close(max(0.0, deadline - time.monotonic()))
                except Exception as error:  # noqa: BLE001 - isolated like any failure of a watcher
                    listener.failed(error, "close")


class Audience:
    """Those who watch one segment of a run.

    Attributes:
        listening: Whether there is anybody; if not, no event needs to be built.
    """

    __slots__ = ("_enclosing", "_listeners", "_reported", "listening")

    def __init__(self, listeners: tuple[Listener, ...]) -> None:
        self._listeners = listeners
        self._enclosing: tuple[tuple[Listener, Enclosing], ...] = tuple(
            (one, one.watcher) for one in listeners if isinstance(one.watcher, Enclosing)
        )
        self._reported: set[str] = set()
        self.listening = bool(listeners)

    def publish(self, event: Event) -> None:
        """Tell every watcher, in order."""
        token = _telling.set(_here())
        try:
            for listener in self._listeners:
                self._tell(listener, event)
        finally:
            _telling.reset(token)

    def _tell(self, listener: Listener, event: Event) -> None:
        began = time.perf_counter()
        try:
            listener.watcher.on_event(event)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a watcher may raise anything, and must harm nobody
            self._report(listener, error, event)
        listener.slowest = max(listener.slowest, time.perf_counter() - began)

    def _report(self, listener: Listener, error: BaseException, event: Event) -> None:
        if listener.name in self._reported:
            listener.failures += 1
            return
        self._reported.add(listener.name)
        count = listener.failed(error, event.type)
        if isinstance(event, ObserverError | TurnEnded):
            # A report about a report could go on for ever; one behind the last event of a segment would
            # take its place.
            return
        told = ObserverError(
            run_id=event.run_id,
            segment=event.segment,
            sequence=event.sequence,
            time=event.time,
            watcher=listener.name,
            error_class=type(error).__name__,
            event=event.type,
            count=count,
        )
        for other in self._listeners:
            if other is not listener:
                self._tell(other, told)

    def correlation(self, run_id: str, segment: int) -> TraceRef | None:
        """The ids the first correlating watcher gives."""
        for listener in self._listeners:
            if isinstance(listener.watcher, Correlating):
                try:
                    given: object = listener.watcher.correlation(run_id, segment)
                except Exception as error:  # noqa: BLE001 - isolated like any failure of a watcher
                    listener.failed(error, "correlation")
                else:
                    # Rows and checkpoints will carry it, so nothing else may pass for one.
                    return given if isinstance(given, TraceRef) else None
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
        entered: list[tuple[Listener, AbstractContextManager[None]]] = []
        for listener, enclosing in self._enclosing:
            try:
                manager = enclosing.enclose(scope)
                manager.__enter__()
            except Exception as error:  # noqa: BLE001 - isolated like any failure of a watcher
                listener.failed(error, "enclose")
            else:
                entered.append((listener, manager))
        try:
            yield
        finally:
            for listener, manager in reversed(entered):
                try:
                    # Told nothing of what was raised: a watcher must not swallow it.
                    manager.__exit__(None, None, None)
                except Exception as error:  # noqa: BLE001 - isolated like any failure of a watcher
                    listener.failed(error, "enclose")
