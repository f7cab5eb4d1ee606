"""The table of metrics, and that nothing beyond it is ever written, whatever the events say."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from footprint_core import events as ev
from footprint_core.facts import RuleRef
from footprint_observe import semconv
from recorders.otel_metrics_table import ALL, LABELS, MAX_SETS, OTHER
from telling.metrics.figures import Metered

AT: dict[str, Any] = {"run_id": "r" * 32, "segment": 1, "sequence": 1, "time": 1_700_000_000_000_000}
SECRET = "sk-live-4242424242424242"


def configured(agent: str = "refunds", *, tools: tuple[str, ...] = (), **rules: tuple[str, ...]) -> ev.Event:
    posture: Any = {
        key.replace("_", "-"): tuple(RuleRef(name=n) for n in names) for key, names in rules.items()
    }
    return ev.AgentConfigured(
        **AT,
        agent_id="a",
        agent_name=agent,
        provider="scripted",
        model="m",
        rules=posture,
        tools=tools,
        streaming=False,
        resumed=False,
    )


def decided(middleware: str, **more: Any) -> ev.DecisionFiled:
    given: dict[str, Any] = {
        "moment": "before-tool",
        "at": "tool",
        "iteration": 1,
        "outcome": "deny",
        "changed": False,
        "answer": "given",
        "row": 1,
        "duration": 0.001,
    }
    return ev.DecisionFiled(**AT, middleware=middleware, **{**given, **more})


def ended(tool: str, **more: Any) -> ev.ToolCallEnded:
    given: dict[str, Any] = {
        "tool_call_id": "c1",
        "tool_type": "function",
        "iteration": 1,
        "status": "ran",
        "executed": True,
        "args_changed": False,
        "args_known_keys": 0,
        "args_unknown_keys": 0,
        "result_type": "string",
        "result_bytes": 1,
        "duration": 0.5,
    }
    return ev.ToolCallEnded(**AT, tool_name=tool, **{**given, **more})


def told(*events: ev.Event) -> Metered:
    metered = Metered()
    for event in events:
        metered.recorder.on_event(event)
    return metered


def test_the_table_has_every_metric_of_the_names_and_no_other() -> None:
    assert sorted(one.name for one in ALL) == sorted(semconv.METRICS.values())


def test_every_label_is_an_attribute_of_spans_and_is_used() -> None:
    used = {label for one in ALL for label in one.labels}
    assert used == LABELS.keys()
    assert used <= set(semconv.NAMES.values())


def test_no_label_names_a_run_a_call_a_user_or_a_conversation() -> None:
    assert not LABELS.keys() & {
        semconv.RUN_ID,
        semconv.CALL_ID,
        semconv.TOOL_CALL_ID,
        semconv.CONVERSATION_ID,
    }


@pytest.mark.parametrize("metric", ALL, ids=lambda one: one.name)
def test_buckets_belong_to_histograms_and_rise(metric: Any) -> None:
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert list(metric.buckets) == sorted(set(metric.buckets))


def test_model_calls_have_the_buckets_the_conventions_recommend() -> None:
    buckets = {one.name: one.buckets for one in ALL}
    seconds = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
    assert buckets["gen_ai.client.operation.duration"] == seconds
    assert buckets["gen_ai.client.token.usage"][:4] == (1, 4, 16, 64)
    assert buckets["gen_ai.client.token.usage"][-1] == 67108864


class Junk:
    """Events of every kind whose texts are all a secret, and whose numbers are anything."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def event(self, kind: type[ev.Event]) -> ev.Event:
        fields = msgspec.structs.fields(kind)
        return kind(**{field.name: self.value(field.name) for field in fields})

    def value(self, name: str) -> Any:
        match name:
            case "redactions":
                return {self.text(): 2}
            case "usage":
                return ev.TokenUsage(input=self.number(), output=self.number())
            case "rules":
                return {
                    self.text(): (RuleRef(name=self.text()),),
                    "before-tool": (RuleRef(name=self.text()),),
                }
            case "tools" | "offered":
                return (self.text(),)
            case "executed" | "shadow":
                return self.random.random() < 0.5
            case "segment":
                return 1
            case "run_id":
                return "r" * 32
            case _ if name in {"duration", "paused", "first_chunk"}:
                return self.random.choice([0.0, -1.0, 1e300, 3, None if name != "paused" else 1.0, 0.2])
            case _ if name.endswith(("count", "tokens", "bytes", "keys", "time", "row", "sequence")):
                return self.number()
        return self.text()

    def text(self) -> str:
        return self.random.choice([SECRET, "\ud800", "x" * 5000, "a\x00b\nc", f"n{self.random.random()}"])

    def number(self) -> int:
        return self.random.choice([0, -5, 7, 10**30])


def test_whatever_events_say_only_the_labels_of_the_table_are_written() -> None:
    junk = Junk(7)
    metered = Metered()
    kinds = [*ev.EVENTS.values()] * 60
    junk.random.shuffle(kinds)
    for kind in kinds:
        event = junk.event(kind)
        if getattr(event, "duration", 0.0) is None and kind in {ev.TurnEnded, ev.ModelCallEnded}:
            continue
        metered.recorder.on_event(event)
    labels_of = {one.name: set(one.labels) for one in ALL}
    seen = set()
    for name, labels, _ in metered.points():
        seen.add(name)
        assert labels.keys() <= labels_of[name]
        for label, value in labels.items():
            words = LABELS[label]
            assert words is None or value in {*words, OTHER}
            assert len(value) <= 256
            value.encode()
    assert len(seen) > 10


def test_a_tool_the_program_did_not_declare_is_no_label() -> None:
    metered = told(configured(tools=("pay",)), ended("pay"), ended(SECRET))
    found = metered.by("footprint.tool.duration", "gen_ai.tool.name")
    assert found == {("pay",): 1, (OTHER,): 1}


def test_a_call_that_did_not_run_is_not_timed_whatever_its_event_says() -> None:
    metered = told(configured(tools=("pay",)), ended("pay", executed=False, status="denied", duration=0.5))
    assert metered.by("footprint.tool.duration", zeros=True) == {}
    assert metered.by("footprint.tools", "footprint.tool.status") == {("denied",): 1}


def test_an_event_of_a_segment_whose_beginning_was_not_told_counts_for_nobody_in_particular() -> None:
    metered = told(ended("pay"))
    assert metered.by("footprint.tool.duration", "gen_ai.tool.name", "gen_ai.agent.name") == {
        (OTHER, OTHER): 1
    }


def test_ten_thousand_agents_leave_a_bounded_number_of_series_and_right_sums() -> None:
    metered = Metered()
    for number in range(10_000):
        metered.recorder.on_event(configured(f"agent-{number}", before_tool=("ceiling",)))
        metered.recorder.on_event(decided("ceiling", outcome="deny" if number % 2 else "allow"))
        metered.recorder.on_event(decided(f"made-up-{number}"))
    points = [name for name, _, _ in metered.points()]
    for one in ALL:
        assert points.count(one.name) <= MAX_SETS + 15
    assert metered.by("footprint.decisions", "footprint.outcome") == {("allow",): 5_000, ("deny",): 15_000}
    other = metered.by("footprint.decisions", "gen_ai.agent.name")[OTHER,]
    assert other > 10_000
    assert "otel.metric.overflow" not in {label for _, labels, _ in metered.points() for label in labels}
    assert any("footprint.decisions has 1000 sets" in notice for notice in metered.recorder.notices)


def test_runs_that_never_end_are_not_kept_for_ever() -> None:
    metered = Metered()
    for number in range(5_000):
        begun = msgspec.structs.replace(configured(), run_id=f"{number:032x}")
        metered.recorder.on_event(begun)
    assert len(metered.recorder._tally._open) == 4096
