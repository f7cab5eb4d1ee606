"""A name stands for one rule in a chain, and is read once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import pytest

from footprint_core import AgentBuilder, BuilderError, allow
from ruled import Played, answers, paying, rule_at

Give: TypeAlias = Callable[[AgentBuilder, list[Any]], AgentBuilder]


class Rule:
    """A rule with every hook."""

    def __init__(self, name: str) -> None:
        self.name = name

    def on_tool_call(self, _: Any) -> Any:
        return allow()

    on_tool_result = on_message = on_tool_call


TOOL_PLACES = ("before_tool", "after_tool", "tool_middleware")
MESSAGE_PLACES = ("input", "output", "message_middleware")


def _describe(*placed: tuple[str, Any]) -> AgentBuilder:
    """A builder with rules at places: those of `.act()` in one call behind the others."""
    builder = paying()[0]
    act: dict[str, Any] = {}
    for place, rule in placed:
        if place.endswith("middleware"):
            getattr(builder, place)(rule)
        else:
            act.setdefault(place, []).append(rule)
    return builder.act(**act)


PAIRS = [
    pair for places in (TOOL_PLACES, MESSAGE_PLACES) for pair in combinations_with_replacement(places, 2)
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_two_rules_of_one_name_in_one_chain_are_refused_by_name(one: str, other: str) -> None:
    with pytest.raises(BuilderError, match="same-name"):
        _describe((one, Rule("same-name")), (other, Rule("same-name"))).build()
    _describe((one, Rule("one")), (other, Rule("other"))).build()


@pytest.mark.parametrize("tools", TOOL_PLACES)
@pytest.mark.parametrize("messages", MESSAGE_PLACES)
def test_a_rule_about_tools_and_one_about_messages_may_share_a_name(tools: str, messages: str) -> None:
    both = Rule("shared")
    for one, other in ((Rule("shared"), Rule("shared")), (both, both)):
        named = _describe((tools, one), (messages, other)).spec().rule_names()
        assert named["input"] == named["output"] == ("shared",)
        assert "shared" in named["before-tool"] + named["after-tool"]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_rule_that_reaches_its_chain_twice_is_refused_but_for_both_buckets_of_a_pair(
    one: str, other: str
) -> None:
    rule = Rule("twice-named")
    if (one, other) in {("before_tool", "after_tool"), ("input", "output")}:
        _describe((one, rule), (other, rule)).build()
        return
    with pytest.raises(BuilderError, match="twice-named"):
        _describe((one, rule), (other, rule)).build()


def test_a_rule_that_reaches_its_chain_twice_under_two_names_is_refused() -> None:
    builder, _ = paying()
    rule = Rule("first")
    builder.tool_middleware(rule)
    rule.name = "second"
    with pytest.raises(BuilderError, match="second"):
        builder.tool_middleware(rule).build()


def test_a_rule_in_both_buckets_and_at_the_door_is_refused() -> None:
    rule = Rule("thrice-named")
    for pair, door in (
        (("before_tool", "after_tool"), "tool_middleware"),
        (("input", "output"), "message_middleware"),
    ):
        with pytest.raises(BuilderError, match="thrice-named"):
            _describe((pair[0], rule), (pair[1], rule), (door, rule)).build()


class Renamed:
    """A rule whose name differs each time it is read."""

    def __init__(self) -> None:
        self.read = 0

    @property
    def name(self) -> str:
        self.read += 1
        return f"read-{self.read}"

    def on_tool_call(self, _: Any) -> Any:
        return allow()

    on_tool_result = on_message = on_tool_call


PLACES = [
    ("before_tool",),
    ("after_tool",),
    ("before_tool", "after_tool"),
    ("tool_middleware",),
    ("input",),
    ("output",),
    ("input", "output"),
    ("message_middleware",),
]


@pytest.mark.parametrize("places", PLACES, ids=" and ".join)
def test_a_name_is_read_once_when_the_rule_is_given(places: tuple[str, ...]) -> None:
    _, model = paying()
    rule = Renamed()
    builder = _describe(*((place, rule) for place in places))
    played = Played(builder, model)
    builder.build()
    played.go()
    assert rule.read == 1
    assert {row["middleware"] for row in played.rows} == {"read-1"}


@pytest.mark.parametrize("places", PLACES, ids=" and ".join)
def test_a_name_that_changes_later_does_not_change_the_rows(places: tuple[str, ...]) -> None:
    builder, model = paying()
    rule = Rule("then")
    act: dict[str, Any] = {place: [rule] for place in places if not place.endswith("middleware")}
    builder.act(**act)
    for place in places:
        if place.endswith("middleware"):
            getattr(builder, place)(rule)
    rule.name = "before the build"
    played = Played(builder, model)
    rule.name = "behind the build"
    played.go()
    assert played.rows
    assert {row["middleware"] for row in played.rows} == {"then"}


def test_a_rule_is_refused_by_the_name_it_had_when_it_was_given() -> None:
    first, second = Rule("same"), Rule("same")
    builder = paying()[0].tool_middleware(first)
    first.name = "other"
    with pytest.raises(BuilderError, match="same"):
        builder.tool_middleware(second).build()
    fine = paying()[0].tool_middleware(rule_at("before-tool", answers(allow()), "same"))
    fine.message_middleware(rule_at("input", answers(allow()), "same")).build()
