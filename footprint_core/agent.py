"""An agent: a frozen description, and the first conversation over it."""

from __future__ import annotations

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from footprint_core.holding import hold, release
from footprint_core.pause.results import Outcome
from footprint_core.plain import Json
from footprint_core.providers.port import Provider
from footprint_core.session import Session
from footprint_core.spec import AgentSpec
from footprint_core.threads import THREADS
from footprint_core.watch import WatcherHealth

if TYPE_CHECKING:
    from footprint_core.builder import AgentBuilder

_CLOSE_SECONDS = 3.0
_GRACE_SECONDS = 0.5
_log = logging.getLogger("footprint")


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How the parts around an agent do; `watchers` in the order they are told."""

    watchers: tuple[WatcherHealth, ...]


class Agent:
    """An agent, which is its own first session.

    As an async context manager it flushes the recorders, within a bound, and closes the ledger when it is
    left; those that another agent still holds are left open.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._session = Session(spec)
        things = (spec.ledger, *spec.bus.watchers)
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
        )

    # The doors below hand over a coroutine and are none themselves: a frame of theirs would keep a
    # refused message in the traceback of its MessageDeniedError.

    def run(self, message: str, *, identity: Json = None) -> Awaitable[Outcome]:
        """Begin a new conversation with a message; see `Session.run`."""
        return self._session.run(message, identity=identity)

    def follow_up(self, message: str, *, identity: Json = None) -> Awaitable[Outcome]:
        """Go on with the conversation of the last finished turn; see `Session.follow_up`."""
        return self._session.follow_up(message, identity=identity)

    def resume(self, checkpoint: Mapping[str, Json], answer: object) -> Awaitable[Outcome]:
        """Answer the question of a pause and go on; see `Session.resume`."""
        return self._session.resume(checkpoint, answer)

    def run_sync(self, message: str, *, identity: Json = None) -> Outcome:
        """`run`, for programs without an event loop; see `Session.run_sync`."""
        start = self._session.starting_sync(message, identity=identity)
        del message
        return start()

    def session(self, *, conversation_id: str | None = None) -> Session:
        """An independent conversation over the same description, ledger and watchers, at no cost.

        Args:
            conversation_id: What the application calls it; rows and spans say it.
        """
        return Session(self._spec, conversation_id=conversation_id)

    @property
    def last_run_id(self) -> str | None:
        """The run of the last turn that began here, also when it failed."""
        return self._session.last_run_id

    def health(self) -> Health:
        """How the watchers do."""
        return Health(watchers=self._spec.bus.health())

    async def close(self, *, timeout: float = _CLOSE_SECONDS) -> None:
        """Close the recorders within `timeout` seconds, then the ledger. Closing twice is harmless."""
        if self._dropped.detach() is None:
            return
        last = [watcher for watcher in self._spec.bus.watchers if release(watcher)]
        try:
            async with asyncio.timeout(timeout + _GRACE_SECONDS):
                await THREADS.call(partial(self._spec.bus.close, last, timeout))
        except TimeoutError:
            _log.warning("A recorder did not close within %.1f seconds; what it held may be lost.", timeout)
        finally:
            if release(self._spec.ledger):
                await self._spec.ledger.close()

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
