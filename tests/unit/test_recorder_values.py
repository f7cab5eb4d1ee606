"""Values the SDK or the wire cannot hold: bounded, made fit, or left out."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from footprint_core import events as ev
from footprint_core.facts import RuleRef
from recorders.otel_values import began, clean, named, nanoseconds, text, whole
from traced import Traced, answered, call, decided, end, event, model_call, said, start

HUGE = 2**70


def test_values_the_sdk_cannot_hold_are_made_fit() -> None:
    traced = Traced()
    usage = ev.TokenUsage(input=2**70, output=-(2**70))
    reply: dict[str, Any] = {"usage": usage, "response_model": "m\ud800" + "x" * 300}
    traced.tell(start(agent_name="\udfff" + "a" * 400), *model_call(1100, **reply), end(1300))
    chat = traced.said("chat sonnet")
    assert (chat["gen_ai.usage.input_tokens"], chat["gen_ai.usage.output_tokens"]) == (2**63 - 1, -(2**63))
    assert chat["gen_ai.response.model"] == "m?" + "x" * 254
    assert chat["gen_ai.agent.name"] == "?" + "a" * 255
    assert all(len(s.name) <= 256 and s.name.encode() for s in traced.spans)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("refund desk", "refund desk"),
        ("søk \U0001f600", "søk \U0001f600"),
        ("no\xa0break \u200d joiner", "no\xa0break \u200d joiner"),
        ("a\nb\x00c\x1b[31md\x85e\x7f", "a?b?c?[31md?e?"),
        ("right \u202e to left \u2066", "right ? to left ?"),
        ("\ud800half\udfff", "?half?"),
        ("x" * 1_000_000, "x" * 256),
        ("", ""),
    ],
)
def test_a_text_is_short_and_can_be_written_and_looked_at(given: str, shown: str) -> None:
    assert text(given) == shown
    assert text(given).encode().decode() == shown


def test_the_name_of_a_span_is_as_short_as_a_text() -> None:
    assert named("chat", "m" * 1_000_000) == "chat " + "m" * 251
    assert named("chat", "a\nb") == "chat a?b"


def test_numbers_and_instants_stay_within_what_the_wire_holds() -> None:
    assert (whole(HUGE), whole(-HUGE), whole(-5)) == (2**63 - 1, -(2**63), -5)
    assert (nanoseconds(5), nanoseconds(-5)) == (5_000, 0)
    assert 0 < nanoseconds(HUGE) < 2**63


@pytest.mark.parametrize("duration", [None, -1.0, math.nan, math.inf, -math.inf, 1e300, 1.0])
def test_what_cannot_have_taken_so_long_took_a_nanosecond(duration: float | None) -> None:
    assert began(900_000_000, duration) == 899_999_999


def test_what_took_no_time_took_a_nanosecond_and_nothing_begins_before_all_time() -> None:
    assert began(900_000_000, 0.0) == 899_999_999
    assert (began(0, 0.0), began(0, None)) == (0, 0)


def test_what_took_its_time_began_before() -> None:
    assert began(1_000_000_000, 0.25) == 750_000_000


def test_facts_are_kept_known_and_finite_and_lists_short() -> None:
    names = tuple(f"n{number}" for number in range(50))
    facts: dict[str, Any] = {"a": None, "b": math.nan, "c": math.inf, "d": 0.5, "e": False, "f": names}
    assert clean(facts) == {"d": 0.5, "e": False, "f": names[:20]}


def test_a_segment_of_impossible_numbers_is_shipped_all_the_same() -> None:
    traced = Traced()
    reply: dict[str, Any] = {"cache_read": HUGE, "cache_write": -HUGE, "first_chunk": math.nan}
    sizes: dict[str, Any] = {"args_known_keys": HUGE, "args_unknown_keys": -HUGE, "result_bytes": HUGE}
    traced.tell(
        start(-5),
        *model_call(HUGE, **reply),
        call(-1),
        decided(5, "before-tool", "r", row=HUGE, iteration=1, duration=math.inf, redactions={"mask": HUGE}),
        answered(HUGE, **sizes),
        end(HUGE, iteration_count=HUGE, total_input_tokens=HUGE, total_output_tokens=-HUGE),
    )
    assert len(traced.spans) == 4
    for span in traced.spans:
        assert 0 <= (span.start_time or 0) < 2**63
        assert 0 <= (span.end_time or 0) < 2**63
        for fact in said(span).values():
            assert not isinstance(fact, int) or -(2**63) <= fact < 2**63
            assert not isinstance(fact, float) or math.isfinite(fact)


def test_ten_thousand_tools_and_rules_are_no_attribute_of_anything() -> None:
    names = tuple(f"tool_{number}" for number in range(10_000))
    rules = {"before-tool": tuple(RuleRef(name=f"rule {n}", version="1") for n in range(10_000))}
    traced = Traced()
    begun = msgspec.structs.replace(start(), tools=names, rules=rules)
    calls = [one for n in range(2_000) for one in (call(1100, f"c{n}", names[n]), answered(1200, f"c{n}"))]
    rows = [decided(1300, "before-tool", f"rule {n}") for n in range(2_000)]
    traced.tell(begun, *calls, *rows, end(1400))
    assert all(len(said(span)) < 64 for span in traced.spans)
    assert traced.said("middleware.decision rule 1999")["footprint.version"] == "1"
    assert traced.said("execute_tool tool_1999")["gen_ai.tool.call.id"] == "c1999"


def test_a_name_of_a_megabyte_is_cut_everywhere() -> None:
    long = "n" * 1_000_000
    fields: dict[str, Any] = {"agent_name": long, "provider": long, "model": long, "tools": (long,)}
    traced = Traced()
    traced.tell(
        start(**fields),
        event(ev.ModelCallStarted, 1100, iteration=1, provider=long, model=long, server=long),
        event(ev.ModelCallEnded, 1200, iteration=1, response_model=long, response_id=long),
        call(1300, tool=long, tool_source=long),
        decided(1400, "before-tool", long, tool_name=long, tool_source=long),
        event(ev.CredentialRequested, 1450, tool_call_id="c1", service=long),
        answered(1500, tool=long, tool_source=long, decided_by_rule=long, tool_type=long),
        end(1600),
    )
    for span in traced.spans:
        texts = [
            span.name,
            *said(span).values(),
            *(v for n in span.events for v in (n.attributes or {}).values()),
        ]
        assert max(len(one) for one in texts if isinstance(one, str)) <= 256
