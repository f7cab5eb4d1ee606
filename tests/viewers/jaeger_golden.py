"""What Jaeger shows of the demonstration, as golden files: `trace.json` and `trace-declined.json`.

The first is the run whose refund was approved, the second the one whose refund was declined: two traces each,
linked. Ids are numbered in the order of the tree, and what differs between equal runs is named in brackets:
seconds, and the version of a rule, which is a hash of its code as this Python compiles it.

    cd tests && python -m viewers.jaeger_golden
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from commanded import environment, installed
from viewers.jaeger import build, found
from viewers.jaeger_server import Jaeger, serving
from viewers.jaeger_spans import Span

GOLDEN = Path(__file__).parents[1] / "golden"
FILES = {"--approve": GOLDEN / "trace.json", "--decline": GOLDEN / "trace-declined.json"}
SPANS = {"--approve": 22, "--decline": 21}
"""How many spans the demonstration has: a refund that is declined has no result to decide about."""

_DIFFERENT = {"footprint.version": "(version)"}


def demonstrate(folder: Path, answer: str, endpoint: str) -> str:
    """What `footprint demo` prints that ships its spans to an endpoint.

    Raises:
        AssertionError: It failed, or complained.
    """
    command = [installed(), "demo", answer, "--db", str(folder / "demo.db"), "--otlp", endpoint]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env=environment(COLUMNS="200")
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def shown(traces: Sequence[Sequence[Span]]) -> str:
    """The traces of a run as the text of a golden file."""
    ordered = [tuple(_in_order(trace)) for trace in traces]
    numbers = {trace[0].trace_id: f"trace {at}" for at, trace in enumerate(ordered, 1)}
    every = [span for trace in ordered for span in trace]
    numbers |= {span.span_id: f"span {at}" for at, span in enumerate(every, 1)}
    numbers |= {span.tags["footprint.run.id"]: "run 1" for span in every if "footprint.run.id" in span.tags}
    told = [
        {
            "trace": numbers[trace[0].trace_id],
            "service": trace[0].resource["service.name"],
            "spans": [_told(span, numbers) for span in trace],
        }
        for trace in ordered
    ]
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def _in_order(trace: Sequence[Span], parent: str | None = None) -> Iterator[Span]:
    for span in trace:
        if span.parent == parent:
            yield span
            yield from _in_order(trace, span.span_id)


def _told(span: Span, numbers: dict[str, str]) -> dict[str, Any]:
    told = {
        "span": numbers[span.span_id],
        "below": None if span.parent is None else numbers[span.parent],
        "name": span.name,
        "links": [{"trace": numbers[trace_id], "span": numbers[span_id]} for trace_id, span_id in span.links],
        "tags": _same(span.tags, numbers),
        "logs": [{"event": log.name, **_same(log.fields, numbers)} for log in span.logs],
    }
    return {name: value for name, value in told.items() if value != []}


def _same(tags: dict[str, Any], numbers: dict[str, str]) -> dict[str, Any]:
    """The tags, as equal runs have them."""

    def same(name: str, value: Any) -> Any:
        if isinstance(value, float):
            return "(seconds)"
        return _DIFFERENT.get(name) or (numbers.get(value, value) if isinstance(value, str) else value)

    return {name: same(name, value) for name, value in sorted(tags.items())}


def read(jaeger: Jaeger, output: str, answer: str) -> tuple[tuple[Span, ...], ...]:
    """The traces of the demonstration, found as what it printed says."""
    (tag,) = [line.strip() for line in output.splitlines() if line.strip().startswith("footprint.run.id=")]
    return jaeger.wait(SPANS[answer], "footprint", tags=dict([tag.split("=")]))


def main() -> None:
    """Write the golden files anew."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(found() or build(), folder / "log") as jaeger:
            for answer, path in FILES.items():
                output = demonstrate(folder, answer, jaeger.http)
                path.write_text(shown(read(jaeger, output, answer)), encoding="utf-8")
                print(path)


if __name__ == "__main__":
    main()
