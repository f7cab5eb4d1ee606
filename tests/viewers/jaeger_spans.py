"""Spans as Jaeger's query API gives them, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Tree = tuple[str, tuple["Tree", ...]]
"""A span's name, and the trees of its children by start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What Jaeger makes of a span event: `name` is the event's."""

    name: str
    time: int
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span; ids are hex, times microseconds.

    Attributes:
        parent: The id of the span above it.
        links: Trace and span of every other one it refers to.
        tags: Its attributes, and what Jaeger makes a tag of: its kind, its status, its scope.
        resource: What is said of the process, with the service as `service.name`.
    """

    name: str
    trace_id: str
    span_id: str
    parent: str | None
    links: tuple[tuple[str, str], ...]
    start: int
    duration: int
    tags: dict[str, Any]
    logs: tuple[Log, ...]
    warnings: tuple[str, ...]
    resource: dict[str, Any]

    @property
    def at(self) -> tuple[str, str]:
        """What a link to it names."""
        return (self.trace_id, self.span_id)


def spans_of(trace: dict[str, Any]) -> tuple[Span, ...]:
    """The spans of a trace by their start, and where that is equal by their row in the ledger."""
    processes = {
        name: {"service.name": process["serviceName"], **_pairs(process["tags"])}
        for name, process in trace["processes"].items()
    }
    spans = [_span(raw, processes[raw["processID"]]) for raw in trace["spans"]]
    return tuple(sorted(spans, key=lambda span: (span.start, span.tags.get("footprint.row", 0))))


def tree(spans: Iterable[Span]) -> tuple[Tree, ...]:
    """The names of spans as trees, one for each span whose parent is not among them."""
    whole = tuple(spans)
    known = {span.span_id for span in whole}

    def below(parent: str) -> tuple[Tree, ...]:
        return tuple((span.name, below(span.span_id)) for span in whole if span.parent == parent)

    return tuple((span.name, below(span.span_id)) for span in whole if span.parent not in known)


def faults(spans: Iterable[Span]) -> list[str]:
    """What keeps a trace from being one readable tree: warnings, a second root, a span before its parent."""
    whole = tuple(spans)
    known = {span.span_id: span for span in whole}
    wrong = [f"{span.name}: {warning}" for span in whole for warning in span.warnings]
    roots = [span.name for span in whole if span.parent not in known]
    wrong += [f"{name} hangs below nothing" for name in roots[1:]]
    for span in whole:
        above = known.get(span.parent or "")
        # A start is a time less a duration, and both are rounded to a microsecond.
        if above is not None and span.start < above.start - 1:
            wrong.append(f"{span.name} begins before {above.name}")
    return wrong


def named(spans: Iterable[Span], name: str) -> list[Span]:
    """The spans whose name begins so."""
    return [span for span in spans if span.name.startswith(name)]


def _span(raw: dict[str, Any], resource: dict[str, Any]) -> Span:
    above, links = [], []
    for reference in raw["references"]:
        if reference["refType"] == "CHILD_OF" and reference["traceID"] == raw["traceID"]:
            above.append(reference["spanID"])
        else:
            links.append((reference["traceID"], reference["spanID"]))
    assert len(above) <= 1, raw
    return Span(
        name=raw["operationName"],
        trace_id=raw["traceID"],
        span_id=raw["spanID"],
        parent=above[0] if above else None,
        links=tuple(links),
        start=raw["startTime"],
        duration=raw["duration"],
        tags=_pairs(raw["tags"]),
        logs=tuple(_log(log) for log in raw["logs"]),
        warnings=tuple(raw["warnings"] or ()),
        resource=resource,
    )


def _log(raw: dict[str, Any]) -> Log:
    fields = _pairs(raw["fields"])
    return Log(name=fields.pop("event"), time=raw["timestamp"], fields=fields)


def _pairs(raw: list[dict[str, Any]]) -> dict[str, Any]:
    pairs = {pair["key"]: pair["value"] for pair in raw}
    assert len(pairs) == len(raw), raw
    return pairs
