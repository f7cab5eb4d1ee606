"""An agent: a frozen description, and the first conversation over it."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, overload

import msgspec

from footprint_core.errors import ReentrantCallError
from footprint_core.events import Event
from footprint_core.holding import hold, release
from footprint_core.loop.abandon import give_up
from footprint_core.pause.person import NOTHING
from footprint_core.pause.results import Outcome, Pause
from footprint_core.plain import Json
from footprint_core.providers.port import Provider
from footprint_core.session import Session
from footprint_core.spec import AgentSpec
from footprint_core.threads import THREADS
from footprint_core.watch import Subscription, Watcher, WatcherHealth

if TYPE_CHECKING:
    from footprint_core.builder import AgentBuilder

_CLOSE_SECONDS = 3.0
_GRACE_SECONDS = 0.5
_log = logging.getLogger("footprint")

E = TypeVar("E", bound=Event)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How the parts around an agent do.

    Attributes:
        watchers: Those that are attached, in the order they are told.
        subscribers: The functions that subscribed, together with those that subscribed to the same.
        threads_left_behind: Threads of this process in which a rule whose timeout passed still runs. At 32
            of them no plain rule with a timeout is asked any more, which counts as a denial.
    """

    watchers: tuple[WatcherHealth, ...]
    subscribers: tuple[WatcherHealth, ...] = ()
    threads_left_behind: int = 0


class Agent:
    """An agent, which is its own first session.

    As an async context manager it flushes the recorders, within a bound, and closes the ledger when it is
    left; those that another agent still holds are left open.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._session = Session(spec)
        things = (spec.ledger, *spec.bus.given)
        for thing in things:
            hold(thing)
        # An agent that is dropped without being closed must not keep its ledger and watchers for ever.
        self._dropped = weakref.finalize(self, _let_go, things)
        self._dropped.atexit = False

    @staticmethod
    def create(
        *,
        provider: Provider,
        model: str,
        name: str,
        id: str | None = None,
        max_iterations: int = 10,
        wrap_up: bool = True,
        keep_last_tool_results: int = 2,
        parallel_tools: bool = False,
        checkpoint_key: bytes | None = None,
    ) -> AgentBuilder:
        """Begin to describe an agent.

        Args:
            provider: The model provider.
            model: The model's name.
            name: What people call the agent.
            id: What tells it from others; the name when it is not given.
            max_iterations: Model calls one turn may make, at least 1.
            wrap_up: Close a turn whose budget ended with one more call without tools.
            keep_last_tool_results: How many tools' latest results a window keeps; 0 keeps none.
            parallel_tools: Run the bodies of one reply's calls at the same time.
            checkpoint_key: Signs checkpoints, at least 16 bytes; one that is not signed with it is refused.

        Raises:
            BuilderError: One of them cannot be used.
        """
        from footprint_core.builder import AgentBuilder

        return AgentBuilder(
            provider=provider,
            model=model,
            name=name,
            id=id,
            max_iterations=max_iterations,
            wrap_up=wrap_up,
            keep_last_tool_results=keep_last_tool_results,
            parallel_tools=parallel_tools,
            checkpoint_key=checkpoint_key,
        )

    # The doors below hand over a coroutine and are none themselves: a frame of theirs would keep a
    # refused message in the traceback of its MessageDeniedError.

    def run(self, message: str, *, identity: Json = None) -> Awaitable[Outcome]:
        """Begin a new conversation with a message; see `Session.run`."""
        return self._outside().run(message, identity=identity)

    def follow_up(self, message: str, *, identity: Json = None) -> Awaitable[Outcome]:
        """Go on with the conversation of the last finished turn; see `Session.follow_up`."""
        return self._outside().follow_up(message, identity=identity)

    def run_typed(self, message: str, *, identity: Json = None) -> Awaitable[Outcome]:
        """`run`, for an answer that must match the declared schema; see `Session.run_typed`."""
        return self._outside().run_typed(message, identity=identity)

    @overload
    def resume(
        self, checkpoint: Mapping[str, Json], answer: object = NOTHING, *, rewalk: bool = False
    ) -> Awaitable[Outcome]: ...

    @overload
    def resume(
        self, *, pause_id: str, answer: object = NOTHING, rewalk: bool = False
    ) -> Awaitable[Outcome]: ...

    def resume(
        self,
        checkpoint: Mapping[str, Json] | None = None,
        answer: object = NOTHING,
        *,
        pause_id: str | None = None,
        rewalk: bool = False,
    ) -> Awaitable[Outcome]:
        """Answer the question of a pause, by its checkpoint or its id, and go on; see `Session.resume`."""
        return self._outside().resuming(checkpoint, pause_id, answer, rewalk=rewalk)

    def recover(self, run_id: str) -> Awaitable[Outcome]:
        """Go on with a run whose process died, from what the ledger holds; see `Session.recover`."""
        return self._outside().recover(run_id)

    async def abandon(self, run_id: str, *, by: str, reason: str) -> None:
        """Give a run up; see `abandon_run`. Watchers are told of the end of a segment that had none."""
        session, spec = self._outside(), self._spec
        await give_up(spec.ledger, spec.bus.audience(), spec.clock(), run_id, by=by, reason=reason)
        session.forget(run_id)

    def abandon_pause(self) -> Pause | None:
        """Drop the question that is open, so that the next turn can start; see `Session.abandon_pause`."""
        return self._session.abandon_pause()

    def run_sync(self, message: str, *, identity: Json = None) -> Outcome:
        """`run`, for programs without an event loop; see `Session.run_sync`."""
        start = self._outside().starting_sync(message, identity=identity)
        del message
        return start()

    def session(self, *, after: str | None = None, conversation_id: str | None = None) -> Session:
        """An independent conversation over the same description, ledger and watchers, at no cost.

        Args:
            after: A run that was answered, here or in another process, and is in the ledger: `follow_up`
                goes on behind it. Reading its conversation takes longer the longer that is.
            conversation_id: What the application calls it, as it did before `after` unless it is given; rows
                and spans say it.

        Raises:
            NoConversationError: The ledger has no such run of this agent that was answered, with all its
                messages.
            MessageLostError: Redaction or erasure took a message the model would be sent.
            LedgerError: The ledger cannot be read.
        """
        return Session(self._spec, after=after, conversation_id=conversation_id)

    @property
    def last_run_id(self) -> str | None:
        """The run of the last turn that began here, also when it failed."""
        return self._session.last_run_id

    def attach(self, watcher: Watcher) -> Subscription:
        """Attach a watcher behind the others; it hears every session from its next segment on.

        It stays the caller's: the agent never closes it. Attaching a watcher that is attached changes
        nothing and gives a second handle on the one attachment, also on that of a watcher given to the
        builder: whichever handle is called first ends it, and the others are spent.

        Raises:
            BuilderError: It has no id, or no plain `on_event`.
            DuplicateWatcherError: A different watcher with its id is attached, and goes on.
        """
        return self._spec.bus.attach(watcher)

    @overload
    def on(self, event: type[E], fn: Callable[[E], object]) -> Subscription: ...

    @overload
    def on(self, event: str, fn: Callable[[Event], object]) -> Subscription: ...

    def on(self, event: str | type[E], fn: Callable[[E], object] | Callable[[Event], object]) -> Subscription:
        """Call a function for events of every session, from the next event on, also of a running turn.

        The watchers are told of an event first, then those who subscribed to exactly it, to its domain and
        to everything, each in order of registration. A function that subscribes twice is called twice.
        It is isolated, timed and reported like a watcher, and has to return at once.

        Args:
            event: An event's class or name (one list), `"<domain>.*"`, or `"*"`.
            fn: What is called with the event.

        Raises:
            BuilderError: There is no such event, or nobody would run the function (it is async).
        """
        return self._spec.bus.subscribe(event, fn)

    def health(self) -> Health:
        """How the watchers and the subscribers do, and how many rules did not keep their timeout."""
        bus = self._spec.bus
        return Health(
            watchers=bus.health(),
            subscribers=bus.subscribers_health(),
            threads_left_behind=THREADS.left_behind,
        )

    async def close(self, *, timeout: float = _CLOSE_SECONDS) -> None:
        """Close the recorders within `timeout` seconds, then the ledger. Closing twice is harmless."""
        if self._dropped.detach() is None:
            return
        last = [watcher for watcher in self._spec.bus.given if release(watcher)]
        try:
            async with asyncio.timeout(timeout + _GRACE_SECONDS):
                await self._spec.bus.close(last, timeout)
        except TimeoutError:
            _log.warning("A recorder did not close within %.1f seconds; what it held may be lost.", timeout)
        finally:
            if release(self._spec.ledger):
                await self._spec.ledger.close()

    def _outside(self) -> Session:
        # Refused at the call: whoever is told of an event is plain, and would drop a coroutine.
        if self._spec.bus.telling():
            raise ReentrantCallError("A watcher called the agent it watches; start the turn outside of it.")
        return self._session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def _let_go(things: tuple[object, ...]) -> None:
    for thing in things:
        release(thing)
