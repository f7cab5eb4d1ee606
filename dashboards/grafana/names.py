"""What Prometheus calls our metrics and attributes, and the expressions that panels are made of."""

from __future__ import annotations

from typing import Literal

from footprint_observe import semconv

_SECONDS = frozenset(
    {
        semconv.APPROVAL_LATENCY,
        semconv.APPROVALS_OLDEST,
        semconv.MIDDLEWARE_DURATION,
        semconv.OPERATION_DURATION,
        semconv.RUN_DURATION,
        semconv.TIME_TO_FIRST_CHUNK,
        semconv.TOOL_DURATION,
    }
)
"""The metrics whose unit Prometheus puts into their name; it leaves out those that count things."""

RATE = "$__rate_interval"
"""The window of a rate over time, as Grafana chooses it."""

RANGE = "$__range"
"""The whole time that is looked at."""


def label(attribute: str) -> str:
    """The label an attribute becomes."""
    return attribute.replace(".", "_")


def gauge(metric: str) -> str:
    """The series of a gauge."""
    return label(metric) + ("_seconds" if metric in _SECONDS else "")


def counter(metric: str) -> str:
    """The series of a counter."""
    return f"{gauge(metric)}_total"


def histogram(metric: str, part: Literal["bucket", "count", "sum"]) -> str:
    """A series of a histogram."""
    return f"{gauge(metric)}_{part}"


AGENT = label(semconv.AGENT_NAME)
ANSWER = label(semconv.PAUSE_ANSWER)
MIDDLEWARE = label(semconv.MIDDLEWARE)
MOMENT = label(semconv.MOMENT)
OUTCOME = label(semconv.OUTCOME)
MODEL = label(semconv.REQUEST_MODEL)
RUN_OUTCOME = label(semconv.RUN_OUTCOME)
STATUS = label(semconv.TOOL_STATUS)
STRATEGY = label(semconv.REDACTION_STRATEGY)
TOKEN_TYPE = label(semconv.TOKEN_TYPE)
TOOL = label(semconv.CALL_TOOL)
WATCHER = label(semconv.WATCHER)

OF_AGENT = f'{AGENT}=~"$agent"'
OF_RULE = f'{OF_AGENT}, {MIDDLEWARE}=~"$rule"'
OF_TOOL = f'{OF_AGENT}, {TOOL}=~"$tool"'


def total(series: str, where: str = "", *, by: str = "", window: str = RANGE) -> str:
    """How much a counter grew within a window."""
    return f"sum{_by(by)}(increase({series}{{{where}}}[{window}]))"


def per_minute(series: str, where: str = "", *, by: str = "") -> str:
    """How much a counter grows a minute, over time."""
    return f"60 * sum{_by(by)}(rate({series}{{{where}}}[{RATE}]))"


def share(series: str, part: str, where: str, *, by: str = "", window: str = RATE) -> str:
    """The share of a counter's growth that is of one kind; 0 where there is none of that kind."""
    some = f"sum{_by(by)}(increase({series}{{{where}, {part}}}[{window}]))"
    every = f"sum{_by(by)}(increase({series}{{{where}}}[{window}]))"
    # Nothing happened in a window that has no growth at all: 0 / 0 is no rate, and is left out.
    return f"({some} or {every} * 0) / ({every} > 0)"


def quantile(q: float, metric: str, where: str = "", *, by: str = "", window: str = RATE) -> str:
    """A quantile of a histogram."""
    kept = ", ".join(filter(None, ("le", by)))
    buckets = f"sum by ({kept}) (rate({histogram(metric, 'bucket')}{{{where}}}[{window}]))"
    return f"histogram_quantile({q}, {buckets})"


def _by(labels: str) -> str:
    return f" by ({labels}) " if labels else " "
