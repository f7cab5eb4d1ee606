"""Spans that are open: what hangs below one, and how many events it has."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from footprint_observe import semconv as n
from footprint_observe.recording.names import error_class as shown_class

from .otel_values import Attributes

_MAX_NOTES = 120
ERROR = Status(StatusCode.ERROR)
"""The status of what raised."""


def fail(span: Span, error_class: str) -> None:
    """Say that it raised, and what; never with which words."""
    span.set_attribute(n.ERROR_TYPE, shown_class(error_class))
    span.set_status(ERROR)


class OpenSpan:
    """An open span.

    Args:
        span: The span.
        above: The context it was made in.
    """

    _below: Context | None = None
    _notes = 0
    _left_out = 0

    def __init__(self, span: Span, above: Context) -> None:
        self.span = span
        self._above = above

    @property
    def below(self) -> Context:
        """The context of what hangs below it; made when something does."""
        if self._below is None:
            self._below = set_span_in_context(self.span, self._above)
        return self._below

    def note(self, name: str, told: Attributes, time: int, *, last: bool = False) -> None:
        """Put an event on it, unless it has too many; the last one of a segment always.

        The SDK holds 128 and pushes out the first ones without a word, and a tool may add some of its own.
        """
        if self._notes >= _MAX_NOTES and not last:
            self._left_out += 1
            return
        self._notes += 1
        self.span.add_event(name, told, timestamp=time)

    def end(self, time: int) -> None:
        """End it."""
        if self._left_out:
            self.span.set_attribute(n.EVENTS_LEFT_OUT, self._left_out)
        self.span.end(time)
