"""Rules are asked in order, each about what the one before left; the first that does not allow wins."""

from __future__ import annotations

from typing import Any

import pytest

from footprint_core import AskPause, allow, ask, deny
from footprint_core.facts import CallAnswered
from ruled import RULED, VALUES, Played, RuledMoment, act_at, answers, play, rule_at, shown

COUNT = 4
REFUSALS: dict[str, object] = {
    "a denial": deny("not today"),
    "an error": ValueError("broken"),
    "no outcome": "allow",
    "a question": ask("May it?"),
}


def _chain(moment: RuledMoment, rules: list[Any]) -> dict[str, Any]:
    """A chain that is walked in the order of `rules` at this moment."""
    return act_at(moment, *(reversed(rules) if moment == "after-tool" else rules))


def _asked(played: Played, moment: RuledMoment) -> list[str]:
    return [row["middleware"] for row in played.rows if row["moment"] == moment]


@pytest.mark.parametrize("moment", RULED)
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("place", range(COUNT))
def test_a_refusal_at_a_place_calls_so_many_hooks_and_the_links_behind_file_no_row(
    moment: RuledMoment, refusal: str, place: int
) -> None:
    asked: list[int] = []

    def rule(number: int) -> Any:
        def hook(context: Any) -> Any:
            if getattr(context, "phase", moment) != moment:
                return allow()
            asked.append(number)
            return answers(REFUSALS[refusal] if number == place else allow(why="seen"))(context)

        return rule_at(moment, hook, f"r{number}")

    played = play(_chain(moment, [rule(number) for number in range(COUNT)]))
    assert asked == list(range(place + 1))
    assert _asked(played, moment) == [f"r{number}" for number in range(place + 1)]
    assert not played.acted(moment)
    assert isinstance(played.outcome, AskPause) is (refusal == "a question" and moment == "before-tool")
    row = [row for row in played.rows if row["moment"] == moment][-1]
    assert row["outcome"] == ("ask" if isinstance(played.outcome, AskPause) else "deny")


@pytest.mark.parametrize("moment", RULED)
def test_where_all_allow_all_are_asked_in_order(moment: RuledMoment) -> None:
    rules = [rule_at(moment, answers(allow()), f"r{number}") for number in range(COUNT)]
    played = play(_chain(moment, rules))
    assert played.acted(moment)
    assert _asked(played, moment) == ["r0", "r1", "r2", "r3"]


@pytest.mark.parametrize("moment", RULED)
def test_each_rule_sees_the_value_as_the_one_before_left_it(moment: RuledMoment) -> None:
    seen: list[Any] = []

    def rule(name: str, replaces: bool) -> Any:
        def hook(context: Any) -> Any:
            value = shown(moment, context)
            seen.append(value)
            return allow(_more(value), why=f"more by {name}") if replaces else allow(why="as it is")

        return rule_at(moment, hook, name)

    rules = [rule("a", True), rule("b", False), rule("c", True), rule("d", True), rule("e", False)]
    played = play(_chain(moment, rules))
    first = VALUES[moment]
    second, third, fourth = _more(first), _more(_more(first)), _more(_more(_more(first)))
    assert seen == [first, second, second, third, fourth]
    changes = [(row["before"], row["after"]) for row in played.rows if row["changed"]]
    assert changes == [(first, second), (second, third), (third, fourth)]
    if moment == "before-tool":
        assert played.ran == [fourth["amount"]]


def _more(value: Any) -> Any:
    if isinstance(value, str):
        return value + "!"
    return {key: one + 1 if isinstance(one, int) else one for key, one in value.items()}


REASONS = [
    "not today",
    "  with space around it \n",
    "Größe ≠ groß; 今日は無理 🙅",
    'quotes " and \\ and {braces} and %s and <b>marks</b>',
    "line one\nline two\r\n\tline three",
    "null",
    '{"json": true}',
    "x" * 20_000,
]


@pytest.mark.parametrize("reason", REASONS, ids=range(len(REASONS)))
@pytest.mark.parametrize("moment", ["before-tool", "after-tool"])
def test_the_model_reads_the_reason_of_a_denial_as_it_was_written(moment: RuledMoment, reason: str) -> None:
    played = play(act_at(moment, rule_at(moment, answers(deny(reason)))))
    assert played.read == reason
    messages = played.model.requests[1].messages
    assert (len(messages), messages[-1].role) == (3, "tool")
    assert played.ran == ([5] if moment == "after-tool" else [])
    (answered,) = (fact for fact in played.facts if isinstance(fact, CallAnswered))
    assert (answered.text, answered.executed) == (reason, moment == "after-tool")
