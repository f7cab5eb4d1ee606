"""A decision row and its event: one each, in one order, and the way from the event to the reason."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from footprint_core import (
    MemoryLedger,
    MessageContext,
    MessageOutcome,
    after_tool,
    allow,
    before_tool,
    deny,
    on_message,
)
from footprint_core.events import DecisionFiled, ToolCallEnded, ToolCallStarted
from footprint_core.providers import call, reply
from planted_stories import played
from story import Seen, answered, describe, run

REPLIES = [reply(calls=[call("1", "look", {"q": "x"})]), reply(text="done")]


def look(q: str) -> str:
    return q * 2


def test_every_row_has_one_event_and_in_the_order_of_the_rows() -> None:
    world = played()
    told = defaultdict(list)
    for event in world.seen.of(DecisionFiled):
        told[event.run_id].append(event)
    compared = 0
    for run_id, events in told.items():
        rows = world.ledger.decisions(run_id)
        if not rows or any(row.imported for row in rows):
            # Of another ledger, where their events were told.
            continue
        compared += len(rows)
        assert [event.row for event in events] == [row.position for row in rows]
        for event, row in zip(events, rows, strict=True):
            assert (event.run_id, event.segment) == (row.run_id, row.segment)
            assert (event.middleware, event.moment, event.iteration) == (
                *(row.middleware, row.moment, row.iteration),
            )
            assert (event.outcome, event.changed, event.shadow) == (row.outcome, row.changed, row.shadow)
            assert (event.tool_name, event.tool_call_id) == (row.tool_name, row.tool_call_id)
            assert (event.at, event.phase, event.tool_source) == (row.at, row.phase, row.tool_source)
            assert (event.answer, event.error_class) == (row.answer, row.error_class)
            assert event.duration == row.duration
    assert compared > 40


def test_a_reader_of_events_finds_the_reason_in_the_ledger() -> None:
    seen, ledger = Seen(), MemoryLedger()
    act: Any = {
        "before_tool": [before_tool("ceiling")(lambda _: allow({"q": "zz"}, why="too much"))],
        "output": [on_message("lawyer")(lambda _: allow("settled", why="nothing else is to be said"))],
    }
    agent = describe(REPLIES, look, act=act, watch=[seen], ledger=ledger)[0].build()
    run(agent.run("go"))
    whys = {}
    for event in seen.of(DecisionFiled):
        (row,) = [row for row in ledger.decisions(event.run_id) if row.position == event.row]
        whys[event.middleware, event.moment] = row.why
        assert event.row == event.sequence
    assert whys == {
        ("lawyer", "input"): None,
        ("ceiling", "before-tool"): "too much",
        ("lawyer", "output"): "nothing else is to be said",
    }


def test_an_event_of_a_decision_says_who_where_which_outcome_and_whether_the_value_changed() -> None:
    seen = Seen()

    def speaks(msg: MessageContext) -> MessageOutcome:
        return allow("other", why="because") if msg.phase == "input" else allow(msg.content, why="the same")

    act: Any = {
        "before_tool": [before_tool("first")(lambda _: allow()), before_tool("second")(lambda _: deny("no"))],
        "after_tool": [after_tool("unasked")(lambda _: allow())],
    }
    builder = describe(REPLIES, look, act=act, watch=[seen])[0].message_middleware(on_message("m")(speaks))
    assert answered(run(builder.build().run("go"))).text == "done"
    assert [
        (event.middleware, event.moment, event.at, event.phase, event.outcome, event.changed)
        for event in seen.of(DecisionFiled)
    ] == [
        ("m", "input", "message", "input", "allow", True),
        ("first", "before-tool", "tool", None, "allow", False),
        ("second", "before-tool", "tool", None, "deny", False),
        ("m", "output", "message", "output", "allow", False),
    ]
    assert [event.iteration for event in seen.of(DecisionFiled)] == [0, 1, 1, 2]


def test_what_is_decided_about_a_result_is_told_before_the_call_is_over() -> None:
    for events in _by_call().values():
        kinds = [getattr(event, "moment", event.type) for event in events]
        if "after-tool" in kinds:
            assert kinds[-1] == "stream.tool_end"
        assert kinds[0] == "stream.tool_start"
        # Before and after, each in one piece.
        after = kinds.index("after-tool") if "after-tool" in kinds else len(kinds)
        assert "before-tool" not in kinds[after:]


def _by_call() -> dict[tuple[str, int, str], list[Any]]:
    """The events of each call of every conversation, in order."""
    calls: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
    for event in played().seen.events:
        if isinstance(event, ToolCallStarted | ToolCallEnded) or (
            isinstance(event, DecisionFiled) and event.tool_call_id is not None
        ):
            calls[event.run_id, event.iteration, event.tool_call_id or ""].append(event)
    assert len(calls) > 30
    return calls
