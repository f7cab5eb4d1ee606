"""An agent of hundreds of tools, rules and long names: what is exported stays small, and arrives whole."""

from __future__ import annotations

from typing import Any

from footprint_core import Tool, allow, before_tool, tool
from footprint_core.providers import call, reply
from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from story import answered, describe, run

MANY = 300
CALLS = 4
LONG = "n" * 2000
KIB = 1024


def numbered(number: int) -> Tool:
    @tool(name=f"tool_{number}")
    def one(q: str) -> str:
        return q

    return one


def passing(number: int) -> Any:
    return before_tool(f"{LONG}-{number}")(lambda _: allow(why=LONG))


def test_whatever_an_agent_is_made_of_its_spans_are_small_and_all_of_them_arrive() -> None:
    keys = {f"{LONG}{at}": LONG for at in range(MANY)}
    calls = [call(f"c{at}", f"tool_{at}", {"q": LONG, **keys}) for at in range(CALLS)]
    with OtlpReceiver() as collector:
        spans = OtelSpans.to_otlp(collector.endpoint, service_name="storm")
        builder, _ = describe(
            [reply(calls=calls), reply(text=LONG)],
            *(numbered(at) for at in range(MANY)),
            act={"before_tool": [passing(at) for at in range(MANY)]},
            watch=[spans],
        )
        agent = builder.build()
        answer = answered(run(agent.run(LONG)))
        assert answer.text == LONG
        assert spans.flush(20.0)
        made = 1 + 2 + CALLS + len(answer.decisions)
        arrived = collector.wait(made)
        spans.close(10.0)
    assert len(answer.decisions) >= MANY * CALLS
    assert (len(arrived), spans.dropped) == (made, 0)
    for span in arrived:
        assert len(span.attributes) < 64
        assert all(_small(value) for value in span.attributes.values())
        assert len(span.name) <= 300
    assert len(collector.body) < 2 * KIB * made


def _small(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) <= 20 and all(map(_small, value))
    return not isinstance(value, str) or len(value) <= 256
