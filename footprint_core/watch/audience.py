"""Those who hear one segment: called one after another, and what one raises harms nobody else."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from footprint_core.events import Event, ObserverError, TurnEnded
from footprint_core.facts import TraceRef
from footprint_core.watch.listener import Listener
from footprint_core.watch.ports import Enclosing, Scope
from footprint_core.watch.subscriptions import Subscribers

if TYPE_CHECKING:
    from collections.abc import Iterable

_NOTHING: AbstractContextManager[None] = nullcontext()

_Entered: TypeAlias = tuple[Listener, AbstractContextManager[None]]

_telling: ContextVar[tuple[object, Subscribers] | None] = ContextVar("footprint_telling", default=None)


def _here() -> object:
    """The task that runs, or the thread when there is none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.get_ident() if task is None else task


def being_told(subscribers: Subscribers | None = None) -> bool:
    """Whether somebody is being told something here; a task that they started is not here.

    Args:
        subscribers: Those of the agent it is told by; any agent, when not given.
    """
    telling = _telling.get()
    if telling is None:
        return False
    here, teller = telling
    return here == _here() and subscribers in (None, teller)


class _Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What the others are still to be told of a listener."""

    listener: Listener
    error_class: str
    where: str
    count: int


class Audience:
    """Those who hear one segment of a run: the watchers it began with, and who subscribed by an event.

    Attributes:
        listening: Whether there is anybody now; if not, no event needs to be built.
        unwanted: The events that nobody has a use for; of these, those that `Ignoring` names are not built.
    """

    __slots__ = ("__weakref__", "_enclosing", "_owed", "_subscribers", "_watchers", "listening", "unwanted")

    def __init__(self, watchers: tuple[Listener, ...], subscribers: Subscribers) -> None:
        self._watchers = watchers
        self._subscribers = subscribers
        self._enclosing: tuple[tuple[Listener, Enclosing], ...] = tuple(
            (one, one.enclosing) for one in watchers if one.enclosing is not None
        )
        self._owed: list[_Failure] = []
        self.listening: bool
        self.unwanted: frozenset[type[Event]]
        self.recount()

    def recount(self) -> None:
        """Somebody came or left."""
        ignored = [one.ignores for one in self._watchers if one.attached]
        self.listening = bool(self._subscribers.under or ignored)
        # Where a function subscribed, all of them are built: that is rare.
        self.unwanted = frozenset()
        if ignored and not self._subscribers.under:
            self.unwanted = ignored[0].intersection(*ignored[1:])

    def publish(self, events: Iterable[Event]) -> None:
        """Tell the watchers in order, then the subscribers, of one event after another.

        Behind each event they are told who of them failed.
        """
        subscribers = self._subscribers
        token = _telling.set((_here(), subscribers))
        try:
            for event in events:
                # Read before anybody is told: who subscribes while an event is delivered does not get it.
                told = self._watchers + subscribers.of(event.type) if subscribers.under else self._watchers
                if self._owed:
                    self._report(event)
                self._tell(told, event)
                if self._owed:
                    self._report(event)
        finally:
            _telling.reset(token)

    def _tell(self, listeners: tuple[Listener, ...], event: Event, about: Listener | None = None) -> None:
        began = time.perf_counter()
        for listener in listeners:
            # Asked one by one: whoever was told before may have detached it.
            if not listener.attached or listener is about or type(event) in listener.ignores:
                continue
            try:
                listener.tell(event)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - whoever listens may raise anything, and must harm nobody
                # A report about a report could go on for ever; one behind the last event of a segment would
                # take its place.
                reportable = not isinstance(event, ObserverError | TurnEnded)
                self._failed(listener, error, event.type, event.run_id, reportable=reportable)
            ended = time.perf_counter()
            listener.slowest = max(listener.slowest, ended - began)
            began = ended

    def _failed(
        self, listener: Listener, error: BaseException, where: str, run_id: str, *, reportable: bool = True
    ) -> None:
        count = listener.failed(error, where, run_id)
        if reportable and listener.reported.first(run_id):
            self._owed.append(
                _Failure(listener=listener, error_class=type(error).__name__, where=where, count=count)
            )

    def _report(self, event: Event) -> None:
        """Tell everybody else who failed; who failed outside of an event is reported beside the next one."""
        while self._owed:
            failure = self._owed.pop(0)
            error = ObserverError(
                run_id=event.run_id,
                segment=event.segment,
                sequence=event.sequence,
                time=event.time,
                watcher=failure.listener.name,
                error_class=failure.error_class,
                event=failure.where,
                count=failure.count,
            )
            others = self._watchers + self._subscribers.of(error.type)
            self._tell(others, error, about=failure.listener)

    def correlation(self, run_id: str, segment: int) -> TraceRef | None:
        """The ids the first correlating watcher gives."""
        for listener in self._watchers:
            if listener.attached and listener.correlating is not None:
                try:
                    given: object = listener.correlating.correlation(run_id, segment)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:  # noqa: BLE001 - isolated like any failure of a watcher
                    self._failed(listener, error, "correlation", run_id)
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
        scope = Scope(kind=kind, run_id=run_id, segment=segment, iteration=iteration, call_id=call_id)
        return _Enclosed(self, scope)

    def enter(self, scope: Scope, entered: list[_Entered]) -> None:
        """Enter every enclosing watcher; each that was entered is put behind the others."""
        for listener, enclosing in self._enclosing:
            if not listener.attached:
                continue
            try:
                manager = enclosing.enclose(scope)
                manager.__enter__()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - isolated like any failure of a watcher
                self._failed(listener, error, "enclose", scope.run_id)
            else:
                entered.append((listener, manager))

    def leave(self, scope: Scope, entered: list[_Entered]) -> None:
        """Leave those that were entered, the last one first."""
        while entered:
            listener, manager = entered.pop()
            try:
                # Told nothing of what was raised: a watcher must not swallow it.
                manager.__exit__(None, None, None)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - isolated like any failure of a watcher
                self._failed(listener, error, "enclose", scope.run_id)


class _Enclosed:
    """What is entered around a model call or the body of a tool.

    A class, since a generator costs several times as much, at every call.
    """

    __slots__ = ("_audience", "_entered", "_scope")

    def __init__(self, audience: Audience, scope: Scope) -> None:
        self._audience = audience
        self._scope = scope
        self._entered: list[_Entered] = []

    def __enter__(self) -> None:
        try:
            self._audience.enter(self._scope, self._entered)
        except BaseException:
            self._audience.leave(self._scope, self._entered)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._audience.leave(self._scope, self._entered)
