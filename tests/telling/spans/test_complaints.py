"""What people complain of elsewhere: lone roots, names that change, work that grows with the history."""

from __future__ import annotations

import sys
from typing import Any

from opentelemetry.sdk.trace import TracerProvider

from footprint_core import Agent, allow, before_tool
from footprint_core.providers import Completed, ModelRequest, Whole, call, reply
from footprint_observe import semconv
from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from story import answered, run
from traced import Traced, governed, said


class Looks:
    """A model that asks for one call after another."""

    name = "looks"

    def __init__(self, calls: int, said: str = "") -> None:
        self.calls, self.said, self.asked = calls, said, 0

    def reply(self, request: ModelRequest, /) -> Any:
        self.asked += 1
        if self.asked > self.calls:
            return Whole(Completed(text="done"))
        asked = call(f"c{self.asked}", "look", {"key": self.said})
        return Whole(reply(text=self.said, calls=[asked]))


def looking(watcher: Any, calls: int, said: str = "") -> Agent:
    async def look(key: str) -> str:
        """Look up."""
        return key

    builder = Agent.create(provider=Looks(calls, said), model="m", name="refunds", max_iterations=calls + 1)
    rules = [before_tool("looks", version="1")(lambda _: allow())]
    return builder.tool(look).act(before_tool=rules).watch(watcher).build()


def test_c088_no_step_of_a_run_is_a_root_of_its_own() -> None:
    with OtlpReceiver() as receiver:
        spans = OtelSpans.to_otlp(receiver.endpoint)
        answered(run(looking(spans, 20).run("go")))
        spans.close(5.0)
        shipped = receiver.wait(62)
    roots = [span.name for span in shipped if span.parent_id is None]
    assert roots == ["invoke_agent refunds"]
    assert {span.parent_id for span in shipped} - {None} <= {span.span_id for span in shipped}
    assert len({span.trace_id for span in shipped}) == 1


def test_c089_the_version_of_the_conventions_is_shipped_and_the_names_are_those_of_the_table() -> None:
    traced = Traced()
    traced.tell(*governed())
    scopes = {span.instrumentation_scope for span in traced.spans}
    assert [(s.name, s.schema_url) for s in scopes if s] == [
        ("footprint", "https://opentelemetry.io/schemas/1.41.0")
    ]
    names = {name for span in traced.spans for name in said(span)}
    assert names <= set(semconv.NAMES.values())
    assert {name for name in names if not name.startswith("footprint.")} == {
        "gen_ai.agent.name",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.id",
        "gen_ai.response.model",
        "gen_ai.tool.call.id",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "mcp.method.name",
        "openinference.span.kind",
    }


def test_c091_the_work_of_a_call_does_not_depend_on_how_many_came_before_it_or_on_what_was_said() -> None:
    one, short, long = (_steps(*how) for how in ((20, ""), (220, ""), (220, "x" * 100_000)))
    # Of the 200 calls more, as many steps each as of the first ones; what is said is not even looked at.
    assert abs((short - one) / 200 - one / 20) < one / 20 / 5
    assert abs(long - short) < short / 100


def _steps(calls: int, said: str) -> int:
    """How many functions of the recorder run for a run, counted and not timed."""
    watcher = OtelSpans(tracer_provider=TracerProvider(shutdown_on_exit=False))
    agent, counted = looking(watcher, calls, said), 0

    def count(frame: Any, what: str, _: object) -> None:
        nonlocal counted
        counted += what == "call" and "recorders" in frame.f_code.co_filename

    answered(run(looking(OtelSpans(), 1).run("warm")))
    sys.setprofile(count)
    try:
        answered(run(agent.run("go")))
    finally:
        sys.setprofile(None)
    return counted
