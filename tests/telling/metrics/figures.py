"""What a recorder counted, read as a collector would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader

from file_ledger import select
from recorders.otel_metrics import OtelMetrics

Labels = dict[str, str]


class Metered:
    """A recorder on a meter provider of its own, and its figures."""

    def __init__(self, **options: Any) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)
        self.recorder = OtelMetrics(meter_provider=self.provider, **options)

    def points(self) -> Iterator[tuple[str, Labels, Any]]:
        """Every point there is now: its metric, its labels, and itself."""
        data = self._reader.get_metrics_data()
        for group in () if data is None else data.resource_metrics:
            for scope in group.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        labels = {label: str(value) for label, value in (point.attributes or {}).items()}
                        yield metric.name, labels, point

    def by(self, metric: str, *labels: str, zeros: bool = False) -> dict[tuple[str | None, ...], float]:
        """The sums of a counter, or how many numbers a histogram has, by these labels."""
        out: Counter[tuple[str | None, ...]] = Counter()
        for name, found, point in self.points():
            if name == metric:
                number = point.count if isinstance(point, HistogramDataPoint) else point.value
                out[tuple(found.get(label) for label in labels)] += number
        return {key: number for key, number in out.items() if number or zeros}

    def all(self, metric: str) -> float | None:
        """The sum over all labels; None when there is no point."""
        return self.by(metric, zeros=True).get(())

    def sum(self, metric: str, **only: str) -> float:
        """The sum of the numbers of a histogram, of the points with these labels (`_` for `.`)."""
        return sum(
            float(point.sum)
            for name, labels, point in self.points()
            if name == metric and only.items() <= {k.replace(".", "_"): v for k, v in labels.items()}.items()
        )


def counted(path: Path, query: str) -> dict[tuple[Any, ...], float]:
    """What a query counts: its last column by the others."""
    rows: Sequence[tuple[Any, ...]] = select(path, query)
    return {row[:-1]: row[-1] for row in rows if row[-1]}
