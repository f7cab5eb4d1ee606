"""The bus of an agent: who is attached, who subscribed, and how they do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from functools import partial
from weakref import WeakSet

from footprint_core.errors import DuplicateWatcherError
from footprint_core.threads import THREADS
from footprint_core.watch.audience import Audience, being_told
from footprint_core.watch.listener import Listener, WatcherHealth, watching
from footprint_core.watch.ports import Recorder, Watcher
from footprint_core.watch.subscriptions import Subscribers, Subscription, subscribing


class Bus:
    """The watchers of an agent, each once and in order, and its subscribers. Its sessions share it.

    Raises:
        BuilderError: A watcher has no id, or no `on_event`.
        DuplicateWatcherError: Two different ones share an id.
    """

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        # Reentrant, since a finalizer may end a subscription whenever memory is collected.
        self._lock = threading.RLock()
        self._attached: tuple[Listener, ...] = ()
        self._subscribers = Subscribers()
        self._audiences: WeakSet[Audience] = WeakSet()
        for watcher in watchers:
            self._add(watching(watcher))
        self._given: tuple[Listener, ...] = self._attached

    @property
    def given(self) -> tuple[object, ...]:
        """The watchers it was made with, in order, also those that were detached since."""
        return tuple(one.watcher for one in self._given)

    def audience(self) -> Audience:
        """Those who hear one segment that begins now."""
        with self._lock:
            audience = Audience(self._attached, self._subscribers)
            self._audiences.add(audience)
            return audience

    def attach(self, watcher: Watcher) -> Subscription:
        """Attach a watcher behind the others; see `Agent.attach`."""
        return Subscription(partial(self._detach, self._add(watching(watcher))))

    def _add(self, new: Listener) -> Listener:
        with self._lock:
            for one in self._attached:
                if one.watcher is new.watcher:
                    return one
            if any(one.name == new.name for one in self._attached):
                raise DuplicateWatcherError(watcher=new.name)
            self._attached = (*self._attached, new)
            return new

    def _detach(self, listener: Listener) -> None:
        with self._lock:
            listener.attached = False
            self._attached = tuple(one for one in self._attached if one.attached)
            self._recount()

    def subscribe(self, event: object, function: object) -> Subscription:
        """Call a function for later events; see `Agent.on`."""
        pattern, listener = subscribing(event, function)
        with self._lock:
            self._subscribers.add(pattern, listener)
            self._recount()
        return Subscription(partial(self._unsubscribe, pattern, listener))

    def _unsubscribe(self, pattern: str, listener: Listener) -> None:
        with self._lock:
            listener.attached = False
            self._subscribers.sweep(pattern)
            self._recount()

    def _recount(self) -> None:
        # Kept by who changes it, because every commit of a running segment reads it.
        for audience in self._audiences:
            audience.recount()

    def telling(self) -> bool:
        """Whether somebody is being told something of this agent here."""
        return being_told(self._subscribers)

    def health(self) -> tuple[WatcherHealth, ...]:
        """How each watcher does, in order."""
        return tuple(one.health() for one in self._attached)

    def subscribers_health(self) -> tuple[WatcherHealth, ...]:
        """How each subscriber does, beside those that subscribed to the same."""
        with self._lock:
            return tuple(one.health() for under in self._subscribers.under.values() for one in under)

    async def close(self, watchers: Sequence[object], timeout: float) -> None:
        """Close the recorders among `watchers`, which were given, each within `timeout` seconds.

        Side by side, in a thread each, so that one that takes longer takes no time from the others.
        """
        closing = [
            _closed(one, one.watcher, timeout)
            for one in self._given
            if any(one.watcher is other for other in watchers) and isinstance(one.watcher, Recorder)
        ]
        for error in await asyncio.gather(*closing):
            if error is not None:
                raise error


async def _closed(listener: Listener, recorder: Recorder, timeout: float) -> BaseException | None:
    """Close a recorder; what it raised to end the program, for when all of them are closed."""
    try:
        _, error = await THREADS.call(partial(recorder.close, timeout))
    except RuntimeError as no_thread:
        error = no_thread
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return error
    if error is not None:
        # Isolated like any failure of a watcher, whatever it raised.
        listener.failed(error, "close", "")
    return None
