"""A run as a tree of spans: what hangs where, and what each span says."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from footprint_core import events as ev
from footprint_observe import semconv
from traced import RUN, Traced, answered, call, decided, end, event, governed, model_call, said, start


def test_a_governed_run_is_one_tree() -> None:
    traced = Traced()
    traced.tell(*governed())
    assert traced.tree() == [
        [
            "invoke_agent refunds",
            "middleware.decision scrub",
            "chat sonnet",
            ["execute_tool refund", "middleware.decision ceiling", "middleware.decision pii"],
            "chat sonnet",
            "middleware.decision codenames",
        ]
    ]
    assert {s.kind for s in traced.spans if s.name == "chat sonnet"} == {SpanKind.CLIENT}
    assert traced.statuses() == {StatusCode.UNSET}


def test_the_agent_span_says_what_the_run_was_and_came_to() -> None:
    traced = Traced()
    traced.tell(*governed())
    span = traced.named("invoke_agent refunds")
    assert (span.start_time, span.end_time, span.kind) == (1_000_000, 2_000_000, SpanKind.INTERNAL)
    assert said(span) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "refunds",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "sonnet",
        "footprint.run.id": RUN,
        "footprint.segment": 1,
        "footprint.run.outcome": "denied",
        "footprint.iterations": 2,
        "footprint.decisions.allow": 3,
        "footprint.decisions.deny": 1,
        "footprint.decisions.ask": 0,
        "footprint.usage.total.input_tokens": 60,
        "footprint.usage.total.output_tokens": 8,
    }


def test_a_call_span_says_what_became_of_the_call() -> None:
    traced = Traced()
    traced.tell(*governed())
    span = traced.named("execute_tool refund")
    assert (span.start_time, span.end_time) == (1_300_000, 1_600_000)
    assert said(span) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.name": "refunds",
        "gen_ai.tool.name": "refund",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "footprint.tool.source": "billing",
        "footprint.tool.executed": True,
        "footprint.tool.status": "ran",
        "footprint.outcome": "allow",
        "footprint.args.changed": False,
        "footprint.args.known_keys": 2,
        "footprint.args.unknown_keys": 0,
        "footprint.result.type": "object",
        "footprint.result.size": 41,
        "mcp.method.name": "tools/call",
    }


def test_a_decision_span_is_as_long_as_its_rule_ran() -> None:
    traced = Traced()
    traced.tell(*governed())
    span = traced.named("middleware.decision ceiling")
    assert (span.start_time, span.end_time) == (1_390_000, 1_400_000)
    assert said(span) == {
        "gen_ai.agent.name": "refunds",
        "footprint.moment": "before-tool",
        "footprint.middleware": "ceiling",
        "footprint.outcome": "allow",
        "footprint.changed": False,
        "footprint.iteration": 1,
        "footprint.tool.name": "refund",
        "footprint.tool.source": "billing",
        "footprint.tool.call.id": "c1",
        "footprint.row": 1400,
        "footprint.version": "3",
        "openinference.span.kind": "GUARDRAIL",
    }
    assert traced.said("middleware.decision scrub")["footprint.redactions"] == 3
    assert [n.name for n in traced.named("invoke_agent refunds").events] == ["footprint.redaction"]


def test_a_model_span_carries_the_usage_and_no_other_span_does() -> None:
    traced = Traced()
    reply: dict[str, Any] = {
        "cache_read": 20,
        "cache_write": 5,
        "first_chunk": 0.25,
        "response_id": "r",
        "stop_reason": "stop",
    }
    traced.tell(start(conversation_id="conv"), *model_call(1100, **reply), end(1300))
    assert traced.said("chat sonnet") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.agent.name": "refunds",
        "gen_ai.conversation.id": "conv",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "sonnet",
        "gen_ai.response.id": "r",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 4,
        "gen_ai.usage.cache_read.input_tokens": 20,
        "gen_ai.usage.cache_creation.input_tokens": 5,
    }
    agent = traced.said("invoke_agent refunds")
    assert agent["gen_ai.conversation.id"] == "conv"
    assert not [name for name in agent if name.startswith("gen_ai.usage.")]


def test_every_attribute_has_its_name_from_the_table_and_every_span_the_agent() -> None:
    for decisions in ("spans", "notable", "events"):
        traced = Traced(decisions=decisions)
        traced.tell(*governed())
        known = set(semconv.NAMES.values())
        for span in traced.spans:
            assert span.name.split(" ")[0] in semconv.SPANS
            assert said(span).keys() <= known
            assert len(said(span)) < 64
            assert said(span)["gen_ai.agent.name"] == "refunds"
            assert {name for note in span.events for name in note.attributes or {}} <= known


def test_a_denied_call_is_no_error_and_names_its_rule() -> None:
    traced = Traced()
    traced.tell(
        start(),
        call(1100),
        decided(1200, "before-tool", "ceiling", outcome="deny", answer="raised", error_class="KeyError"),
        answered(1300, status="denied", executed=False, decided_by_rule="ceiling", error_class="KeyError"),
        end(1400),
    )
    denied, ceiling = traced.named("execute_tool refund"), traced.named("middleware.decision ceiling")
    assert denied.status.status_code is StatusCode.UNSET
    assert said(denied)["footprint.tool.status"] == "denied"
    assert said(denied)["footprint.tool.executed"] is False
    assert said(denied)["footprint.outcome"] == "deny"
    assert said(denied)["footprint.middleware"] == "ceiling"
    assert "error.type" not in said(denied)
    assert (ceiling.status.status_code, ceiling.status.description) == (StatusCode.ERROR, None)
    assert said(ceiling)["error.type"] == "KeyError"
    assert traced.named("invoke_agent refunds").status.status_code is StatusCode.UNSET


def test_what_raised_is_an_error_with_its_class_and_nothing_else() -> None:
    traced = Traced()
    traced.tell(
        start(),
        call(1100),
        answered(1300, status="failed", error_class="OSError"),
        *model_call(1400, 2, error_class="APIError", usage=None, stop_reason=None),
        event(ev.FatalError, 1500, error_class="ProviderError", stage="model"),
        end(1600, "failed"),
    )
    expected = {"execute_tool refund": "OSError", "chat sonnet": "APIError"}
    for name, error in {**expected, "invoke_agent refunds": "ProviderError"}.items():
        span = traced.named(name)
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert said(span)["error.type"] == error
    (note,) = traced.named("invoke_agent refunds").events
    assert (note.name, note.timestamp) == ("error.fatal", 1_500_000)


def test_a_cancelled_model_call_is_no_error() -> None:
    traced = Traced()
    traced.tell(start(), *model_call(1400, error_class="CancelledError"), end(1600, "cancelled"))
    assert traced.statuses() == {StatusCode.UNSET}


def test_notable_leaves_out_plain_allows_only() -> None:
    traced = Traced(decisions="notable")
    traced.tell(*governed())
    names = [s.name for s in traced.spans if s.name.startswith("middleware")]
    assert names == ["middleware.decision scrub", "middleware.decision pii", "middleware.decision codenames"]
    assert traced.said("invoke_agent refunds")["footprint.decisions.allow"] == 3


def test_a_shadow_decision_says_so_and_counts_for_nothing() -> None:
    traced = Traced()
    shadow = decided(1200, "before-tool", "trial", outcome="deny", shadow=True)
    traced.tell(start(), call(1100), shadow, answered(1300), end(1400))
    assert traced.said("middleware.decision trial")["footprint.shadow"] is True
    assert "footprint.outcome" not in traced.said("execute_tool refund")
    assert traced.said("invoke_agent refunds")["footprint.decisions.deny"] == 0


def test_a_call_of_a_server_that_was_refused_is_no_request_to_it() -> None:
    traced = Traced()
    refused = answered(1300, status="denied", executed=False, tool_source="billing")
    traced.tell(start(), call(1100, tool_source="billing"), refused, end(1400))
    told = traced.said("execute_tool refund")
    assert told["footprint.tool.source"] == "billing"
    assert "mcp.method.name" not in told


def test_a_tool_that_raised_a_cancellation_of_its_own_raised() -> None:
    traced = Traced()
    raised = answered(1300, status="failed", error_class="CancelledError")
    traced.tell(start(), call(1100), raised, end(1400))
    assert traced.named("execute_tool refund").status.status_code is StatusCode.ERROR
    assert traced.said("execute_tool refund")["error.type"] == "CancelledError"


def test_what_did_not_raise_is_no_error() -> None:
    traced = Traced()
    traced.tell(start(), call(1100), call(1100, "c2"), call(1100, "c3"), call(1100, "c4"), call(1100, "c5"))
    kinds = {"c1": "blocked", "c2": "unknown", "c3": "invalid", "c4": "cancelled", "c5": "denied"}
    for call_id, status in kinds.items():
        traced.tell(answered(1200, call_id, status=status, executed=False, error_class="OSError"))
    traced.tell(end(1300, "halted"))
    assert traced.statuses() == {StatusCode.UNSET}
    assert not [s for s in traced.spans if "error.type" in said(s)]


def test_a_tool_and_an_id_that_only_the_model_knows_are_not_named() -> None:
    secret = "sk-live-4242424242424242"
    traced = Traced()
    known = decided(1150, "before-tool", "ceiling", tool_call_id=secret, tool_name=secret)
    traced.tell(start(), call(1100, secret, secret), known, answered(1200, secret, secret), end(1300))
    told = traced.said("execute_tool (unknown)")
    assert (told["gen_ai.tool.name"], told["gen_ai.tool.call.id"]) == ("(unknown)", "(id 1)")
    told = traced.said("middleware.decision ceiling")
    assert (told["footprint.tool.name"], told["footprint.tool.call.id"]) == ("(unknown)", "(id 1)")
    assert traced.parent("middleware.decision ceiling") == "execute_tool (unknown)"


@pytest.mark.parametrize(
    ("server", "address", "port"),
    [
        ("api.example.com", "api.example.com", None),
        ("localhost:8080", "localhost", 8080),
        ("[::1]:8080", "::1", 8080),
        ("::1", "::1", None),
        ("unix:/run/model.sock", "unix:/run/model.sock", None),
        (":8080", ":8080", None),
    ],
)
def test_the_server_of_a_model_is_a_host_and_a_port(server: str, address: str, port: int | None) -> None:
    traced = Traced()
    asked = event(ev.ModelCallStarted, 1100, iteration=1, provider="ollama", model="sonnet", server=server)
    traced.tell(start(), asked, event(ev.ModelCallEnded, 1200, iteration=1), end(1300))
    told = traced.said("chat sonnet")
    assert (told["server.address"], told.get("server.port")) == (address, port)
