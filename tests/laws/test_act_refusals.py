"""What `.act()` and its doors do not take, and that a refusal leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from footprint_core import (
    ACT_KEYS,
    ActTwiceError,
    AgentBuilder,
    BuilderError,
    MissingHookError,
    UnknownActKeyError,
    act_key_for,
    allow,
    sliding_window,
)
from ruled import RULED, Played, RuledMoment, act_at, answers, paying, play, rule_at

BUCKETS: tuple[RuledMoment, ...] = RULED
HOOKS = {
    "input": "on_message",
    "before-tool": "on_tool_call",
    "after-tool": "on_tool_result",
    "output": "on_message",
}


def builder() -> AgentBuilder:
    return paying()[0]


def rule(moment: RuledMoment, name: Any = "rule") -> Any:
    return rule_at(moment, answers(allow()), name)


UNTYPED: Any = []


class Bare:
    """A rule without hooks."""

    name = "bare"


class Flat:
    """Has what is called like its hooks and cannot be called."""

    name = "flat"
    on_message = on_tool_call = on_tool_result = "allow"


REFUSED: dict[str, dict[str, Any]] = {
    "an unknown key": {"before_model": []},
    "a bucket that is no list": {"output": rule("output")},
    "a rule without its hook": {"output": [Bare()]},
    "a rule under the wrong key": {"after_tool": [rule("before-tool", "other")]},
    "a rule without a name": {"output": [rule("output", " ")]},
    "a name twice": {"output": [rule("input", "i")]},
    "a rule twice": {"before_tool": [rule("before-tool", "b")] * 2},
    "a window that is none": {"window": object()},
    "a window uncalled": {"window": sliding_window},
}
"""A mistake each, under the last keys, so that everything else was looked at before it."""

SOUND: dict[str, Any] = {
    "input": [rule("input", "i")],
    "before_tool": [rule("before-tool", "b")],
    "after_tool": [rule("after-tool", "a")],
    "window": sliding_window(keep_recent_turns=1),
}


def test_act_gives_back_the_builder_it_was_called_on() -> None:
    for options in ({}, SOUND):
        described = builder()
        assert described.act(**options) is described


@pytest.mark.parametrize(("first", "second"), list(product([{}, SOUND], repeat=2)))
def test_act_is_called_once_and_the_second_call_is_told_the_doors(first: Any, second: Any) -> None:
    described = builder().act(**first)
    with pytest.raises(ActTwiceError) as caught:
        described.act(**second)
    for door in (".tool_middleware()", ".message_middleware()", ".window()"):
        assert door in str(caught.value)


@pytest.mark.parametrize("mistake", REFUSED)
def test_an_act_that_was_refused_does_not_count_as_the_one(mistake: str) -> None:
    described = builder()
    with pytest.raises(BuilderError):
        described.act(**{**SOUND, **REFUSED[mistake]})
    played = Played(described.act(**SOUND), paying()[1]).go()
    assert [row["middleware"] for row in played.rows] == ["i", "b", "a", "i"]
    with pytest.raises(ActTwiceError):
        described.act()


@pytest.mark.parametrize("mistake", REFUSED)
def test_an_act_that_was_refused_attaches_nothing(mistake: str) -> None:
    described, model = paying()
    with pytest.raises(BuilderError):
        described.act(**{**SOUND, **REFUSED[mistake]})
    played = Played(described, model).go()
    assert played.rows == []
    assert played.requests == play().requests
    assert played.events == play().events
    described.window(sliding_window(keep_recent_turns=3)).build()


def test_an_act_that_clashes_with_a_door_attaches_nothing() -> None:
    described, model = paying()
    described.window(sliding_window(keep_recent_turns=9)).tool_middleware(rule("before-tool", "door"))
    clashes: list[dict[str, Any]] = [
        {"window": sliding_window(keep_recent_turns=1)},
        {"window": None, "before_tool": [rule("before-tool", "door")]},
    ]
    for clash in clashes:
        with pytest.raises(BuilderError):
            described.act(**{**SOUND, **clash})
    played = Played(described, model).go()
    assert [row["middleware"] for row in played.rows] == ["door"]


@pytest.mark.parametrize("key", ["before-tool", "before_model", "outputs", "Input", "schema", "permission"])
def test_an_unknown_key_is_named_with_the_five_that_exist(key: str) -> None:
    with pytest.raises(UnknownActKeyError) as caught:
        builder().act(**{key: UNTYPED})
    assert caught.value.key == key
    assert key in str(caught.value)
    for known in ACT_KEYS:
        assert known in str(caught.value)


@pytest.mark.parametrize("moment", BUCKETS)
@pytest.mark.parametrize(
    "bucket",
    [
        lambda rule: rule,
        lambda rule: "rule",
        lambda rule: {"rule": rule},
        lambda rule: {rule.name},
        lambda rule: (one for one in [rule]),
        lambda rule: 0,
        lambda rule: False,
        lambda rule: "",
        lambda rule: {},
    ],
)
def test_a_bucket_that_is_no_list_is_refused_by_its_key(
    moment: RuledMoment, bucket: Callable[[Any], Any]
) -> None:
    with pytest.raises(BuilderError, match=act_key_for(moment)):
        builder().act(**{act_key_for(moment): bucket(rule(moment))})


@pytest.mark.parametrize("moment", BUCKETS)
@pytest.mark.parametrize("kind", [list, tuple])
def test_a_bucket_is_a_list_or_a_tuple(moment: RuledMoment, kind: Any) -> None:
    played = play({act_key_for(moment): kind([rule(moment)])})
    assert {row["middleware"] for row in played.rows} == {"rule"}


def test_none_means_no_rules_and_no_window() -> None:
    played = play(dict.fromkeys(ACT_KEYS))
    assert (played.rows, played.requests) == ([], play().requests)
    nothing: dict[str, Any] = dict.fromkeys(ACT_KEYS)
    described = builder().act(**nothing)
    described.window(sliding_window(keep_recent_turns=3)).build()


@pytest.mark.parametrize("moment", BUCKETS)
@pytest.mark.parametrize("broken", [Bare(), Flat()])
def test_a_rule_without_the_hook_of_its_bucket_is_refused_by_name_and_bucket(
    moment: RuledMoment, broken: Any
) -> None:
    key = act_key_for(moment)
    with pytest.raises(MissingHookError) as caught:
        builder().act(**act_at(moment, rule(moment), broken))
    assert (caught.value.rule, caught.value.bucket) == (broken.name, key)
    for word in (broken.name, key, HOOKS[moment]):
        assert word in str(caught.value)


@pytest.mark.parametrize("moment", BUCKETS)
@pytest.mark.parametrize("given", BUCKETS)
def test_a_rule_with_another_hook_is_told_the_bucket_it_belongs_under(
    moment: RuledMoment, given: RuledMoment
) -> None:
    if HOOKS[moment] == HOOKS[given]:
        builder().act(**act_at(moment, rule(given))).build()
        return
    with pytest.raises(MissingHookError) as caught:
        builder().act(**act_at(moment, rule(given)))
    bucket = {"on_message": "input or output"}.get(HOOKS[given], act_key_for(given))
    assert f"belongs under {bucket}" in str(caught.value)


def test_a_door_names_the_hooks_it_needs() -> None:
    hookless: list[Any] = [Bare(), Flat()]
    for broken in (*hookless, rule("input")):
        with pytest.raises(MissingHookError) as caught:
            builder().tool_middleware(rule("before-tool", "sound"), broken)
        assert caught.value.rule == broken.name
        assert "on_tool_call" in str(caught.value)
        assert "on_tool_result" in str(caught.value)
    for broken in (*hookless, rule("before-tool"), rule("after-tool")):
        with pytest.raises(MissingHookError) as caught:
            builder().message_middleware(rule("input", "sound"), broken)
        assert caught.value.rule == broken.name
        assert "on_message" in str(caught.value)


def test_a_door_that_refused_one_rule_attached_none_of_them() -> None:
    described, model = paying()
    bare: Any = Bare()
    with pytest.raises(MissingHookError):
        described.tool_middleware(rule("before-tool", "sound"), bare)
    with pytest.raises(MissingHookError):
        described.message_middleware(rule("input", "sound"), bare)
    assert Played(described, model).go().rows == []


def _act(moment: RuledMoment) -> Callable[[AgentBuilder, Any], Any]:
    return lambda builder, rule: builder.act(**act_at(moment, rule))


DOORS: dict[str, tuple[RuledMoment, Callable[[AgentBuilder, Any], Any]]] = {
    **{f"act {moment}": (moment, _act(moment)) for moment in BUCKETS},
    "tool door, call": ("before-tool", lambda builder, rule: builder.tool_middleware(rule)),
    "tool door, result": ("after-tool", lambda builder, rule: builder.tool_middleware(rule)),
    "message door": ("input", lambda builder, rule: builder.message_middleware(rule)),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", [None, "", "  ", "\n\t", 3, b"rule", ["rule"], True])
def test_a_rule_without_a_name_is_refused_by_every_door(door: str, name: Any) -> None:
    moment, give = DOORS[door]
    with pytest.raises(BuilderError, match="name"):
        give(builder(), rule(moment, name)).build()


@pytest.mark.parametrize("door", DOORS)
def test_a_rule_that_has_no_name_at_all_is_refused_by_every_door(door: str) -> None:
    class Nameless:
        def on_message(self, _: Any) -> Any:
            return allow()

        on_tool_call = on_tool_result = on_message

    with pytest.raises(BuilderError, match="name"):
        DOORS[door][1](builder(), Nameless()).build()


@pytest.mark.parametrize("moment", BUCKETS)
def test_a_rule_twice_in_one_bucket_is_refused_by_name(moment: RuledMoment) -> None:
    twice = rule(moment, "twice-named")
    with pytest.raises(BuilderError, match="twice-named"):
        builder().act(**act_at(moment, twice, rule(moment, "between"), twice))
