"""A collector that was gone: what waited for it arrives, the oldest being lost when there was too much."""

from __future__ import annotations

from footprint_core import Agent
from otlp_receiver import OtlpReceiver
from recorders.otel_spans import OtelSpans
from story import answered, run
from telling.faults.collectors import free_port, half_closing
from telling.faults.grpc_collector import grpc_collector
from telling.faults.turns import SPANS, agent_of

QUEUE = 2048
BATCH = 128


def played(agent: Agent, turns: int = 1) -> list[str]:
    """The runs of so many turns."""

    async def play() -> list[str]:
        return [answered(await agent.session().run("go")).run_id for _ in range(turns)]

    return run(play())


def outage(scheme: str) -> tuple[OtelSpans, int]:
    """A recorder with the spans of two turns, between which a flush met nobody."""
    port = free_port()
    spans = OtelSpans.to_otlp(f"{scheme}://127.0.0.1:{port}")
    agent = agent_of(spans, turns=2)
    played(agent)
    assert not spans.flush(3.5)
    played(agent)
    health = agent.health().watchers[0]
    assert (health.dropped, health.queued) == (0, 2 * SPANS)
    assert health.errors >= 1
    return spans, port


def test_spans_wait_for_a_collector_that_is_away() -> None:
    spans, port = outage("http")
    with OtlpReceiver(port=port) as collector:
        assert spans.flush(10.0)
        assert len(collector.spans) == 2 * SPANS
        spans.close(3.0)
    assert (spans.dropped, spans.queued) == (0, 0)


def test_spans_wait_for_a_collector_that_is_away_over_grpc() -> None:
    spans, port = outage("grpc")
    with grpc_collector(port=port) as (came, _):
        assert spans.flush(10.0)
        assert len(set(came.span_ids)) == len(came.span_ids) == 2 * SPANS
        spans.close(3.0)
    assert (spans.dropped, spans.queued) == (0, 0)


def test_a_collector_that_was_restarted_gets_what_came_before_and_behind() -> None:
    with OtlpReceiver() as first:
        spans = OtelSpans.to_otlp(first.endpoint)
        agent = agent_of(spans, turns=2)
        played(agent)
        assert spans.flush(10.0)
        port = int(first.endpoint.rpartition(":")[2])
    played(agent)
    with OtlpReceiver(port=port) as second:
        assert spans.flush(10.0)
        assert (len(first.spans), len(second.spans)) == (SPANS, SPANS)
        spans.close(3.0)


def test_a_connection_that_was_closed_meanwhile_loses_nothing() -> None:
    with half_closing() as endpoint:
        spans = OtelSpans.to_otlp(endpoint)
        agent = agent_of(spans, turns=5)
        for _ in range(5):
            played(agent)
            assert spans.flush(10.0)
        spans.close(3.0)
    assert (spans.dropped, spans.errors) == (0, 0)


def test_when_there_is_too_much_the_oldest_are_lost_and_counted() -> None:
    port = free_port()
    spans = OtelSpans.to_otlp(f"http://127.0.0.1:{port}")
    turns = (QUEUE + BATCH) // SPANS + 30
    agent = agent_of(spans, turns=turns)
    runs = played(agent, turns)
    health = agent.health().watchers[0]
    assert health.dropped + health.queued == turns * SPANS
    assert QUEUE <= health.queued <= QUEUE + BATCH
    assert f"{health.dropped} spans were lost; look at the collector and its address." in health.notices
    with OtlpReceiver(port=port) as collector:
        # Its answer does not count: spans are lost meanwhile, as a batch comes back to a queue that is full.
        spans.flush(15.0)
        arrived = collector.wait(QUEUE)
        assert len(arrived) + spans.dropped == turns * SPANS
        assert len({span.span_id for span in arrived}) == len(arrived)
        spans.close(3.0)
    which = {span.attributes.get("footprint.run.id") for span in arrived}
    assert runs[-1] in which
    # The very oldest were in the batch that was being exported.
    assert runs[BATCH // SPANS + 4] not in which
