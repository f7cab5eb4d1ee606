"""A collector that is down, silent, overloaded or refuses: a run is what it is, and every span is counted."""

from __future__ import annotations

import logging

import pytest

from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from story import run
from telling.faults.collectors import FAULTS, Fault
from telling.faults.turns import CLOSE_SECONDS, SLACK_SECONDS, SPANS, agent_of, in_time, play, undisturbed

EVERY = pytest.mark.parametrize("fault", [pytest.param(fault, id=name) for name, fault in FAULTS.items()])


@EVERY
def test_a_run_is_what_it_is_and_its_spans_are_lost_and_counted(
    fault: Fault, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with fault() as endpoint, caplog.at_level(logging.WARNING):
        played = play(OtelSpans.to_otlp(endpoint))
    assert undisturbed(played)
    health = played.health["otel_spans"]
    assert (health.dropped, health.queued, health.failures) == (3 * SPANS, 0, 0)
    assert any(f"{3 * SPANS} spans were lost" in notice for notice in health.notices)
    said = list(caplog.records)
    assert f"The recorder otel_spans lost {3 * SPANS} spans when it closed." in caplog.messages
    # And one sentence at most about why.
    assert len(said) <= 2
    assert not any(one.exc_info for one in said)
    assert "Traceback" not in capfd.readouterr().err


@EVERY
def test_a_flush_keeps_its_time_and_says_that_nothing_was_shipped(fault: Fault) -> None:
    with fault() as endpoint:
        spans = OtelSpans.to_otlp(endpoint)
        run(agent_of(spans).run("go"))
        assert not in_time(lambda: spans.flush(0.5), 0.5 + SLACK_SECONDS)
        in_time(lambda: spans.close(CLOSE_SECONDS), CLOSE_SECONDS + SLACK_SECONDS)
        assert (spans.dropped, spans.queued) == (SPANS, 0)


def test_a_failed_export_is_counted_as_an_error_and_the_next_outage_has_a_sentence_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with OtlpReceiver(status=400) as collector, caplog.at_level(logging.WARNING, "opentelemetry"):
        spans = OtelSpans.to_otlp(collector.endpoint)
        agent = agent_of(spans, turns=6)
        for status, flushed in ((400, False), (400, False), (200, True), (400, False), (400, False)):
            collector.status = status
            run(agent.session().run("go"))
            assert spans.flush(10.0) is flushed
        assert (spans.errors, spans.dropped) == (4, 4 * SPANS)
        assert agent.health().watchers[0].errors == 4
        spans.close(10.0)
    assert len(caplog.records) == 2
