"""How often things happen: commits a turn, copies a rule, events and facts a call."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from footprint_core import (
    Batch,
    MemoryLedger,
    Receipt,
    after_tool,
    allow,
    before_tool,
    middleware,
    on_message,
    plain,
)
from footprint_core.facts import ModelAsked
from footprint_core.providers import call, reply
from story import Seen, answered, describe, run


class Counting(MemoryLedger):
    """Counts appends."""

    def __init__(self) -> None:
        super().__init__()
        self.appends = 0

    def append_inline(self, batch: Batch, /) -> Receipt:
        self.appends += 1
        return super().append_inline(batch)


async def look(n: int) -> dict[str, Any]:
    return {"n": n, "deep": [{"er": n}]}


def _turn(calls: int, *, ledger: MemoryLedger, act: Any = None, watch: Any = ()) -> Any:
    replies = [reply(calls=[call(f"c{i}", "look", {"n": i})]) for i in range(calls)]
    builder, _ = describe(
        [*replies, reply(text="done")], look, ledger=ledger, act=act, watch=watch, max_iterations=10**6
    )
    return answered(run(builder.build().run("go")))


@pytest.mark.parametrize("calls", [0, 1, 2, 10])
def test_a_turn_of_n_calls_commits_2n_plus_3_times(calls: int) -> None:
    ledger = Counting()
    act = {
        "input": [on_message("m")(lambda _: allow())],
        "before_tool": [before_tool("b")(lambda _: allow())],
    }
    _turn(calls, ledger=ledger, act=act)
    assert ledger.appends == 2 * calls + 3


@pytest.mark.parametrize("calls", [0, 1, 2, 10])
def test_a_turn_of_n_calls_with_result_rules_commits_3n_plus_3_times(calls: int) -> None:
    ledger = Counting()
    _turn(calls, ledger=ledger, act={"after_tool": [after_tool("a")(lambda _: allow())]})
    assert ledger.appends == 3 * calls + 3


@pytest.mark.parametrize(
    ("fields", "copies"),
    [
        ((), 0),
        (("history",), 0),
        (("args",), 1),
        (("result",), 1),
        (("args", "result"), 2),
        (("identity",), 1),
    ],
)
def test_a_rule_costs_a_copy_of_what_it_reads_and_of_nothing_else(
    monkeypatch: pytest.MonkeyPatch, fields: tuple[str, ...], copies: int
) -> None:
    made: list[Any] = []

    def counted(value: Any) -> Any:
        made.append(value)
        return plain.copy(value)

    def hook(context: Any) -> Any:
        for field in (*fields, *fields):
            getattr(context, field)
        return allow()

    monkeypatch.setattr(middleware, "plain", SimpleNamespace(copy=counted))
    _turn(1, ledger=MemoryLedger(), act={"after_tool": [after_tool("a")(hook)]})
    assert len(made) == copies


def test_no_event_is_built_when_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise AssertionError("an event was built")

    monkeypatch.setattr("footprint_core.commit.events_for", fails)
    _turn(2, ledger=MemoryLedger(), act={"before_tool": [before_tool("b")(lambda _: allow())]})
    with pytest.raises(AssertionError, match="was built"):
        _turn(2, ledger=MemoryLedger(), watch=[Seen()])


def test_the_thousandth_call_leaves_as_many_facts_and_events_as_the_tenth() -> None:
    ledger, seen = MemoryLedger(), Seen()
    act = {
        "before_tool": [before_tool("b")(lambda _: allow())],
        "after_tool": [after_tool("a")(lambda _: allow())],
    }
    outcome = _turn(1000, ledger=ledger, act=act, watch=[seen])
    facts: dict[int, Counter[str]] = {}
    iteration = 0
    for entry in ledger.entries(outcome.run_id):
        if isinstance(entry.fact, ModelAsked):
            iteration = entry.fact.iteration
        facts.setdefault(iteration, Counter())[str(entry.fact.__struct_config__.tag)] += 1
    assert facts[10] == facts[1000]
    assert sum(facts[10].values()) == 9
    events: dict[int, Counter[str]] = {}
    for event in seen.events:
        events.setdefault(getattr(event, "iteration", 0), Counter())[event.type] += 1
    assert events[10] == events[1000]
    assert sum(events[10].values()) == 14
