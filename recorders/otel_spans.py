"""Ships a run as OpenTelemetry spans: the agent, its model calls, its tool calls, and every decision.

Everything a span carries comes from an event, so no span can hold a message, an argument, a result or a
reason. No global provider is ever set.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from contextvars import Token
from types import TracebackType
from typing import ClassVar, Self, get_args

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, Tracer, TracerProvider, get_tracer_provider, set_span_in_context

from footprint_core.errors import RecorderError
from footprint_core.events import AgentConfigured, Event, TurnEnded
from footprint_core.facts import TraceRef
from footprint_core.watch import Scope
from footprint_observe import semconv
from footprint_observe.recording.opened import Opened

from .otel_open_segments import MAX_OPEN, OpenSegments
from .otel_pipeline import QueuedSpans, pipeline
from .otel_segment import DecisionsAs, Segment, Silent

_log = logging.getLogger("footprint")

_NOTHING = (
    "OtelSpans() has a tracer provider that records nothing; give it one that does, or unset "
    "OTEL_SDK_DISABLED."
)


class OtelSpans(Opened):
    """A watcher that ships every run as a tree of spans.

    `invoke_agent` stands for a segment; below it a `chat` for each model call and an `execute_tool` for each
    proposed tool call; and a `middleware.decision` for each row, below the call or the run it decided about.
    A resumed segment is a trace of its own, linked to the one before. `with OtelSpans() as spans:` keeps it
    open for every agent inside.

    Args:
        tracer_provider: Makes the spans; without one, the global one does. Its owner flushes and closes it.
        decisions: `"spans"` makes a span of every decision, `"notable"` of all but plain allows, `"events"`
            an event on the span it decided about.
        id: The watcher's id.

    Raises:
        RecorderError: `decisions` is another word.
    """

    ignores: ClassVar[frozenset[type[Event]]] = frozenset(get_args(Silent))
    """The events that say nothing about a span."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        decisions: DecisionsAs = "spans",
        id: str = "otel_spans",
    ) -> None:
        if decisions not in get_args(DecisionsAs):
            raise RecorderError(f"OtelSpans has no such decisions=; use one of {_words()}.")
        provider = get_tracer_provider() if tracer_provider is None else tracer_provider
        self._id = id
        self._decisions: DecisionsAs = decisions
        self._tracer: Tracer = provider.get_tracer("footprint", schema_url=semconv.SCHEMA_URL)
        self._queue: QueuedSpans | None = None
        self._notices: dict[str, object] = {}
        self._segments = OpenSegments()

    @classmethod
    def to_otlp(
        cls,
        endpoint: str = "http://localhost:4318",
        *,
        decisions: DecisionsAs = "spans",
        service_name: str | None = None,
        id: str = "otel_spans",
    ) -> Self:
        """A recorder with a pipeline of its own, which never blocks a run and counts what it loses.

        Args:
            endpoint: The collector: `http://host:port` or `https://host:port`, with the path of the
                collector if it has one (`/v1/traces` is put behind it, unless it ends so),
                `grpc://host:port`, or `grpcs://host:port`.
            decisions: As for the class.
            service_name: The service the spans belong to; without one, what `OTEL_SERVICE_NAME` says, or
                `footprint`.
            id: The watcher's id.

        Raises:
            RecorderError: The endpoint is none of these, or `decisions` is another word.
        """
        provider, queue = pipeline(endpoint, service_name=service_name, id=id)
        made = cls(tracer_provider=provider, decisions=decisions, id=id)
        made._queue = queue
        return made

    @property
    def id(self) -> str:
        """The watcher's id."""
        return self._id

    @property
    def dropped(self) -> int:
        """How many spans of its own pipeline were lost: not taken by the collector, or too many at once."""
        return 0 if self._queue is None else self._queue.dropped

    @property
    def queued(self) -> int:
        """How many spans wait in its own pipeline."""
        return 0 if self._queue is None else self._queue.queued

    @property
    def errors(self) -> int:
        """How many exports of its own pipeline failed."""
        return 0 if self._queue is None else self._queue.errors

    @property
    def notices(self) -> tuple[str, ...]:
        """What whoever runs the agent should know about this recorder."""
        said = tuple(self._notices)
        if self._queue is not None:
            said += self._queue.notices
        if lost := self.dropped:
            said += (f"{lost} spans were lost; look at the collector and its address.",)
        elif self._queue is not None and self._queue.failing and (waiting := self.queued):
            said += (f"{waiting} spans wait for a collector that does not take them; look at its address.",)
        return said

    def on_event(self, event: Event, /) -> None:
        """Take one event."""
        if isinstance(event, AgentConfigured):
            self._begin(event)
            return
        key = (event.run_id, event.segment)
        ended = type(event) is TurnEnded
        segment = self._segments.pop(key) if ended else self._segments.found.get(key)
        if segment is not None:
            segment.take(event)

    def correlation(self, run_id: str, segment: int, /) -> TraceRef | None:
        """The ids of the segment's `invoke_agent` span; None when it is not recorded."""
        found = self._segments.found.get((run_id, segment))
        return None if found is None else found.reference()

    def enclose(self, scope: Scope, /) -> AbstractContextManager[None]:
        """Makes the span of the model call or the tool body current, wherever it is entered."""
        segment = self._segments.found.get((scope.run_id, scope.segment))
        span = None if segment is None else segment.span_of(scope)
        return nullcontext() if span is None else _Current(span)

    def flush(self, timeout: float, /) -> bool:
        """Ship what is queued, within `timeout` seconds; False when something is left, or was lost.

        Nothing is queued here when the tracer provider is somebody else's.
        """
        return True if self._queue is None else self._queue.flush(timeout)

    def close(self, timeout: float, /) -> None:
        """End every span, ship what is queued and give back the pipeline, within `timeout` seconds."""
        self._segments.end_all()
        if self._queue is None:
            return
        before = self._queue.dropped
        self._queue.close(timeout)
        if (lost := self._queue.dropped) > before:
            _log.warning("The recorder %s lost %d spans when it closed.", self._id, lost - before)

    def _begin(self, event: AgentConfigured) -> None:
        begun = Segment(self._tracer, event, decisions=self._decisions)
        if not begun.recorded:
            self._notice(_NOTHING)
            return
        if not self._segments.add((event.run_id, event.segment), begun):
            self._notice(f"More than {MAX_OPEN} runs were open at once; the spans of the oldest ended early.")

    def _notice(self, sentence: str) -> None:
        # In one step, so that of several threads one says it, and a fork leaves no lock behind.
        mine = object()
        if self._notices.setdefault(sentence, mine) is mine:
            _log.warning("%s", sentence)


class _Current:
    """A span that is current between entering and leaving, where both happen."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> None:
        # On top of what is current here, so that the baggage of the application stays.
        self._token: Token[Context] = attach(set_span_in_context(self._span))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        detach(self._token)


def _words() -> str:
    return ", ".join(get_args(DecisionsAs))
