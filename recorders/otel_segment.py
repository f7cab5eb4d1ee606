"""The spans of one segment of a run: which are open, what hangs below what, and when each ends.

Parents are handed over explicitly, never taken from what happens to be current, so parallel calls, threads
and interleaved runs cannot swap them. Times are those of the events.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Literal, TypeAlias

from opentelemetry.context import Context, get_current
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    format_span_id,
    format_trace_id,
    get_current_span,
    set_span_in_context,
)

from footprint_core.decisions import Verdict
from footprint_core.events import (
    AgentConfigured,
    ArgsInvalid,
    ContextEvicted,
    DecisionFiled,
    Event,
    FatalError,
    ModelCallEnded,
    ModelCallStarted,
    PauseRequested,
    PauseResumed,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
)
from footprint_core.facts import TraceRef
from footprint_core.watch import Scope
from footprint_observe import semconv as n

from . import otel_attributes as attributes
from .otel_attributes import Attributes, text

DecisionsAs: TypeAlias = Literal["spans", "notable", "events"]
"""How decisions are shipped: a span each, a span for all but plain allows, or an event each."""

_Key: TypeAlias = tuple[int, str]

_ITERATION_NOT_TOLD = 0
# What a model call that was cancelled is said to have ended with. Nothing raised, so nothing is an error.
_CANCELLED = "CancelledError"
_ERROR = Status(StatusCode.ERROR)


class _Call:
    """An open `execute_tool` span, and what is known about its call so far."""

    __slots__ = ("asked_by", "context", "outcome", "span")

    def __init__(self, span: Span, context: Context) -> None:
        self.span = span
        self.context = context
        self.outcome: Verdict | None = None
        self.asked_by: str | None = None


class Segment:
    """The spans of one segment, from its first event to its last.

    Args:
        tracer: Makes the spans.
        event: The segment's first event. Unless it resumes a run, the span that is current now becomes the
            parent of the segment's.
        decisions: How decisions are shipped.
    """

    def __init__(self, tracer: Tracer, event: AgentConfigured, *, decisions: DecisionsAs) -> None:
        # A resumed segment is a trace of its own, linked to the one before: days may lie between the two, and
        # whoever answers is not the one who asked.
        around = Context() if event.resumed else get_current()
        self._tracer = tracer
        self._decisions: DecisionsAs = decisions
        self._lock = threading.Lock()
        self._common = attributes.common(event)
        self._guardrail = {**self._common, n.SPAN_KIND: n.GUARDRAIL}
        self._parent = get_current_span(around).get_span_context()
        self._agent = self._span(
            f"{n.INVOKE_AGENT} {event.agent_name}",
            around,
            {**self._common, **attributes.agent_started(event)},
            _ns(event.time),
            links=_links_to(event.resumed_from),
        )
        self._context = set_span_in_context(self._agent, around)
        self._versions = {
            (moment, rule.name): rule.version for moment, rules in event.rules.items() for rule in rules
        }
        self._last = event.time
        self._chats: dict[int, Span] = {}
        self._calls: dict[_Key, _Call] = {}
        self._counts: dict[Verdict, int] = {"allow": 0, "deny": 0, "ask": 0}
        # Until its first model call, a resumed segment goes on with calls that were taken up before it.
        self._continuing = event.resumed
        self._evicted: ContextEvicted | None = None
        self._evictions = 0
        self._error_class: str | None = None

    @property
    def recorded(self) -> bool:
        """False when the tracer makes no spans at all; one that is merely not sampled is made."""
        made = self._agent.get_span_context()
        return self._agent.is_recording() or (made.is_valid and made.span_id != self._parent.span_id)

    def reference(self) -> TraceRef | None:
        """The ids of the `invoke_agent` span; None when nobody could find it."""
        made = self._agent.get_span_context()
        if not self._agent.is_recording() or not made.is_valid:
            return None
        return TraceRef(trace_id=format_trace_id(made.trace_id), span_id=format_span_id(made.span_id))

    def span_of(self, scope: Scope) -> Span | None:
        """The open span of what is about to run."""
        with self._lock:
            if scope.kind == "model":
                return self._chats.get(scope.iteration)
            call = None if scope.call_id is None else self._find(scope.iteration, scope.call_id)
            return None if call is None else call.span

    def take(self, event: Event) -> None:
        """Take an event of the segment, but its first."""
        with self._lock:
            self._last = event.time
            if self._evicted is not None:
                self._file_evictions(event)
            match event:
                case DecisionFiled():
                    self._decided(event)
                case ToolCallStarted():
                    key = (event.iteration, event.tool_call_id)
                    self._start_call(key, event.tool_name, event.tool_source, _ns(event.time))
                case ToolCallEnded():
                    self._end_call(event)
                case ModelCallStarted():
                    self._start_model(event)
                case ModelCallEnded():
                    self._end_model(event)
                case TurnEnded():
                    self._end(event)
                case _:
                    self._note(event)

    def abandon(self) -> None:
        """End every open span at the time of the last event: no other will come."""
        with self._lock:
            self._end_children(_ns(self._last))
            self._agent.end(_ns(self._last))

    def _decided(self, event: DecisionFiled) -> None:
        end = _ns(event.time)
        start = end if event.duration is None else end - _ns(round(event.duration * 1_000_000))
        call = None
        if event.tool_call_id is not None:
            key = (event.iteration, event.tool_call_id)
            call = self._find_or_go_on(key, event.tool_name or "", event.tool_source, start)
        if not event.shadow:
            self._counts[event.outcome] += 1
            if call is not None:
                call.outcome = event.outcome
        if event.redactions:
            told = attributes.redacted(event)
            (self._agent if call is None else call.span).add_event(n.REDACTION, told, timestamp=end)
        if self._decisions == "notable" and _plain(event):
            return
        told = attributes.decision(event, version=self._versions.get((event.moment, event.middleware)))
        if self._decisions == "events":
            (self._agent if call is None else call.span).add_event(n.DECISION, told, timestamp=end)
            return
        span = self._span(
            f"{n.DECISION} {event.middleware}",
            self._context if call is None else call.context,
            {**self._guardrail, **told},
            start,
        )
        if n.ERROR_TYPE in told:
            span.set_status(_ERROR)
        span.end(end)

    def _start_call(self, key: _Key, tool_name: str, source: str | None, start: int) -> _Call:
        span = self._span(
            f"{n.EXECUTE_TOOL} {tool_name}",
            self._context,
            {**self._common, **attributes.call_started(tool_name, key[1], source)},
            start,
        )
        call = _Call(span, set_span_in_context(span, self._context))
        if (before := self._calls.pop(key, None)) is not None:
            before.span.end(start)
        self._calls[key] = call
        return call

    def _end_call(self, event: ToolCallEnded) -> None:
        key, end = (event.iteration, event.tool_call_id), _ns(event.time)
        call = self._find_or_go_on(key, event.tool_name, event.tool_source, end)
        if call is None:
            return
        del self._calls[key]
        call.span.set_attributes(attributes.call_ended(event, outcome=call.outcome))
        if event.status == "failed":
            _failed(call.span, event.error_class)
        call.span.end(end)

    def _start_model(self, event: ModelCallStarted) -> None:
        self._continuing = False
        if (before := self._chats.pop(event.iteration, None)) is not None:
            before.end(_ns(event.time))
        self._chats[event.iteration] = self._span(
            f"{n.CHAT} {event.model}",
            self._context,
            {**self._common, **attributes.model_started(event)},
            _ns(event.time),
            kind=SpanKind.CLIENT,
        )

    def _end_model(self, event: ModelCallEnded) -> None:
        if (span := self._chats.pop(event.iteration, None)) is None:
            return
        span.set_attributes(attributes.model_ended(event))
        _failed(span, event.error_class)
        span.end(_ns(event.time))

    def _end(self, event: TurnEnded) -> None:
        if event.outcome == "paused":
            # Every call that is taken up is answered in its segment, unless it waits for a person.
            for call in self._calls.values():
                told = attributes.call_paused(outcome=call.outcome, asked_by=call.asked_by)
                call.span.set_attributes(told)
        self._end_children(_ns(event.time))
        self._agent.set_attributes(attributes.agent_ended(event, self._counts))
        if event.outcome == "failed":
            _failed(self._agent, self._error_class)
        self._agent.end(_ns(event.time))

    def _end_children(self, end: int) -> None:
        for span in (*self._chats.values(), *(call.span for call in self._calls.values())):
            span.end(end)
        self._chats.clear()
        self._calls.clear()

    def _note(self, event: Event) -> None:
        """Take an event that is a point in time; many say nothing about a span."""
        if isinstance(event, ContextEvicted):
            self._evicted, self._evictions = event, self._evictions + 1
            return
        if (told := attributes.noted(event)) is None:
            return
        span = self._agent
        if isinstance(event, PauseResumed):
            key = (_ITERATION_NOT_TOLD, event.tool_call_id)
            span = self._start_call(key, event.tool_name, None, _ns(event.time)).span
        elif isinstance(event, ArgsInvalid | PauseRequested):
            key = (event.iteration, event.tool_call_id)
            call = self._find_or_go_on(key, event.tool_name, None, _ns(event.time))
            if call is not None:
                span = call.span
                if isinstance(event, PauseRequested):
                    call.asked_by = event.middleware
        elif isinstance(event, FatalError):
            self._error_class = event.error_class
        span.add_event(event.type, told, timestamp=_ns(event.time))

    def _file_evictions(self, event: Event) -> None:
        """File the messages that left the window together as one, when another event comes."""
        last = self._evicted
        if last is None or (isinstance(event, ContextEvicted) and event.sequence == last.sequence):
            return
        # One each would push earlier events out of the span, which holds 128.
        told = attributes.evicted(last, messages=self._evictions)
        self._agent.add_event(last.type, told, timestamp=_ns(last.time))
        self._evicted, self._evictions = None, 0

    def _find(self, iteration: int, call_id: str) -> _Call | None:
        call = self._calls.get((iteration, call_id))
        if call is None and self._continuing:
            call = self._calls.pop((_ITERATION_NOT_TOLD, call_id), None)
            if call is not None:
                self._calls[iteration, call_id] = call
        return call

    def _find_or_go_on(self, key: _Key, tool_name: str, source: str | None, start: int) -> _Call | None:
        """The open call; a resumed segment opens those again that were taken up before it."""
        call = self._find(*key)
        if call is None and self._continuing:
            return self._start_call(key, tool_name, source, start)
        return call

    def _span(
        self,
        name: str,
        context: Context,
        told: Attributes,
        start: int,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
    ) -> Span:
        return self._tracer.start_span(
            text(name),
            context=context,
            kind=kind,
            attributes=told,
            links=links,
            start_time=start,
            record_exception=False,
            set_status_on_exception=False,
        )


def _ns(microseconds: int) -> int:
    return microseconds * 1000


def _plain(event: DecisionFiled) -> bool:
    return event.outcome == "allow" and not event.changed and event.answer == "given"


def _failed(span: Span, error_class: str | None) -> None:
    if error_class is None or error_class == _CANCELLED:
        return
    span.set_attribute(n.ERROR_TYPE, text(error_class))
    span.set_status(_ERROR)


def _links_to(origin: TraceRef | None) -> tuple[Link, ...]:
    if origin is None:
        return ()
    try:
        trace_id, span_id = int(origin.trace_id, 16), int(origin.span_id, 16)
    except ValueError:
        # It came with a checkpoint, so from outside; a run must not lose its spans over it.
        return ()
    flags = TraceFlags(TraceFlags.SAMPLED)
    return (Link(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)),)
