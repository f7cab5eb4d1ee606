"""What is said of spans that wait: only while the collector does not take them."""

from __future__ import annotations

from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from story import answered, run
from telling.faults.collectors import free_port
from telling.faults.turns import SPANS, agent_of


def said(spans: OtelSpans) -> tuple[str, ...]:
    return spans.notices


def test_spans_that_wait_are_spoken_of_only_while_the_last_export_failed() -> None:
    port = free_port()
    spans = OtelSpans.to_otlp(f"http://127.0.0.1:{port}")
    agent = agent_of(spans, turns=2)
    answered(run(agent.run("go")))
    # They wait for others, and nobody has been asked to take them yet.
    assert said(spans) == ()
    assert not spans.flush(3.5)
    assert said(spans) == (
        f"{SPANS} spans wait for a collector that does not take them; look at its address.",
    )
    with OtlpReceiver(port=port):
        assert spans.flush(10.0)
        failed = spans.errors
        answered(run(agent.session().run("go")))
        assert said(spans) == ()
        spans.close(3.0)
    assert (spans.errors, spans.dropped) == (failed, 0)
    assert failed >= 1
