"""CPU of one governed call with its spans, beside a bare loop that makes the same spans itself, as ratios.

Run it as a program; it is no test. Both loops have the four rules and keep their rows in memory, and both
end their spans into an exporter in memory. Pairs are interleaved, garbage collection is on and untouched,
each figure is the median of the pairs, and N=200 calls decide. Behind it stands what the other recorders add
to the same run, and how long closing takes when the collector is gone. `--json FILE` writes the figures too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

sys.path.insert(0, str(Path(__file__).parent))

import bare
from loop import Ceiling, Model, Scrub, cpu
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from footprint_core import Agent, Watcher
from recorders.console import Console
from recorders.jsonl import Jsonl
from recorders.memory import Memory
from recorders.otel_metrics import OtelMetrics
from recorders.otel_spans import OtelSpans

PAIRS, DECIDES = 15, 200
DecisionsAs: TypeAlias = Literal["spans", "notable"]
BUDGETS: dict[DecisionsAs, float] = {"spans": 2.0, "notable": 2.5}
CLOSE_SECONDS = 3.0


def governed(calls: int, *watchers: Watcher) -> Agent:
    """The agent with its four rules, its ledger in memory and whoever watches."""
    builder = Agent.create(provider=Model(calls), model="m", name="bench", max_iterations=calls + 1)
    scrub: Any = Scrub()
    builder.tool(bare.Tool().lookup).watch(*watchers)
    builder.act(input=[scrub], before_tool=[Ceiling()], after_tool=[scrub], output=[scrub])
    return builder.build()


def tracing() -> tuple[TracerProvider, InMemorySpanExporter]:
    """Spans that end in memory."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


class Alike:
    """A tracer whose spans say as much as ours do: what ours said of one of each kind."""

    def __init__(self, tracer: Any, spans: Sequence[ReadableSpan]) -> None:
        self._tracer = tracer
        self._said = {span.name.partition(" ")[0]: dict(span.attributes or {}) for span in spans}

    def start_as_current_span(self, name: str, attributes: Any) -> Any:
        """The SDK's, with more attributes."""
        return self._tracer.start_as_current_span(name, attributes=self._said[name.partition(" ")[0]])

    def start_span(self, name: str, attributes: Any) -> Any:
        """The SDK's, with more attributes."""
        return self._tracer.start_span(name, attributes=self._said[name.partition(" ")[0]])


def compare(runner: asyncio.Runner, calls: int, decisions: DecisionsAs) -> dict[str, Any]:
    """CPU a call in microseconds of both loops, and their ratio; the spans a call are counted."""
    provider, exporter = tracing()
    tracer = provider.get_tracer("bare")
    found: list[tuple[float, float, float]] = []
    counted: set[tuple[int, int]] = set()
    for _ in range(PAIRS + 1):
        agent = governed(calls, OtelSpans(tracer_provider=provider, decisions=decisions))
        one = cpu(lambda: runner.run(_run(agent)))  # noqa: B023 - called at once
        ours = exporter.get_finished_spans()
        exporter.clear()
        two = reference(runner, calls, tracer, decisions)
        counted.add((len(ours) // calls, len(exporter.get_finished_spans()) // calls))
        exporter.clear()
        three = reference(runner, calls, Alike(tracer, ours), decisions)
        exporter.clear()
        found.append((one, two, three))
    found = found[1:]
    ((mine, theirs),) = counted
    return {
        "decisions": decisions,
        "calls": calls,
        "spans_a_call": mine,
        "reference_spans_a_call": theirs,
        "governed_us": statistics.median(one for one, _, _ in found) / calls * 1e6,
        "bare_us": statistics.median(two for _, two, _ in found) / calls * 1e6,
        "ratio": statistics.median(one / two for one, two, _ in found),
        "ratio_alike": statistics.median(one / three for one, _, three in found),
        "budget": BUDGETS[decisions] if calls == DECIDES else None,
    }


def reference(runner: asyncio.Runner, calls: int, tracer: Any, decisions: DecisionsAs) -> float:
    """CPU seconds of the bare loop with its own spans."""
    rules = bare.Rules(tracer if decisions == "spans" else None)
    bare.Span.tracer = tracer
    try:
        loop = bare.loop(bare.Script(calls), bare.Tool(), bare.MESSAGE, rules)
        return cpu(lambda: runner.run(loop))
    finally:
        bare.Span.tracer = None


def told(one: dict[str, Any]) -> str:
    """One line of the table."""
    what = f"4 rules, decisions={one['decisions']!r}"
    spans = f"{one['spans_a_call']}/{one['reference_spans_a_call']}"
    budget, ratio = one["budget"], one["ratio"]
    verdict = "" if budget is None else f"  budget {budget}" + ("" if ratio <= budget else "  missed")
    return (
        f"{what:<32}{one['calls']:>7}{spans:>7}{one['governed_us']:>10.1f}{one['bare_us']:>8.1f}{ratio:>8.2f}"
        f"{verdict}\n  beside spans with the attributes ours have: {one['ratio_alike']:.2f}"
    )


def others(runner: asyncio.Runner, folder: Path) -> list[dict[str, Any]]:
    """What each other recorder adds to a call, in microseconds of CPU, its own thread included."""
    makes: dict[str, Callable[[], Any]] = {
        "memory": Memory,
        "jsonl": lambda: Jsonl(folder / "events.jsonl"),
        "console": lambda: Console(file=(folder / "console.txt").open("a", encoding="utf-8")),
        "otel_metrics": lambda: OtelMetrics(meter_provider=MeterProvider([InMemoryMetricReader()])),
    }
    found: list[dict[str, Any]] = []
    for name, make in makes.items():
        added: list[float] = []
        for _ in range(PAIRS + 1):
            watched, alone = governed(DECIDES, make()), governed(DECIDES)
            added.append(
                cpu(lambda: runner.run(_run(watched, close=True)))  # noqa: B023 - called at once
                - cpu(lambda: runner.run(_run(alone, close=True)))  # noqa: B023 - called at once
            )
        found.append({"recorder": name, "added_us": statistics.median(added[1:]) / DECIDES * 1e6})
        print(f"{name} adds {found[-1]['added_us']:.1f} us a call", flush=True)
    return found


def dead_collector(runner: asyncio.Runner) -> list[dict[str, Any]]:
    """Seconds that closing takes when nobody listens, and when somebody listens and never answers."""
    found: list[dict[str, Any]] = []
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        for what, port in (("refuses", reserved.getsockname()[1]), ("is silent", silent.getsockname()[1])):
            for scheme in ("http", "grpc"):
                spans = OtelSpans.to_otlp(f"{scheme}://127.0.0.1:{port}")
                agent = governed(DECIDES, spans)
                began = time.perf_counter()
                runner.run(_run(agent))
                ran = time.perf_counter() - began
                began = time.perf_counter()
                runner.run(agent.close(timeout=CLOSE_SECONDS))
                closed = time.perf_counter() - began
                verdict = "" if closed <= CLOSE_SECONDS + 0.1 else "  missed"
                print(
                    f"a collector that {what} ({scheme}): the run of {DECIDES} calls took {ran:.3f} s, "
                    f"close({CLOSE_SECONDS:.0f}) {closed:.2f} s, lost and counted {spans.dropped}{verdict}",
                    flush=True,
                )
                case = {"collector": what, "scheme": scheme, "run_s": ran, "close_s": closed}
                found.append({**case, "dropped": spans.dropped})
    return found


async def _run(agent: Agent, *, close: bool = False) -> None:
    await agent.run(bare.MESSAGE)
    if close:
        await agent.close()


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser(description="CPU of one governed call with its spans.")
    parser.add_argument("--json", type=Path, help="Write the figures here.")
    asked = parser.parse_args()
    head = f"{'CPU per call, microseconds':<32}{'N':>7}{'spans':>7}{'governed':>10}{'bare':>8}{'ratio':>8}"
    print(head, flush=True)
    report: dict[str, Any] = {"cases": []}
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as folder:
        for decisions in BUDGETS:
            report["cases"].append(compare(runner, DECIDES, decisions))
            print(told(report["cases"][-1]), flush=True)
        report["others"] = others(runner, Path(folder))
        report["dead"] = dead_collector(runner)
    if asked.json is not None:
        asked.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
