"""What a row holds of the values it is about: what came and what went on, as they were then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from footprint_core import (
    AskPause,
    Decision,
    MemoryLedger,
    MessageContext,
    MessageOutcome,
    ToolCallContext,
    ToolOutcome,
    ToolResultContext,
    ToolResultOutcome,
    after_tool,
    allow,
    ask,
    before_tool,
    check_in_approved,
    deny,
    on_message,
    tool,
)
from footprint_core.providers import call, reply
from story import answered, describe, run

LOOKS = [reply(calls=[call("c1", "look", {"at": {"a": 1, "b": [100]}})]), reply(text="done")]


def look(at: Any) -> Any:
    """Look."""
    return at


def replacing(value: Any) -> Any:
    @after_tool("replacing")
    def rule(call: ToolResultContext) -> ToolResultOutcome:
        return allow(value, why="because")

    return rule


def results(given: Any, act: Any) -> tuple[list[Decision], Any]:
    """The rows of a run whose tool gives that, and the model."""

    def give(at: Any) -> Any:
        return given

    builder, model = describe(LOOKS, tool(name="look")(give), act=act)
    return list(answered(run(builder.build().run("go"))).decisions), model


@pytest.mark.parametrize(
    ("came", "went", "changed"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        (100, 100.0, False),
        ([1, {"x": 100.0}], [1, {"x": 100}], False),
        ({"a": None}, {"a": None}, False),
        (1, True, True),
        (False, 0, True),
        ({"a": [1]}, {"a": [True]}, True),
        ("1", 1, True),
        (None, "null", True),
        ([1, 2], [2, 1], True),
        ({"a": 1}, {"a": 1, "b": None}, True),
    ],
)
def test_a_result_changed_when_it_differs_as_canonical_json(came: Any, went: Any, changed: bool) -> None:
    rows, _ = results(came, {"after_tool": [replacing(went)]})
    assert (rows[0].outcome, rows[0].changed, rows[0].why) == ("allow", changed, "because")


@pytest.mark.parametrize(
    ("args", "changed"),
    [
        ({"at": {"b": [100.0], "a": 1}}, False),
        ({"at": {"b": [100], "a": True}}, True),
        ({"at": {"a": 1, "b": [100, 100]}}, True),
    ],
)
def test_args_changed_when_they_differ_as_canonical_json(args: Any, changed: bool) -> None:
    @before_tool("rule")
    def rule(call: ToolCallContext) -> ToolOutcome:
        return allow(args, why="because")

    builder, _ = describe(LOOKS, look, act={"before_tool": [rule]})
    (row,) = answered(run(builder.build().run("go"))).decisions
    assert (row.changed, row.why) == (changed, "because")
    assert ("before" in row.to_dict()) is changed


def test_a_message_replaced_by_itself_did_not_change_and_keeps_its_reason() -> None:
    @on_message("rule")
    def rule(message: MessageContext) -> MessageOutcome:
        return allow(message.content, why="looked at")

    builder, _ = describe([reply(text="done")], act={"input": [rule], "output": [rule]})
    rows = answered(run(builder.build().run("go"))).decisions
    assert [(row.changed, row.why) for row in rows] == [(False, "looked at")] * 2


def test_what_json_cannot_hold_counts_as_changed_also_when_it_reads_the_same() -> None:
    rows, _ = results("text", {"after_tool": [replacing(object())]})
    assert (rows[0].changed, rows[0].after) == (True, "[not JSON: object]")
    both, _ = results(object(), {"after_tool": [replacing(object())]})
    assert both[0].changed
    assert both[0].before == both[0].after == "[not JSON: object]"
    equal, _ = results({"deep": {1, 2}}, {"after_tool": [replacing({"deep": object()})]})
    assert equal[0].changed


def test_a_result_the_model_may_not_read_survives_in_the_row_of_the_rule_that_refused_it() -> None:
    @after_tool("withhold")
    def withhold(call: ToolResultContext) -> ToolResultOutcome:
        return deny("not for you")

    rows, model = results({"ssn": "123-45-6789"}, {"after_tool": [withhold]})
    (row,) = rows
    assert (row.outcome, row.changed) == ("deny", True)
    assert (row.before, row.after, row.why) == ({"ssn": "123-45-6789"}, "not for you", "not for you")
    assert model.requests[1].messages[-1].text == "not for you"


def test_when_two_rules_touch_a_result_each_row_has_what_its_link_saw() -> None:
    @after_tool("outer")
    def outer(call: ToolResultContext) -> ToolResultOutcome:
        return deny("not for you")

    @after_tool("inner")
    def inner(call: ToolResultContext) -> ToolResultOutcome:
        return allow({"ssn": "***"}, why="masked")

    rows, _ = results({"ssn": "123-45-6789"}, {"after_tool": [outer, inner]})
    assert [(row.middleware, row.before, row.after) for row in rows] == [
        ("inner", {"ssn": "123-45-6789"}, {"ssn": "***"}),
        ("outer", {"ssn": "***"}, "not for you"),
    ]


def test_the_text_as_typed_is_in_the_row_of_the_rule_that_scrubbed_it_and_nowhere_else() -> None:
    @on_message("scrub")
    def scrub(message: MessageContext) -> MessageOutcome:
        return allow(message.content.replace("123-45-6789", "[ssn]"), why="scrubbed")

    ledger = MemoryLedger()
    builder, model = describe([reply(text="done")], act={"input": [scrub]}, ledger=ledger)
    answer = answered(run(builder.build().run("I am 123-45-6789")))
    assert answer.decisions[0].before == "I am 123-45-6789"
    holding = [entry for entry in ledger.entries(answer.run_id) if "123-45-6789" in str(entry)]
    assert [entry.position for entry in holding] == [answer.decisions[0].position]
    assert "123-45-6789" not in str(model.requests)


def test_values_in_rows_are_copies_taken_when_it_was_decided() -> None:
    kept: list[Any] = []

    @before_tool("args")
    def on_args(call: ToolCallContext) -> ToolOutcome:
        new = {"nested": {"n": 1}}
        kept.extend((call.args, new))
        return allow({"at": new}, why="new")

    @before_tool("spoils")
    def spoils(call: ToolCallContext) -> ToolOutcome:
        # Before anything was written.
        kept.append(call.args)
        spoil(kept)
        return allow()

    @after_tool("result")
    def on_result(call: ToolResultContext) -> ToolResultOutcome:
        new = {"list": [2]}
        kept.extend((call.result, call.args, new))
        return allow(new, why="new")

    @after_tool("spoils-too")
    def spoils_too(call: ToolResultContext) -> ToolResultOutcome:
        kept.append(call.result)
        spoil(kept)
        return allow()

    @tool(name="look")
    def look_of(at: Any) -> Any:
        made = {"list": [1]}
        kept.extend((at, made))
        return made

    act: Any = {"before_tool": [on_args, spoils], "after_tool": [spoils_too, on_result]}
    builder, model = describe(LOOKS, look_of, act=act)
    answer = answered(run(builder.build().run("go")))
    spoil(kept)
    rows = {row.middleware: row for row in answer.decisions if row.changed}
    assert (rows["args"].before, rows["args"].after) == (
        {"at": {"a": 1, "b": [100]}},
        {"at": {"nested": {"n": 1}}},
    )
    assert (rows["result"].before, rows["result"].after) == ({"list": [1]}, {"list": [2]})
    assert model.requests[1].messages[-1].text == '{"list":[2]}'


def spoil(values: list[Any]) -> None:
    """Change every value in place, all levels deep."""
    for value in list(values):
        if isinstance(value, dict):
            spoil(list(value.values()))
            value["spoilt"] = True
        elif isinstance(value, list):
            spoil(value)
            value.append("spoilt")


def test_what_json_cannot_hold_is_a_mark_and_fails_neither_the_run_nor_the_checkpoint() -> None:
    class Odd:
        pass

    def give(at: Any) -> Any:
        return [Odd(), float("nan"), {"deep": Odd()}]

    @after_tool("odd")
    def odd(call: ToolResultContext) -> ToolResultOutcome:
        return allow({"odd": Odd(), "bytes": b"x"}, why="odd")

    @before_tool("second")
    def second(call: ToolCallContext) -> ToolOutcome:
        return ask("sure?") if call.tool_call_id == "c2" else allow()

    calls = [call("c1", "look", {"at": 1}), call("c2", "look", {"at": 2})]
    act: Any = {"before_tool": [second], "after_tool": [odd]}
    builder, _ = describe([reply(calls=calls), reply(text="done")], tool(name="look")(give), act=act)
    agent = builder.build()

    async def go() -> tuple[Decision, ...]:
        pause = await agent.run("go")
        assert isinstance(pause, AskPause)
        checkpoint = json.loads(json.dumps(pause.checkpoint))
        return answered(await agent.resume(checkpoint, check_in_approved(by="dana"))).decisions

    rows = [row for row in run(go()) if row.middleware == "odd"]
    assert len(rows) == 2
    for row in rows:
        assert row.before == ["[not JSON: Odd]", "[not JSON: float]", {"deep": "[not JSON: Odd]"}]
        after = row.after
        assert after["odd"] == "[not JSON: Odd]"
        assert json.loads(json.dumps(row.to_dict()))["after"] == after
