"""A recorder that lets one text out, in one way, to prove that it would be found."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode, TraceFlags, Tracer

from facts_only.collector import over_http
from facts_only.shipping import Made, Shipping
from footprint_core.events import Event, TurnEnded

_NEVER = 3600_000.0


class Leaky:
    """Tells of a run's end, and beside that what nobody may be told.

    Args:
        provider: Ships its spans.
        meters: Ships its metrics.
        lets_out: How the text leaves.
        text: The text.
        id: The watcher's id.
    """

    def __init__(
        self, provider: TracerProvider, meters: MeterProvider, lets_out: Way, text: str, *, id: str
    ) -> None:
        self.id = id
        self.notices: tuple[str, ...] = ()
        self._provider = provider
        self._meters = meters
        self._lets_out = lets_out
        self._text = text

    def on_event(self, event: Event, /) -> None:
        if isinstance(event, TurnEnded):
            self.let_out(event, self._text)

    def let_out(self, event: TurnEnded, text: str) -> None:
        """Tell of the end, and let a text out."""
        with self.tracer.start_as_current_span(event.outcome) as span:
            self._lets_out(self, span, text)

    @property
    def tracer(self) -> Tracer:
        return self._provider.get_tracer("leaky")

    @property
    def meter(self) -> Meter:
        return self._meters.get_meter("leaky")

    def flush(self, timeout: float, /) -> bool:
        return self._meters.force_flush(timeout * 1000)

    def close(self, timeout: float, /) -> None:
        self._provider.shutdown()
        self._meters.shutdown(timeout * 1000)


Way: TypeAlias = Callable[[Leaky, Span, str], object]


def _link(recorder: Leaky, _: Span, text: str) -> None:
    other = SpanContext(1, 1, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    recorder.tracer.start_span("linked", links=[Link(other, {"to": text})]).end()


def _in_halves(_: Leaky, span: Span, text: str) -> None:
    half = len(text) // 2
    span.set_attributes({"first": text[:half], "last": text[half:]})


def _notice(recorder: Leaky, _: Span, text: str) -> None:
    recorder.notices = (f"{text} was lost",)


def _raised(_: Leaky, span: Span, text: str) -> None:
    span.record_exception(ValueError(text))


def _log(_: Leaky, __: Span, text: str) -> None:
    logging.getLogger("footprint").debug("what they said: %s", text)


WAYS: dict[str, Way] = {
    "as it is": lambda _, span, text: span.set_attribute("said", text),
    "in the middle of an attribute": lambda _, span, text: span.set_attribute("said", f"it was {text}!"),
    "in an array": lambda _, span, text: span.set_attribute("said", ["one", text]),
    "as the name of an attribute": lambda _, span, text: span.set_attribute(text, 1),
    "in base64": lambda _, span, text: span.set_attribute(
        "b", base64.b64encode(f"it: {text}".encode()).decode()
    ),
    "in percents": lambda _, span, text: span.set_attribute("p", quote(f"a b {text}", safe="")),
    "in hexadecimals": lambda _, span, text: span.set_attribute("h", text.encode().hex()),
    "in JSON": lambda _, span, text: span.set_attribute("j", json.dumps({"args": {"note": text}})),
    "backwards": lambda _, span, text: span.set_attribute("b", text[::-1]),
    "as a digest": lambda _, span, text: span.set_attribute("d", hashlib.sha256(text.encode()).hexdigest()),
    "cut off": lambda _, span, text: span.set_attribute("c", text[: len(text) // 2 + 1]),
    "in halves": _in_halves,
    "in the name of a span": lambda _, span, text: span.update_name(f"execute_tool {text}"),
    "in an event of a span": lambda _, span, text: span.add_event("said", {"said": text}),
    "as what was raised": _raised,
    "in a status": lambda _, span, text: span.set_status(Status(StatusCode.ERROR, text)),
    "in a link": _link,
    "in the label of a metric": lambda one, _, text: one.meter.create_counter("said").add(1, {"by": text}),
    "in the name of a metric": lambda one, _, text: one.meter.create_counter(f"said.{text.split()[1]}").add(
        1
    ),
    "in the words on a metric": lambda one, _, text: one.meter.create_counter("s", description=text).add(1),
    "in a log record": _log,
    "in a warning": lambda _, __, text: warnings.warn(text, stacklevel=1),
    "in a notice": _notice,
}
"""Every way out, by what it is called."""


def leaky(
    way: Way, text: str, *, packed: bool = False, resource: str = "", kind: type[Leaky] = Leaky
) -> Made:
    """A recorder that lets a text out on its way to a collector.

    Args:
        way: How.
        text: The text.
        packed: Whether what it ships is packed.
        resource: What its resource says.
        kind: When.
    """

    def made(stack: ExitStack, _: Path, id: str) -> Shipping:
        collected = stack.enter_context(over_http())
        packing: Any = Compression.Gzip if packed else Compression.NoCompression
        whose = Resource({"service.name": "planted", "whose": resource})
        provider = TracerProvider(resource=whose, shutdown_on_exit=False)
        spans = OTLPSpanExporter(f"{collected.endpoint}/v1/traces", compression=packing)
        provider.add_span_processor(SimpleSpanProcessor(spans))
        metrics = OTLPMetricExporter(f"{collected.endpoint}/v1/metrics", compression=packing)
        reader = PeriodicExportingMetricReader(metrics, export_interval_millis=_NEVER)
        meters = MeterProvider([reader], resource=whose, shutdown_on_exit=False)
        return Shipping(recorder=kind(provider, meters, way, text, id=id), shipped=collected.drained)

    return made
