"""What surrounds an export: no spans are made of it, and an exporter says once an outage why it fails."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from enum import Enum

from opentelemetry.context import attach, detach, get_value, set_value

_log = logging.getLogger("footprint")
_KEY = "footprint_outage"
_SENTENCE = "Nothing is exported at the moment (%s); look at the collector and its address."
_EXPORTERS = (
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
)


class Outage:
    """One recorder's collector, and whether its exporter has said what is wrong with it."""

    def __init__(self) -> None:
        self._said = False

    @contextmanager
    def exporting(self) -> Generator[None]:
        """Around an export, in the thread that makes it."""
        # Without the mark, an instrumented HTTP client makes a span of every export of spans.
        token = attach(set_value(_KEY, self, set_value("suppress_instrumentation", True)))
        try:
            yield
        finally:
            detach(token)

    def over(self) -> None:
        """An export went well; the next outage is another one."""
        self._said = False

    def failed(self, error: Exception) -> None:
        """An export raised; say so when nothing was said yet."""
        if self.first():
            _log.warning("Nothing can be exported: %s.", type(error).__name__)

    def first(self) -> bool:
        """Whether nothing was said of this outage yet; now something is."""
        first, self._said = not self._said, True
        return first


def _once(record: logging.LogRecord) -> bool:
    """Whether a record of an exporter is worth a line; those of exporters that are not ours always are."""
    outage = get_value(_KEY)
    if not isinstance(outage, Outage):
        return True
    # A traceback through a network library adds nothing, and the texts of exporters and collectors may quote
    # an address with a key in it.
    record.exc_info = record.exc_text = None
    record.msg, record.args = _SENTENCE, (_why(record.args or ()),)
    return outage.first()


def _why(args: Iterable[object]) -> str:
    """What a record of an exporter says in its arguments, without the texts."""
    for given in args:
        if isinstance(given, Exception):
            return type(given).__name__
        if isinstance(given, Enum):
            return given.name
        if isinstance(given, int):
            return f"status {given}"
    return "no answer in time"


for _name in _EXPORTERS:
    logging.getLogger(_name).addFilter(_once)
