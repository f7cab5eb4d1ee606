"""The label sets of one metric: each is made once, says only what the table allows, and there is an end."""

from __future__ import annotations

from collections.abc import Iterator

from .otel_metrics_table import LABELS, MAX_SETS, OTHER, Metric
from .otel_values import text


class LabelSet:
    """One set of labels.

    Attributes:
        labels: The labels.
        waiting: What was added up under them and not told to the SDK yet.
    """

    __slots__ = ("labels", "waiting")

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels = labels
        self.waiting = 0


class LabelSets:
    """The label sets of a metric.

    Behind the first `MAX_SETS`, the names of further ones become `OTHER`, while words stay: however many
    agents or rules a process makes up, sums by outcome stay right, and memory stays where it is.

    Args:
        metric: The metric.
    """

    __slots__ = ("_known", "_metric", "_rest")

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._known: dict[tuple[str | None, ...], LabelSet] = {}
        self._rest: dict[tuple[str, ...], LabelSet] = {}

    def of(self, *values: str | None) -> LabelSet:
        """The set for these values, one for each label of the metric; a label that is None is left out."""
        known = self._known.get(values)
        return self._made(values) if known is None else known

    def __contains__(self, values: tuple[str | None, ...]) -> bool:
        return values in self._known

    def __iter__(self) -> Iterator[LabelSet]:
        return iter((*self._known.values(), *self._rest.values()))

    @property
    def full(self) -> bool:
        """Whether names became `OTHER` because there are too many."""
        return bool(self._rest)

    def _made(self, values: tuple[str | None, ...]) -> LabelSet:
        pairs = zip(self._metric.labels, values, strict=True)
        labels = {label: _allowed(label, value) for label, value in pairs if value is not None}
        if len(self._known) < MAX_SETS:
            return self._known.setdefault(values, LabelSet(labels))
        labels = {label: value if LABELS[label] else OTHER for label, value in labels.items()}
        return self._rest.setdefault(tuple(labels.values()), LabelSet(labels))


def _allowed(label: str, value: str) -> str:
    words = LABELS[label]
    if words is None:
        return text(value)
    return value if value in words else OTHER
