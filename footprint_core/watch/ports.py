"""What a watcher is, and what it may be besides: correlating, enclosing, a recorder."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from typing import Literal, Protocol, runtime_checkable

import msgspec

from footprint_core.events import Event
from footprint_core.facts import TraceRef


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


class Counting(Protocol):
    """A watcher that says how it does; `agent.health()` shows it.

    It shows 0 for a figure the watcher has not, or that is no int, and those notices that are texts.
    """

    @property
    def dropped(self) -> int:
        """How many items it lost."""
        ...

    @property
    def queued(self) -> int:
        """How many items wait."""
        ...

    @property
    def errors(self) -> int:
        """How often shipping failed."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences for whoever runs the agent."""
        ...


@runtime_checkable
class Ignoring(Protocol):
    """A watcher that has no use for some events, and is not told of them.

    Those that come with every model call and chunk are not even built when no watcher of the segment has a
    use for them, and no function is subscribed, to whatever it is: `SlotComposed` and `ContextInjected` (only
    both together), `ToolsOffered`, `IterationStarted`, `TokenStreamed`, `RouteDecided`, `IterationFinished`.
    """

    @property
    def ignores(self) -> AbstractSet[type[Event]]:
        """The classes of these events, as a set or frozenset. Read once, when it is attached.

        A watcher whose `ignores` is anything else, or holds anything else, is told of everything.
        """
        ...


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
        """Entered around exactly the model call or the tool body, in the task or thread that runs it.

        What was entered is also left when the watcher is detached in between.
        """
        ...


@runtime_checkable
class Recorder(Watcher, Protocol):
    """A watcher that ships what it is told, and holds something until it has: its `id` is its name.

    One that was given to a builder is closed once, with the last agent that has it.
    """

    def flush(self, timeout: float, /) -> bool:
        """Ship what is queued, within `timeout` seconds; False when something is left."""
        ...

    def close(self, timeout: float, /) -> None:
        """Flush and give back everything, within `timeout` seconds. Closing twice is harmless.

        An agent calls it in a thread, beside the other recorders.
        """
        ...
