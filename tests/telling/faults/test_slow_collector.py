"""A collector that takes two seconds to answer: what fits into the time that is left arrives."""

from __future__ import annotations

from recorders.otel_spans import OtelSpans
from story import run
from telling.faults.collectors import SLOW_SECONDS, slow
from telling.faults.turns import SLACK_SECONDS, SPANS, agent_of, in_time, play, undisturbed


def test_a_closing_that_is_too_short_loses_the_spans_and_says_so() -> None:
    with slow() as endpoint:
        played = play(OtelSpans.to_otlp(endpoint))
    assert undisturbed(played)
    assert played.health["otel_spans"].dropped == 3 * SPANS


def test_a_closing_that_is_long_enough_loses_nothing() -> None:
    with slow() as endpoint:
        spans = OtelSpans.to_otlp(endpoint)
        run(agent_of(spans).run("go"))
        in_time(lambda: spans.close(10.0), SLOW_SECONDS + SLACK_SECONDS)
    assert (spans.dropped, spans.queued, spans.errors) == (0, 0, 0)


def test_turns_do_not_wait_while_the_collector_thinks() -> None:
    with slow() as endpoint:
        spans = OtelSpans.to_otlp(endpoint)
        agent = agent_of(spans, turns=2)
        run(agent.session().run("go"))
        assert not spans.flush(0.0)
        # The thread waits for an answer now, and goes on waiting while the next turn is played to its end.
        run(agent.session().run("go"))
        assert spans.queued == 2 * SPANS
        spans.close(0.0)
