"""The event loop ends before anybody closed the agent: a recorder needs no loop."""

from __future__ import annotations

import asyncio

from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from telling.faults.turns import SPANS, agent_of


def test_spans_are_shipped_when_the_loop_is_gone() -> None:
    with OtlpReceiver() as collector:
        spans = OtelSpans.to_otlp(collector.endpoint)
        agent = agent_of(spans, turns=2)
        loop = asyncio.new_event_loop()
        loop.run_until_complete(agent.session().run("go"))
        loop.close()
        assert spans.flush(10.0)
        assert len(collector.spans) == SPANS
        agent.session().run_sync("go")
        # The agent is closed in another loop than the one it ran in.
        asyncio.run(agent.close())
        assert len(collector.spans) == 2 * SPANS
    assert (spans.dropped, spans.queued) == (0, 0)
