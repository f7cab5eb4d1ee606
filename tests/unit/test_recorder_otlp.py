"""From a run to a collector: spans over the wire, and a collector that is slow, gone or refuses."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.trace import get_tracer_provider

from footprint_core import events as ev
from footprint_core.errors import RecorderError
from footprint_core.facts import TraceRef
from footprint_core.watch import Scope
from otlp_receiver import OtlpReceiver
from recorders import otel_spans
from recorders.otel_pipeline import span_exporter
from recorders.otel_spans import OtelSpans
from recorders.otlp_endpoint import parsed


def run(run_id: str = "r1", *, resumed_from: TraceRef | None = None) -> list[ev.Event]:
    """A run with one decision, begun or resumed."""
    at: dict[str, Any] = {"run_id": run_id, "segment": 1, "sequence": 1}
    return [
        ev.AgentConfigured(
            **at,
            time=1_700_000_000_000_000,
            agent_id="a",
            agent_name="refunds",
            conversation_id=None,
            provider="scripted",
            model="m",
            window=None,
            rules={},
            tools=(),
            streaming=False,
            resumed=resumed_from is not None,
            resumed_from=resumed_from,
        ),
        ev.ModelCallStarted(
            **at,
            time=1_700_000_000_000_100,
            iteration=1,
            provider="scripted",
            model="m",
            server="localhost",
            messages_count=1,
            tools_count=0,
        ),
        ev.ModelCallEnded(
            **at,
            time=1_700_000_000_000_200,
            iteration=1,
            tool_call_count=0,
            usage=None,
            cache_read=None,
            cache_write=None,
            response_model=None,
            response_id=None,
            first_chunk=None,
            stop_reason="stop",
            error_class=None,
            duration=0.0001,
        ),
        ev.TurnEnded(
            **at,
            time=1_700_000_000_000_300,
            outcome="answered",
            iteration_count=1,
            total_input_tokens=0,
            total_output_tokens=0,
            duration=0.0003,
            stopped_early=None,
        ),
    ]


def tell(watcher: OtelSpans, *runs: list[ev.Event]) -> None:
    for events in runs:
        for event in events:
            watcher.on_event(event)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_run_arrives_at_the_collector() -> None:
    origin = TraceRef(trace_id="a" * 32, span_id="b" * 16)
    with OtlpReceiver() as collector:
        watcher = OtelSpans.to_otlp(collector.endpoint, service_name="shop")
        tell(watcher, run(resumed_from=origin))
        assert watcher.flush(10.0)
        spans = collector.wait(2)
        watcher.close(10.0)
        assert collector.tree() == (("invoke_agent refunds", (("chat m", ()),)),)
        agent, chat = spans
        assert (agent.start, agent.end) == (1_700_000_000_000_000_000, 1_700_000_000_000_300_000)
        assert (agent.kind, chat.kind, agent.status, agent.scope) == (
            "INTERNAL",
            "CLIENT",
            "UNSET",
            "footprint",
        )
        assert agent.links == ((origin.trace_id, origin.span_id),)
        assert chat.parent_id == agent.span_id
        assert chat.attributes["gen_ai.response.finish_reasons"] == ("stop",)
        assert chat.attributes["server.address"] == "localhost"
        assert agent.resource["service.name"] == "shop"
    assert (watcher.dropped, watcher.notices) == (0, ())


def test_the_ids_of_a_row_are_those_of_the_span_that_arrives() -> None:
    with OtlpReceiver() as collector, OtlpReceiver() as other:
        watcher = OtelSpans.to_otlp(f"{collector.endpoint}/v1/traces")
        begun, *rest = run()
        watcher.on_event(begun)
        ids = watcher.correlation("r1", 1)
        tell(watcher, rest)
        watcher.close(10.0)
        span = collector.named("invoke_agent refunds")
        assert ids == TraceRef(trace_id=span.trace_id, span_id=span.span_id)
        assert span.resource["service.name"] == "footprint"
        assert other.spans == ()


def test_closing_ends_open_spans_and_ships_them() -> None:
    with OtlpReceiver() as collector:
        watcher = OtelSpans.to_otlp(collector.endpoint)
        tell(watcher, run()[:2])
        watcher.close(10.0)
        assert {span.end for span in collector.wait(2)} == {1_700_000_000_000_100_000}


def test_a_collector_that_never_answers_blocks_nothing_and_the_losses_are_counted(
    silent_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = OtelSpans.to_otlp(f"http://127.0.0.1:{silent_port}")
    tell(watcher, *(run(f"r{number}") for number in range(200)))
    assert not watcher.flush(0.05)
    closer = threading.Thread(target=watcher.close, args=(0.1,), daemon=True)
    with caplog.at_level(logging.WARNING, "footprint"):
        closer.start()
        closer.join(2.5)
    assert not closer.is_alive()
    assert watcher.dropped == 400
    assert watcher.notices == ("400 spans were lost; look at the collector and its address.",)
    assert "The recorder otel_spans lost 400 spans when it closed." in caplog.messages


def test_a_collector_that_is_gone_costs_the_spans_and_no_more_time_than_allowed() -> None:
    watcher = OtelSpans.to_otlp(f"http://127.0.0.1:{closed_port()}")
    tell(watcher, run())
    closer = threading.Thread(target=watcher.close, args=(0.5,), daemon=True)
    closer.start()
    closer.join(10)
    assert not closer.is_alive()
    assert watcher.dropped == 2


def test_a_collector_that_refuses_is_a_loss_that_is_counted() -> None:
    with OtlpReceiver(status=400) as collector:
        watcher = OtelSpans.to_otlp(collector.endpoint)
        tell(watcher, run())
        assert not watcher.flush(10.0)
        collector.wait_requests(1)
        assert (watcher.dropped, collector.spans) == (2, ())
        collector.status = 200
        tell(watcher, run())
        assert watcher.flush(10.0)
        watcher.close(10.0)
        assert (watcher.dropped, len(collector.spans)) == (2, 2)


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "localhost:4318",
        "ftp://user:secret@host",
        "http://",
        "http://host:port",
        "http://a b",
        "grpc:",
        None,
    ],
)
def test_a_bad_endpoint_is_refused_and_not_repeated(endpoint: Any) -> None:
    with pytest.raises(RecorderError) as caught:
        OtelSpans.to_otlp(endpoint)
    assert str(caught.value) == (
        "That is no OTLP endpoint; give http://host:port, https://host:port or grpc://host:port."
    )


def test_grpc_is_spoken_when_it_is_asked_for() -> None:
    for endpoint in ("grpc://localhost:4317", "grpcs://[::1]", "http://localhost:4318"):
        exporter = span_exporter(parsed(endpoint, path="/v1/traces"))
        assert ("grpc" in type(exporter).__module__) is endpoint.startswith("grpc")
        exporter.shutdown()


def test_no_global_provider_is_set_and_the_global_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    before = get_tracer_provider()
    with OtlpReceiver() as collector:
        mine = OtelSpans.to_otlp(collector.endpoint)
        assert get_tracer_provider() is before
        tell(mine, run())
        mine.close(10.0)

        class Global:
            asked = 0

            def get_tracer(self, name: str, **_options: Any) -> Any:
                Global.asked += name == "footprint"
                return before.get_tracer(name)

        monkeypatch.setattr(otel_spans, "get_tracer_provider", Global)
        with OtelSpans().enclose(Scope(kind="model", run_id="r", segment=1, iteration=1)):
            assert Global.asked == 1


@pytest.mark.parametrize(("said", "expected"), [(None, "footprint"), ("billing", "billing")])
def test_the_environment_names_the_service(
    monkeypatch: pytest.MonkeyPatch, said: str | None, expected: str
) -> None:
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    if said is not None:
        monkeypatch.setenv("OTEL_SERVICE_NAME", said)
    with OtlpReceiver() as collector:
        watcher = OtelSpans.to_otlp(collector.endpoint)
        tell(watcher, run())
        watcher.close(10.0)
        assert {span.resource["service.name"] for span in collector.spans} == {expected}


def test_an_environment_that_no_exporter_can_follow_is_refused_without_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "zanzibar")
    with pytest.raises(RecorderError, match="OTEL_EXPORTER_OTLP_") as refused:
        OtelSpans.to_otlp("grpc://127.0.0.1:1")
    assert "zanzibar" not in str(refused.value)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://host:4318", "http://host:4318/v1/traces"),
        ("http://host:4318/", "http://host:4318/v1/traces"),
        ("https://host/otlp", "https://host/otlp/v1/traces"),
        ("https://host/otlp/v1/traces", "https://host/otlp/v1/traces"),
        ("http://host/otlp?key=1", "http://host/otlp/v1/traces?key=1"),
    ],
)
def test_the_path_of_the_signal_stands_behind_that_of_the_collector(endpoint: str, url: str) -> None:
    assert parsed(endpoint, path="/v1/traces").target == url
