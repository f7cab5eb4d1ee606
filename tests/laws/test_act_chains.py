"""Which rules are asked at a moment, in which order, and on which object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from footprint_core import (
    AgentBuilder,
    MessageContext,
    RunError,
    ToolCallContext,
    ToolResultContext,
    allow,
    deny,
)
from footprint_core.providers import call, reply
from ruled import ANSWER, MESSAGE, Played, answers, paying, play, rule_at
from story import answered


class Told:
    """A rule with every hook, which keeps what it was asked and asked for, on itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[str] = []

    def on_message(self, message: MessageContext) -> Any:
        self.asked.append(message.phase)
        return allow()

    def on_tool_call(self, call: ToolCallContext) -> Any:
        self.asked.append("before-tool")
        return allow()

    def on_tool_result(self, call: ToolResultContext) -> Any:
        self.asked.append("after-tool")
        return allow()


def _at(played: Played, moment: str) -> list[str]:
    return [row["middleware"] for row in played.rows if row["moment"] == moment]


def answer_of(played: Played) -> str:
    assert played.outcome is not None
    return answered(played.outcome).text


def _tell(*names: str) -> list[Any]:
    return [Told(name) for name in names]


@pytest.mark.parametrize(("named", "other"), [("input", "output"), ("output", "input")])
def test_a_rule_named_for_one_message_passes_through_at_the_other_and_files_a_row(
    named: str, other: str
) -> None:
    rule = Told("one-sided")
    played = play({named: [rule]})
    assert rule.asked == [named]
    own, passed = sorted(played.rows, key=lambda row: row["moment"] != named)
    assert (own["moment"], passed["moment"], passed["phase"]) == (named, other, other)
    assert (passed["outcome"], passed["changed"], passed["iteration"]) == (
        "allow",
        False,
        {"input": 0, "output": 2}[other],
    )
    assert "why" not in passed


@pytest.mark.parametrize(("named", "other"), [("input", "output"), ("output", "input")])
def test_a_rule_named_for_one_message_decides_nothing_at_the_other(named: str, other: str) -> None:
    def hook(message: MessageContext) -> Any:
        return deny("at the other one") if message.phase == other else allow("changed", why="at its own")

    played = play({named: [rule_at("input", hook)]})
    assert played.model.requests[0].messages[0].text == {"input": "changed", "output": MESSAGE}[named]
    assert answer_of(played) == {"input": ANSWER, "output": "changed"}[named]


def test_a_rule_named_for_both_messages_is_attached_once_and_asked_at_both() -> None:
    rule = Told("both")
    played = play({"input": [rule], "output": [rule]})
    assert rule.asked == ["input", "output"]
    assert [(row["middleware"], row["moment"]) for row in played.rows] == [
        ("both", "input"),
        ("both", "output"),
    ]
    assert all(row.duration is not None for row in played.ledger.decisions(played.agent.last_run_id or ""))


def test_a_rule_of_the_message_door_is_asked_at_both_and_reads_which() -> None:
    def hook(message: MessageContext) -> Any:
        return allow(f"{message.content} ({message.phase})", why="said where")

    builder, model = paying()
    played = Played(builder.message_middleware(rule_at("input", hook)), model).go()
    assert model.requests[0].messages[0].text == f"{MESSAGE} (input)"
    assert answer_of(played) == f"{ANSWER} (output)"
    assert [(row["moment"], row["phase"]) for row in played.rows] == [
        ("input", "input"),
        ("output", "output"),
    ]


@pytest.mark.parametrize("door_first", [True, False])
def test_the_message_chain_is_the_input_entries_then_those_only_under_output_then_the_door(
    door_first: bool,
) -> None:
    both, more = Told("both"), Told("more")
    named = [Told(name) for name in ("i1", "i2", "o1", "o2", "d1", "d2", "d3")]
    i1, i2, o1, o2, d1, d2, d3 = named
    builder, model = paying()
    if door_first:
        builder.message_middleware(d1, d2)
    builder.act(input=[i1, both, i2, more], output=[o1, more, both, o2])
    builder.message_middleware(*((d3,) if door_first else (d1, d2, d3)))
    played = Played(builder, model).go()
    order = ["i1", "both", "i2", "more", "o1", "o2", "d1", "d2", "d3"]
    assert _at(played, "input") == order
    assert _at(played, "output") == order


@pytest.mark.parametrize("door_first", [True, False])
def test_the_tool_chain_is_the_before_entries_then_the_after_entries_then_the_door(door_first: bool) -> None:
    both, more = Told("both"), Told("more")
    b1, b2, a1, a2, d1, d2, d3 = _tell("b1", "b2", "a1", "a2", "d1", "d2", "d3")
    builder, model = paying()
    if door_first:
        builder.tool_middleware(d1, d2)
    builder.act(before_tool=[b1, both, b2, more], after_tool=[a1, more, both, a2])
    builder.tool_middleware(*((d3,) if door_first else (d1, d2, d3)))
    played = Played(builder, model).go()
    order = ["b1", "both", "b2", "more", "a1", "a2", "d1", "d2", "d3"]
    assert _at(played, "before-tool") == order
    assert _at(played, "after-tool") == order[::-1]


@pytest.mark.parametrize(
    "buckets", [("before_tool",), ("after_tool",), ("before_tool", "after_tool")], ids=" and ".join
)
def test_a_rule_with_both_tool_hooks_is_asked_at_both_whichever_bucket_it_stands_in(
    buckets: tuple[str, ...],
) -> None:
    rule = Told("both")
    played = play({bucket: [rule] for bucket in buckets})
    assert rule.asked == ["before-tool", "after-tool"]
    assert [row["moment"] for row in played.rows] == ["before-tool", "after-tool"]


def test_a_door_appends_behind_act_closest_to_the_tool() -> None:
    spoke: list[Any] = []

    class Stamps:
        def __init__(self, name: str) -> None:
            self.name = name

        def on_tool_call(self, call: ToolCallContext) -> Any:
            spoke.append((self.name, call.args["amount"]))
            return allow({"amount": call.args["amount"] + 1}, why="one more")

        def on_tool_result(self, call: ToolResultContext) -> Any:
            spoke.append((self.name, call.result["paid"]))
            return allow({**call.result, "paid": call.result["paid"] + 10}, why="ten more")

    builder, model = paying()
    builder.act(before_tool=[Stamps("act")])
    builder.tool_middleware(Stamps("door")).tool_middleware(Stamps("last"))
    played = Played(builder, model).go()
    assert spoke == [("act", 5), ("door", 6), ("last", 7), ("last", 8), ("door", 18), ("act", 28)]
    assert played.ran == [8]


def test_the_doors_take_any_number_of_rules_again_and_again_in_call_order() -> None:
    for moments, door in (
        (("before-tool", "after-tool"), "tool_middleware"),
        (("input", "output"), "message_middleware"),
    ):
        builder, model = paying()
        give: Callable[..., Any] = getattr(builder, door)
        assert give() is builder
        assert give(Told("a"), Told("b"), Told("c")) is builder
        assert give(Told("d")) is builder
        assert give() is builder
        assert give(*_tell("e", "f")) is builder
        played = Played(builder, model).go()
        assert _at(played, moments[0]) == [*"abcdef"]
        assert sorted(_at(played, moments[1])) == [*"abcdef"]


DOORS: dict[str, Callable[[AgentBuilder, list[Any]], Any]] = {
    "input": lambda builder, rules: builder.act(input=rules),
    "output": lambda builder, rules: builder.act(output=rules),
    "input and output": lambda builder, rules: builder.act(input=rules, output=rules),
    "before_tool": lambda builder, rules: builder.act(before_tool=rules),
    "after_tool": lambda builder, rules: builder.act(after_tool=rules),
    "before_tool and after_tool": lambda builder, rules: builder.act(before_tool=rules, after_tool=rules),
    "tool_middleware": lambda builder, rules: builder.tool_middleware(*rules),
    "message_middleware": lambda builder, rules: builder.message_middleware(*rules),
}
TWO_CALLS = (
    reply(calls=[call("c1", "pay", {"amount": 1}), call("c2", "pay", {"amount": 2})]),
    reply(text=ANSWER),
)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_a_hook_is_called_on_its_rule_once_for_each_call_and_moment(door: str, count: int) -> None:
    rules = [Told(f"r{number}") for number in range(count)]
    builder, model = paying(TWO_CALLS)
    DOORS[door](builder, list(rules))
    played = Played(builder, model).go()
    tools = ["before-tool", "after-tool"] * 2
    asked = {"input": ["input"], "output": ["output"]}.get(
        door, ["input", "output"] if door in {"input and output", "message_middleware"} else tools
    )
    # The state of every rule is its own: each was asked as often, and no other rule was told of it.
    assert [rule.asked for rule in rules] == [asked] * count
    assert played.ran == [1, 2]


def test_what_a_rule_keeps_on_itself_is_there_when_it_is_asked_again() -> None:
    class Once:
        name = "once"
        spent = False

        def on_tool_call(self, call: ToolCallContext) -> Any:
            if self.spent:
                return allow({"amount": 0}, why="only one is paid")
            self.spent = True
            return allow()

    rule = Once()
    builder, model = paying(TWO_CALLS)
    assert Played(builder.tool_middleware(rule), model).go().ran == [1, 0]
    assert rule.spent


def test_a_built_agent_is_not_changed_by_what_its_builder_does_later() -> None:
    replies = [reply(calls=[call("c1", "pay", {"amount": 1}), call("c2", "other", {})]), reply(text=ANSWER)]
    builder, model = paying(replies)
    rules: Any = {"before_tool": [Told("b")], "input": [Told("i")]}
    builder.act(**rules)
    built = Played(builder, model)
    for bucket in rules.values():
        bucket.append(Told("late"))

    def other() -> str:
        return "other"

    class Never:
        name = instruction = "never"

        def check(self, *_: Any) -> Any:
            raise AssertionError

        credential = plan = check

    never: Any = Never()
    builder.system("Be late.").tool(other).tool_middleware(Told("t")).message_middleware(Told("m"))
    builder.window(never).permission(never).credentials(never).output_schema(never)
    later = Played(builder, paying(replies)[1], watcher="later")
    built.go()
    assert [row["middleware"] for row in built.rows] == ["i", "b", "b", "b", "i"]
    before = play({"before_tool": [Told("b")], "input": [Told("i")]}, replies=replies)
    assert built.read.startswith("There is no tool called other")
    assert built.requests == before.requests
    assert built.events == before.events
    assert later.seen.events == []
    assert later.go(RunError).facts[0] != built.facts[0]


def test_a_builder_may_be_asked_to_act_behind_a_build() -> None:
    builder, model = paying()
    built = Played(builder, model)
    builder.act(before_tool=[rule_at("before-tool", answers(deny("not any more")))])
    assert built.go().rows == []
    assert built.ran == [5]
