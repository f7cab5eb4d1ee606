"""A rule that cannot be told from others, or read in the rows, is refused when the agent is described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from footprint_core import AgentBuilder, BuilderError, MissingHookError, allow
from footprint_core.providers import call, reply
from story import answered, describe, run


class Everywhere:
    """A rule with every hook."""

    def __init__(self, name: Any = "rule") -> None:
        self.name = name

    def on_message(self, message: Any) -> Any:
        return allow()

    def on_tool_call(self, call: Any) -> Any:
        return allow()

    def on_tool_result(self, call: Any) -> Any:
        return allow()


class Nameless(Everywhere):
    def __init__(self) -> None:
        """Leave the name out."""


def pay(amount: int) -> str:
    return f"paid {amount}"


def builder() -> AgentBuilder:
    return describe([reply(calls=[call("c1", "pay", {"amount": 5})]), reply(text="done")], pay)[0]


DOORS: dict[str, Callable[[AgentBuilder, list[Any]], AgentBuilder]] = {
    "input": lambda made, rules: made.act(input=rules),
    "output": lambda made, rules: made.act(output=rules),
    "before_tool": lambda made, rules: made.act(before_tool=rules),
    "after_tool": lambda made, rules: made.act(after_tool=rules),
    "tool_middleware": lambda made, rules: made.tool_middleware(*rules),
    "message_middleware": lambda made, rules: made.message_middleware(*rules),
}
TOOL_DOORS = ("before_tool", "after_tool", "tool_middleware")
MESSAGE_DOORS = ("input", "output", "message_middleware")


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("rule", [Nameless(), *map(Everywhere, [None, "", " \n", 3, b"rule", ["rule"]])])
def test_a_rule_without_a_name_that_can_be_read_is_refused_by_every_door(door: str, rule: Any) -> None:
    with pytest.raises(BuilderError, match="has no name"):
        DOORS[door](builder(), [rule])


@pytest.mark.parametrize("door", DOORS)
def test_a_rule_given_twice_through_one_door_is_refused_by_its_name(door: str) -> None:
    rule = Everywhere("ceiling")
    with pytest.raises(BuilderError, match=r"'ceiling'.*twice"):
        DOORS[door](builder(), [rule, rule]).build()


@pytest.mark.parametrize("door", DOORS)
def test_two_rules_of_one_name_in_one_chain_are_refused_by_it(door: str) -> None:
    with pytest.raises(BuilderError, match=r"'ceiling' is used by two rules"):
        DOORS[door](builder(), [Everywhere("ceiling"), Everywhere("ceiling")]).build()


@pytest.mark.parametrize(
    ("bucket", "door"),
    [(bucket, "tool_middleware") for bucket in TOOL_DOORS]
    + [(bucket, "message_middleware") for bucket in MESSAGE_DOORS],
)
def test_a_rule_that_reaches_a_chain_again_through_a_door_is_refused(bucket: str, door: str) -> None:
    rule = Everywhere("ceiling")
    with pytest.raises(BuilderError, match=r"'ceiling' is used twice"):
        DOORS[door](DOORS[bucket](builder(), [rule]), [rule]).build()


def test_a_rule_that_calls_itself_something_else_each_time_is_still_one_rule() -> None:
    rule = Everywhere("first")
    made = builder().tool_middleware(rule)
    rule.name = "second"
    with pytest.raises(BuilderError, match=r"'second' is used twice"):
        made.tool_middleware(rule).build()


def test_one_rule_may_stand_in_both_buckets_of_a_pair_and_in_both_chains() -> None:
    rule = Everywhere("everywhere")
    made = builder().act(input=[rule], output=[rule], before_tool=[rule], after_tool=[rule])
    rows = answered(run(made.build().run("go"))).decisions
    assert [(row.middleware, row.moment) for row in rows] == [
        ("everywhere", "input"),
        ("everywhere", "before-tool"),
        ("everywhere", "after-tool"),
        ("everywhere", "output"),
    ]


@pytest.mark.parametrize("door", DOORS)
def test_a_name_that_changes_once_the_agent_is_built_changes_no_row(door: str) -> None:
    rule = Everywhere("then")
    agent = DOORS[door](builder(), [rule]).build()
    rule.name = "now"
    assert {row.middleware for row in answered(run(agent.run("go"))).decisions} == {"then"}


@pytest.mark.parametrize(
    ("door", "hook"),
    [
        ("input", "on_message"),
        ("output", "on_message"),
        ("message_middleware", "on_message"),
        ("before_tool", "on_tool_call"),
        ("after_tool", "on_tool_result"),
    ],
)
def test_a_rule_without_the_hook_of_the_moment_is_refused_by_name(door: str, hook: str) -> None:
    deaf: Any = type("Deaf", (Everywhere,), {hook: None})("deaf")
    with pytest.raises(MissingHookError, match=hook) as caught:
        DOORS[door](builder(), [deaf])
    assert (caught.value.rule, caught.value.bucket) == ("deaf", door)
