"""What leaves the process: facts, at every default, however an agent is deployed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from facts_only.sweep import leaks, swept
from footprint_core import MemoryLedger, after_tool, allow, before_tool, deny, on_message, tool
from footprint_core.events import TurnStarted
from footprint_core.providers import call, reply
from footprint_observe import semconv
from footprint_observe.plugins import recorder, recorder_names
from otlp_receiver import OtlpReceiver, ReceivedSpan
from planted import ANSWER, WORD, World, calls, said
from recorders.otel_spans import OtelSpans
from story import Seen, answered, describe, run

OPTIONS = {
    *("id", "decisions", "tracer_provider", "meter_provider", "endpoint", "service_name", "interval"),
    *("host", "port", "ledger", "file", "to", "keep"),
}
"""Everything a recorder can be told: where to, how often, how much. None says what of a conversation."""


@tool
def looks_up(note: str) -> dict[str, Any]:
    """A tool whose input and output are worth hiding."""
    return {"for": note, said("key of the result"): [said("result")]}


@tool
async def fails(note: str) -> str:
    """A tool whose error quotes its input."""
    raise LookupError(f"{said('error')}, about {note}")


async def tools(world: World) -> None:
    """Tools that answer and that raise, one after another and together."""
    batch = [calls("looks_up"), calls("fails", id="c2"), calls("looks_up", id="c3", more=[said("argument")])]
    for together in (False, True):
        builder = world.builder([reply(calls=batch), ANSWER], looks_up, fails, parallel_tools=together)
        await builder.build().run("hello")


def test_c080_what_a_tool_is_given_and_gives_is_in_no_byte_of_any_recorder(tmp_path: Path) -> None:
    played = swept(tmp_path, {"tools": tools})
    assert played.untold == []
    places = ("argument", "key of the result", "result", "error")
    assert [place for place in places if said(place).encode() not in played.kept["tools"]] == []
    assert leaks(played.held, WORD) == []


def _parameters(made: Any) -> set[str]:
    """What a recorder's class and everything else that makes one takes."""
    makers = [made, *(getattr(made, name) for name in dir(made) if name.startswith("to_"))]
    return {name for maker in makers for name in inspect.signature(maker).parameters}


def test_c080_no_recorder_has_an_option_that_would_let_content_out() -> None:
    more = {name: _parameters(recorder(name)) - OPTIONS for name in recorder_names()}
    assert {name: options for name, options in more.items() if options} == {}


def test_c080_who_wants_to_read_more_finds_the_row_of_a_span_in_the_ledger() -> None:
    ledger = MemoryLedger()
    rule = before_tool("ceiling")(lambda asked: deny(f"too much: {asked.args['note']}"))
    with OtlpReceiver() as receiver, OtelSpans.to_otlp(receiver.endpoint) as spans:
        said_once = [reply(calls=[call("c1", "looks_up", {"note": "400"})]), reply(text="no")]
        builder, _ = describe(said_once, looks_up, watch=[spans], ledger=ledger)
        out = answered(run(builder.tool_middleware(rule).build().run("hello")))
        assert spans.flush(10)
        decision = receiver.named("middleware.decision ceiling")
        agent = receiver.named("invoke_agent tested")
    assert agent.attributes[semconv.RUN_ID] == out.run_id
    (row,) = [row for row in out.decisions if row.position == decision.attributes[semconv.ROW]]
    assert (row.outcome, row.why) == ("deny", "too much: 400")


TAKEN_OUT, PUT_IN = "zanzibar 4111-1111", "Kartenzahl-entnommen"


def _scrubbing(*, refuses: bool) -> dict[str, Any]:
    """Rules that scrub what they see at every moment; with `refuses`, no call and no result passes."""

    def scrub(text: str) -> Any:
        return allow(text.replace(TAKEN_OUT, PUT_IN), why=f"it held {TAKEN_OUT}")

    passes: dict[str, Any] = {
        "input": [on_message("in")(lambda message: scrub(message.content))],
        "before_tool": [before_tool("args")(lambda asked: scrub_args(asked.args))],
        "after_tool": [after_tool("result")(lambda ended: allow([PUT_IN], why=f"it held {TAKEN_OUT}"))],
        "output": [on_message("out")(lambda message: scrub(message.content))],
    }

    def scrub_args(args: dict[str, Any]) -> Any:
        return deny(f"{args} is not for you") if refuses else allow({"note": PUT_IN}, why=f"was {args}")

    return passes


@pytest.mark.parametrize("refuses", [False, True])
def test_c085_neither_what_a_rule_took_out_nor_what_it_put_in_is_exported(
    refuses: bool, tmp_path: Path
) -> None:
    async def scrubbed(world: World) -> None:
        asks = reply(calls=[call("c1", "looks_up", {"note": TAKEN_OUT})])
        builder = world.builder([asks, reply(text=f"it is {TAKEN_OUT}")], looks_up)
        await builder.act(**_scrubbing(refuses=refuses)).build().run(f"my number is {TAKEN_OUT}")

    played = swept(tmp_path, {"scrubbed": scrubbed})
    assert played.untold == []
    assert TAKEN_OUT.encode() in played.kept["scrubbed"]
    assert [*leaks(played.held, TAKEN_OUT), *leaks(played.held, PUT_IN)] == []


def test_c085_the_sizes_that_are_told_are_those_of_what_the_rules_let_through() -> None:
    seen = Seen()
    asks = reply(calls=[call("c1", "looks_up", {"note": TAKEN_OUT})])
    with OtlpReceiver() as receiver, OtelSpans.to_otlp(receiver.endpoint) as spans:
        builder, _ = describe([asks, reply(text="done")], looks_up, watch=[spans, seen])
        run(builder.act(**_scrubbing(refuses=False)).build().run(f"my number is {TAKEN_OUT}"))
        assert spans.flush(10)
        told = receiver.named("execute_tool looks_up").attributes
    assert told[semconv.RESULT_SIZE] == len(json.dumps([PUT_IN]))
    assert (told[semconv.RESULT_TYPE], told[semconv.ARGS_CHANGED]) == ("array", True)
    assert [event.message_chars for event in seen.of(TurnStarted)] == [len(f"my number is {PUT_IN}")]


SWITCHES = {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_and_event",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "TRACELOOP_TRACE_CONTENT": "true",
    "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS": "true",
    "OPENINFERENCE_HIDE_INPUTS": "false",
    "OPENINFERENCE_HIDE_OUTPUTS": "false",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "100000",
    "OTEL_PYTHON_LOG_LEVEL": "debug",
    "OTEL_LOG_LEVEL": "debug",
}
"""What switches content on elsewhere, in one deployment or another."""


@pytest.mark.parametrize("switched", [{}, SWITCHES], ids=["bare", "switched on"])
def test_c086_no_environment_switches_content_on(
    switched: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in switched.items():
        monkeypatch.setenv(name, value)
    played = swept(tmp_path, {"tools": tools})
    assert played.untold == []
    assert leaks(played.held, WORD) == []


def _shape(spans: Any) -> list[tuple[str, tuple[str, ...]]]:
    """The names of spans and of what they carry."""
    return sorted((span.name, tuple(sorted(span.attributes))) for span in spans)


def _received(endpoint: str, receiver: OtlpReceiver, by: str) -> list[ReceivedSpan]:
    made: Any = {"name": recorder("otel_spans"), "import": OtelSpans}[by]
    with made.to_otlp(endpoint) as spans:
        run(tools(World(spans)))
        assert spans.flush(10)
    return list(receiver.spans)


@pytest.mark.parametrize("switched", [{}, SWITCHES], ids=["bare", "switched on"])
def test_c086_the_same_is_exported_however_the_recorder_was_made_and_where_it_runs(
    switched: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in switched.items():
        monkeypatch.setenv(name, value)
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    run(tools(World(OtelSpans(tracer_provider=provider))))
    given = _shape(exporter.get_finished_spans())
    assert len(given) > 10
    for by in ("name", "import"):
        with OtlpReceiver() as receiver:
            assert _shape(_received(receiver.endpoint, receiver, by)) == given
