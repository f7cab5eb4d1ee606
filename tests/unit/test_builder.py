"""An agent is described; what is described wrongly is refused, by name, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import (
    ACT_KEYS,
    LOOP_MOMENTS,
    ActTwiceError,
    Agent,
    AgentBuilder,
    BuilderError,
    DuplicateWatcherError,
    MissingHookError,
    ShadowedToolError,
    UnknownActKeyError,
    UnknownMomentError,
    act_key_for,
    after_tool,
    allow,
    before_tool,
    on_message,
    sliding_window,
)
from footprint_core.act import resolve_act
from footprint_core.providers import Scripted, reply
from story import Seen, answered, run


def builder() -> AgentBuilder:
    return Agent.create(provider=Scripted([reply(text="ok")]), model="m", name="a")


def call_rule(name: Any = "rule") -> Any:
    return before_tool(name)(lambda _: allow())


def result_rule(name: Any = "rule") -> Any:
    return after_tool(name)(lambda _: allow())


def message_rule(name: Any = "rule") -> Any:
    return on_message(name)(lambda _: allow())


def test_there_are_five_moments_and_a_key_for_each() -> None:
    assert LOOP_MOMENTS == ("input", "before-tool", "after-tool", "window", "output")
    assert ACT_KEYS == ("input", "before_tool", "after_tool", "window", "output")
    assert tuple(act_key_for(moment) for moment in LOOP_MOMENTS) == ACT_KEYS
    with pytest.raises(UnknownMomentError, match="before-tool"):
        act_key_for("before-model")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("moment", LOOP_MOMENTS)
def test_what_is_given_for_a_moment_is_found_under_it(moment: Any) -> None:
    given: dict[str, Any] = {
        "input": [message_rule("i")],
        "before_tool": [call_rule("b")],
        "after_tool": [result_rule("a")],
        "window": sliding_window(keep_recent_turns=3),
        "output": [message_rule("o")],
    }
    expected = given[act_key_for(moment)]
    found = resolve_act(**given).at(moment)
    assert ([one.rule for one in found] if isinstance(found, tuple) else found) == expected


def test_an_unknown_key_is_refused_by_name_with_the_five_that_exist() -> None:
    with pytest.raises(UnknownActKeyError) as caught:
        builder().act(before_tools=[])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert "before_tools" in str(caught.value)
    for key in ACT_KEYS:
        assert key in str(caught.value)


def test_act_is_called_once_also_when_it_was_empty_but_a_refused_one_does_not_count() -> None:
    described = builder()
    with pytest.raises(MissingHookError):
        described.act(before_tool=[result_rule()])
    assert described.act() is described
    with pytest.raises(ActTwiceError, match=r"tool_middleware.*message_middleware.*window"):
        described.act()


def test_a_refused_act_attaches_nothing() -> None:
    described = builder()
    with pytest.raises(MissingHookError):
        described.act(
            input=[message_rule()], window=sliding_window(keep_recent_turns=1), after_tool=[call_rule()]
        )
    agent = described.window(sliding_window(keep_recent_turns=1)).build()
    assert answered(run(agent.run("hi"))).decisions == ()


@pytest.mark.parametrize("name", [None, "", "  ", 3])
def test_a_rule_needs_a_name(name: Any) -> None:
    acts: list[Any] = [{"input": [message_rule(name)]}, {"before_tool": [call_rule(name)]}]
    for act in acts:
        with pytest.raises(BuilderError, match="name"):
            builder().act(**act)
    with pytest.raises(BuilderError, match="name"):
        builder().tool_middleware(call_rule(name))


def test_a_name_stands_for_one_rule_in_a_chain() -> None:
    twice = call_rule()
    with pytest.raises(BuilderError, match="twice"):
        builder().act(before_tool=[twice, twice])
    with pytest.raises(BuilderError, match="two rules"):
        builder().act(before_tool=[call_rule(), call_rule()])
    with pytest.raises(BuilderError, match="two rules"):
        builder().act(before_tool=[call_rule()], after_tool=[result_rule()])
    with pytest.raises(BuilderError, match="twice"):
        builder().act(before_tool=[twice]).tool_middleware(twice).build()
    builder().act(before_tool=[call_rule()], input=[message_rule()]).build()


def test_a_rule_under_the_wrong_key_is_told_where_it_belongs() -> None:
    with pytest.raises(MissingHookError, match="belongs under before_tool"):
        builder().act(after_tool=[call_rule()])
    with pytest.raises(MissingHookError, match="belongs under after_tool"):
        builder().act(before_tool=[result_rule()])
    bare: Any = type("Bare", (), {"name": "bare"})()
    with pytest.raises(MissingHookError, match="no on_message"):
        builder().act(output=[bare])
    with pytest.raises(MissingHookError, match="neither"):
        builder().tool_middleware(message_rule())


@pytest.mark.parametrize("bucket", [call_rule(), "rule", {"rule": 1}, 3])
def test_a_bucket_is_a_list(bucket: Any) -> None:
    with pytest.raises(BuilderError, match="before_tool"):
        builder().act(before_tool=bucket)


def test_a_class_of_rules_is_no_rule() -> None:
    class Rule:
        name = "rule"

        def on_tool_call(self, call: Any) -> Any:
            return allow()

    odd: Any = Rule
    with pytest.raises(BuilderError, match="class Rule"):
        builder().act(before_tool=[odd])


def test_none_means_nothing() -> None:
    agent = builder().act(input=None, before_tool=None, after_tool=None, window=None, output=None).build()
    assert answered(run(agent.run("hi"))).decisions == ()


def test_a_window_is_a_strategy_and_there_is_one() -> None:
    with pytest.raises(BuilderError, match=r"call it: sliding_window"):
        builder().act(window=sliding_window)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(BuilderError, match="name"):
        builder().window(object())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    window = sliding_window(keep_recent_turns=2)
    with pytest.raises(BuilderError, match=r"sliding-window.*\.act\(window=\.\.\.\)"):
        builder().act(window=window).window(window)
    with pytest.raises(BuilderError, match=r"\.window\(\)"):
        builder().window(window).act(window=window)
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(BuilderError, match="at least 1"):
            sliding_window(keep_recent_turns=wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_name_that_changes_later_does_not_change_the_rows() -> None:
    class Rule:
        name = "then"

        def on_message(self, message: Any) -> Any:
            return allow()

    rule = Rule()
    agent = builder().act(input=[rule]).build()
    rule.name = "now"
    assert {row.middleware for row in answered(run(agent.run("hi"))).decisions} == {"then"}


def test_a_built_agent_is_not_changed_by_its_builder() -> None:
    described = builder()
    agent = described.build()
    described.tool_middleware(call_rule()).message_middleware(message_rule()).watch(Seen())
    assert answered(run(agent.run("hi"))).decisions == ()


def test_watchers_have_an_id_of_their_own_and_one_handed_over_twice_is_one() -> None:
    seen = Seen("one")
    with pytest.raises(DuplicateWatcherError, match="one"):
        builder().watch(seen).watch(Seen("one")).build()
    wrongs: list[Any] = [Seen(" "), object(), type("Deaf", (), {"id": "deaf"})()]
    for wrong in wrongs:
        with pytest.raises(BuilderError):
            builder().watch(wrong).build()
    run(builder().watch(seen, seen).watch(seen).build().run("hi"))
    assert seen.types.count("agent.turn_end") == 1


def test_tools_have_names_of_their_own() -> None:
    def look() -> str:
        return ""

    with pytest.raises(ShadowedToolError, match="look"):
        builder().tool(look).tool(look)


def test_a_function_that_cannot_be_a_tool_is_refused_with_what_is_wrong() -> None:
    def untyped(a) -> str:  # type: ignore[no-untyped-def]
        return str(a)

    def starred(*a: int) -> str:
        return str(a)

    for function, word in ((untyped, "'a'"), (starred, "'a'"), (lambda: 1, "name")):
        with pytest.raises(BuilderError, match=word):
            builder().tool(function)


@pytest.mark.parametrize(
    "wrong", [{"name": " "}, {"model": ""}, {"max_iterations": 0}, {"max_iterations": True}]
)
def test_an_agent_needs_a_name_a_model_and_a_budget(wrong: Any) -> None:
    with pytest.raises(BuilderError):
        Agent.create(**{"provider": Scripted([]), "model": "m", "name": "n", **wrong})
