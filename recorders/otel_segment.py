"""The spans of one segment of a run: which are open, what hangs below what, and when each ends.

Parents are handed over explicitly, never taken from what happens to be current, so parallel calls, threads
and interleaved runs cannot swap them. Times are those of the events.
"""

from __future__ import annotations

import re
import threading
from typing import Literal, TypeAlias, assert_never, assert_type

from opentelemetry.context import get_current
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    format_span_id,
    format_trace_id,
    get_current_span,
    set_span_in_context,
)

from footprint_core.events import (
    AgentConfigured,
    ArgsInvalid,
    BudgetPressure,
    BudgetSpent,
    CheckInDecided,
    CheckInRequested,
    ContextEvicted,
    ContextInjected,
    CredentialAcquired,
    CredentialFailed,
    CredentialRequested,
    DecisionFiled,
    Event,
    FatalError,
    IterationFinished,
    IterationStarted,
    ModelCallEnded,
    ModelCallStarted,
    ObserverError,
    OutputRetried,
    OutputUnmet,
    PauseRequested,
    PauseResumed,
    PermissionAnswered,
    PermissionHalted,
    RouteDecided,
    SlotComposed,
    TokenStreamed,
    ToolCallEnded,
    ToolCallStarted,
    ToolsOffered,
    TurnEnded,
    TurnStarted,
)
from footprint_core.facts import TraceRef
from footprint_core.watch import Scope
from footprint_observe import semconv as n
from footprint_observe.recording.names import CANCELLED, SegmentNames

from . import otel_attributes as attributes
from .otel_calls import Calls, OpenCall
from .otel_decisions import Decisions, plain
from .otel_notes import Noted, noted, of_window, redacted
from .otel_open import ERROR, OpenSpan, fail
from .otel_values import Attributes, began, named, nanoseconds

DecisionsAs: TypeAlias = Literal["spans", "notable", "events"]
"""How decisions are shipped: a span each, a span for all but plain allows, or an event each."""

Silent: TypeAlias = (
    ContextInjected
    | IterationFinished
    | IterationStarted
    | RouteDecided
    | SlotComposed
    | TokenStreamed
    | ToolsOffered
    | TurnStarted
)
"""The events that say nothing about a span; most of what a run tells are these."""

_TRACE_ID = re.compile("[0-9a-f]{32}")
_SPAN_ID = re.compile("[0-9a-f]{16}")


class Segment:
    """The spans of one segment, from its first event to its last.

    Its events come from the task that runs it, one after another; but a tool's thread asks for its span, and
    another thread may give the run up or close the recorder, so everything here holds a lock.

    Args:
        tracer: Makes the spans.
        event: The segment's first event. Unless it goes on with a run, the span that is current now becomes
            the parent of the segment's.
        decisions: How decisions are shipped.
    """

    def __init__(self, tracer: Tracer, event: AgentConfigured, *, decisions: DecisionsAs) -> None:
        around = get_current()
        if event.resumed:
            # A segment that goes on is a trace of its own, linked to the one before: days may lie between the
            # two, and whoever answers is not the one who asked. Baggage is the application's, and stays.
            around = set_span_in_context(INVALID_SPAN, around)
        self._tracer = tracer
        self._decisions: DecisionsAs = decisions
        # Reentrant, since a finalizer or a signal handler may close the recorder in the middle of an event.
        self._lock = threading.RLock()
        self._over = False
        self._common = attributes.common(event)
        self._parent = get_current_span(around).get_span_context()
        origin = _origin(event.resumed_from)
        made = tracer.start_span(
            named(n.INVOKE_AGENT, event.agent_name),
            context=around,
            attributes={**self._common, **attributes.agent_started(event, origin)},
            start_time=nanoseconds(event.time),
            links=() if origin is None else (Link(origin),),
            record_exception=False,
            set_status_on_exception=False,
        )
        self._agent = OpenSpan(made, around)
        self._within = self._agent.below
        names = SegmentNames(event.tools)
        self._calls = Calls(tracer, self._within, self._common, names, continuing=event.resumed)
        kind = {} if decisions == "events" else {**self._common, n.SPAN_KIND: n.GUARDRAIL}
        self._rules = Decisions(event, kind, names)
        self._chats: dict[int, OpenSpan] = {}
        self._model: tuple[tuple[str, str, str | None], str, Attributes] | None = None
        self._window: list[tuple[ContextEvicted | BudgetPressure, int]] = []
        self._last = nanoseconds(event.time)
        self._error_class: str | None = None

    @property
    def recorded(self) -> bool:
        """False when the tracer makes no spans at all; one that is merely not sampled is made."""
        made = self._agent.span.get_span_context()
        return self._agent.span.is_recording() or (made.is_valid and made.span_id != self._parent.span_id)

    def reference(self) -> TraceRef | None:
        """The ids of the `invoke_agent` span; None when nobody could find it."""
        made = self._agent.span.get_span_context()
        if not self._agent.span.is_recording() or not made.is_valid or not made.trace_flags.sampled:
            return None
        return TraceRef(trace_id=format_trace_id(made.trace_id), span_id=format_span_id(made.span_id))

    def span_of(self, scope: Scope) -> Span | None:
        """The open span of what is about to run; that of the agent where it has none of its own."""
        with self._lock:
            if self._over:
                return None
            found: OpenSpan | None = None
            if scope.kind == "model":
                found = self._chats.get(scope.iteration)
            elif scope.call_id is not None:
                # A call that is in doubt runs again before anything is told of it.
                call = found = self._calls.find(scope.iteration, scope.call_id, None, None, self._last)
                if call is not None:
                    call.entered = True
            return self._agent.span if found is None else found.span

    def take(self, event: Event) -> None:
        """Take an event of the segment, but its first; behind its last one, there is none."""
        with self._lock:
            if self._over:
                return
            time = self._last = nanoseconds(event.time)
            match event:
                case DecisionFiled():
                    self._decided(event, time)
                case ToolCallStarted():
                    self._calls.start(
                        event.iteration, event.tool_call_id, event.tool_name, event.tool_source, time
                    )
                case ToolCallEnded():
                    self._end_call(event, time)
                case ModelCallStarted():
                    self._start_model(event, time)
                case ModelCallEnded():
                    self._end_model(event, time)
                case TurnEnded():
                    self._end(event, time)
                case ContextEvicted() | BudgetPressure():
                    self._window_told(event)
                case AgentConfigured():
                    # The recorder makes a segment of it.
                    pass
                case (
                    ContextInjected()
                    | IterationFinished()
                    | IterationStarted()
                    | RouteDecided()
                    | SlotComposed()
                    | TokenStreamed()
                    | ToolsOffered()
                    | TurnStarted()
                ):
                    assert_type(event, Silent)
                case _:
                    self._note(event, time)

    def abandon(self) -> None:
        """End every open span at the time of the last event: no other will come."""
        with self._lock:
            if not self._over:
                self._close(self._last, paused=False)

    def _decided(self, event: DecisionFiled, time: int) -> None:
        start = began(time, event.duration)
        call: OpenCall | None = None
        if event.tool_call_id is not None:
            call = self._calls.find(
                event.iteration, event.tool_call_id, event.tool_name, event.tool_source, start
            )
        if not event.shadow:
            self._rules.counts[event.outcome] += 1
            if call is not None:
                call.outcome = event.outcome
        above = self._agent if call is None else call
        if event.redactions:
            above.note(n.REDACTION, redacted(event), time)
        if self._decisions == "notable" and plain(event):
            return
        name, told = self._rules.told(event, call)
        if self._decisions == "events":
            above.note(n.DECISION, told, time)
            return
        span = self._tracer.start_span(
            name,
            context=above.below,
            attributes=told,
            start_time=start,
            record_exception=False,
            set_status_on_exception=False,
        )
        if n.ERROR_TYPE in told:
            span.set_status(ERROR)
        span.end(time)

    def _end_call(self, event: ToolCallEnded, time: int) -> None:
        call = self._calls.close(
            event.iteration, event.tool_call_id, event.tool_name, event.tool_source, time
        )
        if call is None:
            return
        call.span.set_attributes(attributes.call_ended(event, outcome=call.outcome))
        if event.status == "failed" and event.error_class is not None:
            fail(call.span, event.error_class)
        call.end(time)

    def _start_model(self, event: ModelCallStarted, time: int) -> None:
        # Calls that were taken up before this segment are answered now.
        self._calls.continuing = False
        if (before := self._chats.pop(event.iteration, None)) is not None:
            before.end(time)
        model = (event.provider, event.model, event.server)
        if self._model is None or self._model[0] != model:
            told = {**self._common, **attributes.model_started(event)}
            self._model = (model, named(n.CHAT, event.model), told)
        _, name, told = self._model
        made = self._tracer.start_span(
            name,
            context=self._within,
            kind=SpanKind.CLIENT,
            # A copy: who makes or samples spans may keep what it is given.
            attributes=told.copy(),
            start_time=time,
            record_exception=False,
            set_status_on_exception=False,
        )
        chat = self._chats[event.iteration] = OpenSpan(made, self._within)
        if self._window:
            self._file_window(chat)

    def _end_model(self, event: ModelCallEnded, time: int) -> None:
        if (chat := self._chats.pop(event.iteration, None)) is None:
            return
        if told := attributes.model_ended(event):
            chat.span.set_attributes(told)
        if event.error_class is not None and event.error_class != CANCELLED:
            fail(chat.span, event.error_class)
        chat.end(time)

    def _end(self, event: TurnEnded, time: int) -> None:
        self._agent.span.set_attributes(attributes.agent_ended(event))
        if event.outcome == "failed" and self._error_class is not None:
            fail(self._agent.span, self._error_class)
        self._close(time, paused=event.outcome == "paused")

    def _close(self, time: int, *, paused: bool) -> None:
        self._over = True
        for chat in self._chats.values():
            chat.end(time)
        self._chats.clear()
        # Every call that is taken up is answered in its segment, unless a person is waited for.
        self._calls.leave(time, paused=paused)
        self._file_window(self._agent)
        self._agent.span.set_attributes(attributes.agent_counted(self._rules.counts))
        self._agent.end(time)

    def _note(self, event: Noted, time: int) -> None:
        """Put an event that is a point in time on the span it is about."""
        match event:
            case PermissionAnswered() | PermissionHalted():
                found = self._calls.find(event.iteration, event.tool_call_id, event.target, None, time)
            case ArgsInvalid() | CheckInRequested() | CheckInDecided() | PauseRequested():
                found = self._calls.find(
                    event.iteration, event.tool_call_id, event.tool_name, None, event.time
                )
                if found is not None and isinstance(event, PauseRequested):
                    found.asked_by = event.middleware
            case PauseResumed():
                found = self._calls.resume(event.tool_call_id, event.tool_name, time)
            case CredentialRequested() | CredentialAcquired() | CredentialFailed():
                found = self._calls.of_id(event.tool_call_id, time)
            case FatalError():
                self._error_class = event.error_class
                found = None
            case OutputRetried() | OutputUnmet() | BudgetSpent() | ObserverError():
                found = None
            case _:
                assert_never(event)
        above = self._agent if found is None else found
        above.note(event.type, noted(event), time, last=isinstance(event, FatalError))

    def _window_told(self, event: ContextEvicted | BudgetPressure) -> None:
        """Keep it for the model call it makes room for; messages that left together are one."""
        if self._window and isinstance(event, ContextEvicted):
            last, messages = self._window[-1]
            if isinstance(last, ContextEvicted) and last.sequence == event.sequence:
                self._window[-1] = (last, messages + 1)
                return
        self._window.append((event, 1))

    def _file_window(self, span: OpenSpan) -> None:
        for event, messages in self._window:
            span.note(event.type, of_window(event, messages), nanoseconds(event.time))
        self._window.clear()


def _origin(given: TraceRef | None) -> SpanContext | None:
    """The span of the segment before; None when the ids are none.

    They may have come with a checkpoint, so from outside; a run must not lose its spans over them.
    """
    if given is None or not _TRACE_ID.fullmatch(given.trace_id) or not _SPAN_ID.fullmatch(given.span_id):
        return None
    flags = TraceFlags(TraceFlags.SAMPLED)
    made = SpanContext(int(given.trace_id, 16), int(given.span_id, 16), is_remote=True, trace_flags=flags)
    return made if made.is_valid else None
