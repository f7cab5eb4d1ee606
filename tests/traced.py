"""A span recorder with an exporter in memory, the spans it made, and events made up for it."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import SpanContext, StatusCode

from footprint_core import events as ev
from footprint_core.watch import Scope
from recorders.otel_spans import OtelSpans

RUN = "0" * 31 + "1"
TOOLS = ("refund", "a", "a2", "b", "t0", "t1", "t2")
"""The tools that are declared when a made-up segment says nothing else."""

E = TypeVar("E", bound=ev.Event)


class Traced:
    """A recorder, and the spans it and the application made."""

    def __init__(self, *, sampler: Sampler | None = None, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("application")
        self.watcher = OtelSpans(tracer_provider=self.provider, **options)

    def tell(self, *events: ev.Event) -> None:
        for one in events:
            self.watcher.on_event(one)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Every span that ended, by start; a parent before its children."""
        ended = self.exporter.get_finished_spans()
        return tuple(sorted(ended, key=lambda s: (s.start_time or 0, -(s.end_time or 0))))

    def all_named(self, name: str) -> list[ReadableSpan]:
        return [s for s in self.spans if s.name == name]

    def named(self, name: str) -> ReadableSpan:
        found = self.all_named(name)
        assert len(found) == 1, f"{len(found)} spans are called {name!r}: {[s.name for s in self.spans]}"
        return found[0]

    def said(self, name: str) -> dict[str, Any]:
        return said(self.named(name))

    def notes(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        """The events on a span."""
        return [(note.name, dict(note.attributes or {})) for note in self.named(name).events]

    def parent(self, name: str) -> str | None:
        above = self.named(name).parent
        spans = {context(s).span_id: s.name for s in self.spans}
        return None if above is None else spans[above.span_id]

    def tree(self) -> list[Any]:
        """The names as nested lists, by start; a span whose parent is not here is a root."""
        spans = self.spans
        known = {context(s).span_id for s in spans}

        def below(parent: int | None) -> list[Any]:
            mine = [s for s in spans if _parent(s, known) == parent]
            return [[s.name, *more] if (more := below(context(s).span_id)) else s.name for s in mine]

        return below(None)

    def statuses(self) -> set[StatusCode]:
        return {s.status.status_code for s in self.spans}


def _parent(span: ReadableSpan, known: set[int]) -> int | None:
    return span.parent.span_id if span.parent is not None and span.parent.span_id in known else None


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def context(span: ReadableSpan) -> SpanContext:
    made = span.get_span_context()
    assert made is not None
    return made


def event(cls: type[E], time: int = 0, /, **known: Any) -> E:
    """An event; what is not said is blank, or None where it may be."""
    fields = {f.name: blank(f.type) for f in msgspec.structs.fields(cls) if f.required}
    return msgspec.convert({**fields, "run_id": RUN, "segment": 1, "time": time, **known}, cls)


def blank(annotation: Any) -> Any:
    origin = get_origin(annotation) or annotation
    if origin in {Union, types.UnionType}:
        inner = get_args(annotation)
        return None if type(None) in inner else blank(inner[0])
    return get_args(annotation)[0] if origin is Literal else origin()


def start(time: int = 1000, **known: Any) -> ev.AgentConfigured:
    fields = {"agent_name": "refunds", "provider": "anthropic", "model": "sonnet", "tools": TOOLS}
    return event(ev.AgentConfigured, time, **{**fields, **known})


def end(time: int, outcome: str = "answered", **known: Any) -> ev.TurnEnded:
    return event(ev.TurnEnded, time, outcome=outcome, **known)


def model_call(time: int, iteration: int = 1, **known: Any) -> list[ev.Event]:
    """A model call with what is told around it; it takes 90 microseconds."""
    usage = ev.TokenUsage(input=30, output=4)
    reply = {"iteration": iteration, "usage": usage, "stop_reason": "tool_use", **known}
    return [
        event(ev.SlotComposed, time, slot="messages", iteration=iteration),
        event(ev.IterationStarted, time, iteration=iteration),
        event(ev.ModelCallStarted, time, iteration=iteration, provider="anthropic", model="sonnet"),
        event(ev.TokenStreamed, time + 5, iteration=iteration),
        event(ev.ModelCallEnded, time + 90, **reply),
    ]


def call(time: int, call_id: str = "c1", tool: str = "refund", **known: Any) -> ev.ToolCallStarted:
    return event(ev.ToolCallStarted, time, tool_call_id=call_id, tool_name=tool, **{"iteration": 1, **known})


def answered(time: int, call_id: str = "c1", tool: str = "refund", **known: Any) -> ev.ToolCallEnded:
    fields: dict[str, Any] = {"tool_type": "function", "status": "ran", "executed": True, "iteration": 1}
    return event(ev.ToolCallEnded, time, tool_call_id=call_id, tool_name=tool, **{**fields, **known})


def decided(time: int, moment: str, rule: str, **known: Any) -> ev.DecisionFiled:
    """A decision about a message, or the call `c1` of the tool `refund`; its rule ran 10 microseconds."""
    at = "message" if moment in {"input", "output"} else "tool"
    about = {"tool_name": "refund", "tool_call_id": "c1"} if at == "tool" else {}
    base: dict[str, Any] = {"iteration": int(moment != "input"), "duration": 0.00001, "row": time}
    return event(ev.DecisionFiled, time, moment=moment, middleware=rule, at=at, **{**base, **about, **known})


def rule(time: int, name: str, call_id: str, tool: str, **known: Any) -> ev.DecisionFiled:
    """A decision about a call before it runs."""
    return decided(time, "before-tool", name, tool_call_id=call_id, tool_name=tool, **known)


def asking(time: int, call_id: str = "c1", tool: str = "refund", **known: Any) -> ev.PauseRequested:
    fields: dict[str, Any] = {"kind": "ask", "iteration": 1, "middleware": "four-eyes", **known}
    return event(ev.PauseRequested, time, tool_call_id=call_id, tool_name=tool, **fields)


def governed() -> list[ev.Event]:
    """One call of a tool of a server, and a rule at every moment."""
    source = "billing"
    answer: dict[str, Any] = {"result_type": "object", "result_bytes": 41, "args_known_keys": 2}
    return [
        start(1000, rules={"before-tool": [{"name": "ceiling", "version": "3"}]}),
        decided(1100, "input", "scrub", changed=True, redactions={"mask": 2, "drop": 1}),
        event(ev.TurnStarted, 1110),
        *model_call(1200),
        event(ev.RouteDecided, 1290, iteration=1, chosen="tool-calls"),
        call(1300, tool_source=source),
        decided(1400, "before-tool", "ceiling", tool_source=source),
        decided(1500, "after-tool", "pii", changed=True),
        answered(1600, tool_source=source, **answer),
        event(ev.IterationFinished, 1610, iteration=1),
        *model_call(1700, 2, stop_reason="stop", response_id="msg_1", response_model="sonnet-4"),
        decided(1900, "output", "codenames", outcome="deny", iteration=2),
        end(2000, "denied", iteration_count=2, total_input_tokens=60, total_output_tokens=8),
    ]


def body(call_id: str, *, run_id: str = RUN, segment: int = 1, iteration: int = 1) -> Scope:
    """The body of a tool, which is about to run."""
    return Scope(kind="tool", run_id=run_id, segment=segment, iteration=iteration, call_id=call_id)


def only(spans: Iterable[ReadableSpan]) -> ReadableSpan:
    (found,) = spans
    return found
