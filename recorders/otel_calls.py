"""The tool calls of one segment that are open: each has a span, from being taken up to its answer."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.trace import Tracer

from footprint_core.decisions import Verdict
from footprint_observe import semconv as n
from footprint_observe.recording.names import SegmentNames

from .otel_open import OpenSpan
from .otel_values import Attributes, began, named, text

_ITERATION_NOT_TOLD = 0
# A model can make up names of tools for as long as it is asked.
_MAX_TOOLS = 1024


class OpenCall(OpenSpan):
    """An open `execute_tool` span, and what is known about its call so far.

    Attributes:
        named: Whether the name of its tool is known.
        entered: Whether its body was entered.
        outcome: That of the last decision about it.
        asked_by: The rule that asked a person about it.
        about: What every decision about it says, once there was one.
    """

    named = True
    entered = False
    outcome: Verdict | None = None
    asked_by: str | None = None
    about: Attributes | None = None

    def name(self, tool_name: str) -> None:
        """Say which tool it is, when that was not known at its start."""
        self.named = True
        self.span.update_name(named(n.EXECUTE_TOOL, tool_name))
        self.span.set_attribute(n.CALL_TOOL, text(tool_name))

    def leave(self, *, paused: bool) -> None:
        """Say how it stands when its segment ends without an answer to it.

        A person is asked about it, or about one before it; whether its body ran meanwhile is another matter.
        """
        told: Attributes = {n.TOOL_EXECUTED: self.entered}
        if paused:
            told[n.TOOL_STATUS] = "paused"
        if self.outcome is not None:
            told[n.OUTCOME] = self.outcome
        if self.asked_by is not None:
            told[n.MIDDLEWARE] = text(self.asked_by)
        self.span.set_attributes(told)


class Calls:
    """The open calls of a segment, by iteration and id: a model repeats ids across its replies.

    Args:
        tracer: Makes the spans.
        above: What they hang below.
        common: What stands on every span of the segment.
        names: What of the names a model wrote may be shipped.
        continuing: Whether calls that were taken up before this segment may go on in it.

    Attributes:
        continuing: The same; a model call ends it.
    """

    __slots__ = ("_above", "_common", "_names", "_open", "_tools", "_tracer", "continuing")

    def __init__(
        self,
        tracer: Tracer,
        above: Context,
        common: Attributes,
        names: SegmentNames,
        *,
        continuing: bool,
    ) -> None:
        self._tracer = tracer
        self._above = above
        self._common: Attributes = {**common, n.OPERATION_NAME: n.EXECUTE_TOOL}
        self._names = names
        self._open: dict[tuple[int, str], OpenCall] = {}
        self._tools: dict[str, tuple[str, str]] = {}
        self.continuing = continuing

    def start(
        self, iteration: int, call_id: str, tool_name: str | None, source: str | None, time: int
    ) -> OpenCall:
        """Open one, at `time` in nanoseconds, like every time here."""
        told: Attributes = {**self._common, n.CALL_ID: self._names.call(call_id)}
        name = n.EXECUTE_TOOL
        if tool_name is not None:
            name, told[n.CALL_TOOL] = self._tools.get(tool_name) or self._tool(tool_name)
        if source is not None:
            told[n.TOOL_SOURCE] = text(source)
        span = self._tracer.start_span(
            name,
            context=self._above,
            attributes=told,
            start_time=time,
            record_exception=False,
            set_status_on_exception=False,
        )
        call = OpenCall(span, self._above)
        if tool_name is None:
            call.named = False
        if (before := self._open.pop((iteration, call_id), None)) is not None:
            before.end(time)
        self._open[iteration, call_id] = call
        return call

    def resume(self, call_id: str, tool_name: str, time: int) -> OpenCall:
        """Open the one a person answered about, of which the iteration is not told."""
        return self.start(_ITERATION_NOT_TOLD, call_id, tool_name, None, time)

    def find(
        self, iteration: int, call_id: str, tool_name: str | None, source: str | None, time: int
    ) -> OpenCall | None:
        """The open one; a segment that goes on opens those again that were taken up before it."""
        call = self._open.get((iteration, call_id))
        if call is not None and call.named:
            return call
        if call is None:
            if not self.continuing:
                return None
            call = self._open.pop((_ITERATION_NOT_TOLD, call_id), None)
            if call is None:
                return self.start(iteration, call_id, tool_name, source, time)
            self._open[iteration, call_id] = call
        if not call.named and tool_name is not None:
            call.name(self._names.tool(tool_name))
        return call

    def of_id(self, call_id: str, time: int) -> OpenCall | None:
        """The last open one of that id, of which neither the iteration nor the tool is told."""
        for key, call in reversed(self._open.items()):
            if key[1] == call_id:
                return call
        return self.find(_ITERATION_NOT_TOLD, call_id, None, None, time)

    def close(
        self, iteration: int, call_id: str, tool_name: str, source: str | None, time: int
    ) -> OpenCall | None:
        """Take away one that is answered, found as by `find`."""
        call = self.find(iteration, call_id, tool_name, source, began(time, None))
        self._open.pop((iteration, call_id), None)
        return call

    def leave(self, time: int, *, paused: bool) -> None:
        """End those that were not answered: of a pause, or of a segment that was interrupted."""
        for call in self._open.values():
            call.leave(paused=paused)
            call.end(time)
        self._open.clear()

    def _tool(self, tool_name: str) -> tuple[str, str]:
        """The name of a tool's spans, and its own."""
        if len(self._tools) >= _MAX_TOOLS:
            self._tools.clear()
        shown = self._names.tool(tool_name)
        made = self._tools[tool_name] = (named(n.EXECUTE_TOOL, shown), text(shown))
        return made
