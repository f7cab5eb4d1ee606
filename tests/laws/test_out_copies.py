"""What a rule is handed is its own, and what it gives is taken by copy."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from footprint_core import AskPause, Messages, ToolMessage, allow, ask, plain, tool
from footprint_core.facts import ToolFinished, ToolIntended
from footprint_core.providers import call, reply
from ruled import Played, RuledMoment, act_at, answers, paying, play, rule_at
from story import describe

ARGS = {"order": {"lines": [{"sku": "a", "count": [1, 2]}]}}
NESTED = (reply(calls=[call("c1", "place", ARGS)]), reply(text="placed"))


@tool
async def place(order: dict[str, Any]) -> dict[str, Any]:
    """Place an order."""
    return {"placed": copy.deepcopy(order), "notes": [{"by": ["ada"]}]}


RESULT = {"placed": ARGS["order"], "notes": [{"by": ["ada"]}]}


def _place(act: dict[str, Any]) -> Played:
    builder, model = describe(NESTED, place, act=act)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return Played(builder, model).go()


def _scribble(value: Any) -> None:
    """Change everything in a value, the deepest first."""
    if isinstance(value, dict):
        for one in value.values():
            _scribble(one)
        value.clear()
        value["scribbled"] = True
    elif isinstance(value, list):
        for one in value:
            _scribble(one)
        value[:] = ["scribbled"]


class Scribbles:
    """Changes all it is shown, and lets it pass."""

    name = "scribbles"

    def __init__(self, name: str = "scribbles") -> None:
        self.name = name
        self.seen: list[Any] = []

    def on_tool_call(self, context: Any) -> Any:
        self.seen.append(copy.deepcopy(context.args))
        _scribble(context.args)
        self._rename(context)
        return allow()

    def on_tool_result(self, context: Any) -> Any:
        self.seen += [copy.deepcopy(context.args), copy.deepcopy(context.result)]
        _scribble(context.args)
        _scribble(context.result)
        self._rename(context)
        return allow()

    def _rename(self, context: Any) -> None:
        context.tool_name = context.tool_call_id = "scribbled"
        context.history = ()


def test_what_a_rule_does_to_what_it_is_shown_changes_nothing() -> None:
    rules = [Scribbles("one"), Scribbles("two")]
    scribbled = _place({"before_tool": rules})
    bare = _place({})
    # Not the call, not the conversation, not what the next link sees, not the rows.
    assert scribbled.requests == bare.requests
    assert [fact.args for fact in scribbled.facts if isinstance(fact, ToolIntended)] == [ARGS]
    assert [fact.result for fact in scribbled.facts if isinstance(fact, ToolFinished)] == [RESULT]
    assert [rule.seen for rule in rules] == [[ARGS, ARGS, RESULT]] * 2
    assert {(row["tool_name"], row["tool_call_id"], row["changed"]) for row in scribbled.rows} == {
        ("place", "c1", False)
    }


def test_what_a_rule_does_to_what_it_is_shown_does_not_reach_the_row_of_its_denial() -> None:
    def refuses(context: Any) -> Any:
        _scribble(context.result)
        raise ValueError("no")

    played = _place(act_at("after-tool", rule_at("after-tool", refuses)))
    (row,) = played.rows
    assert row["before"] == RESULT


def test_a_value_is_copied_when_it_is_first_read_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[Any] = []
    whole = plain.copy

    def counting(value: Any) -> Any:
        if isinstance(value, dict):
            copied.append(value)
        return whole(value)

    def copies(moment: RuledMoment, *read: str) -> int:
        def reads(context: Any) -> Any:
            for name in read:
                assert getattr(context, name) is getattr(context, name)
            return allow()

        copied.clear()
        play(act_at(moment, rule_at(moment, reads)))
        return len(copied)

    monkeypatch.setattr(plain, "copy", counting)
    play()
    bare = len(copied)
    assert copies("before-tool") == copies("after-tool") == bare
    assert copies("before-tool", "tool_name", "history", "iteration") == bare
    assert copies("before-tool", "args") == copies("after-tool", "args") == bare + 1
    assert copies("after-tool", "result") == bare + 1
    assert copies("after-tool", "args", "result") == bare + 2


def test_two_rules_are_not_shown_one_copy() -> None:
    kept: list[Any] = []

    def keeps(context: Any) -> Any:
        kept.append(context.args)
        return allow()

    _place(act_at("before-tool", rule_at("before-tool", keeps, "a"), rule_at("before-tool", keeps, "b")))
    first, second = kept
    assert first == second == ARGS
    assert first is not second
    assert first["order"]["lines"][0]["count"] is not second["order"]["lines"][0]["count"]


MANY = (*(reply(calls=[call(f"c{n}", "pay", {"amount": n})]) for n in range(1, 6)), reply(text="done"))


def test_the_history_is_an_immutable_view_and_nothing_is_copied_to_hand_it_over() -> None:
    seen: list[Messages] = []
    sizes: list[int] = []

    def looks(context: Any) -> Any:
        seen.append(context.history)
        sizes.append(len(context.history))
        return allow()

    rules = [rule_at("before-tool", looks, name) for name in "ab"]
    builder, model = paying(MANY)
    Played(builder.act(before_tool=rules), model).go()
    # Those handed out early have not grown with the conversation.
    assert sizes == [2, 2, 4, 4, 6, 6, 8, 8, 10, 10]
    assert [len(history) for history in seen] == sizes
    # Each is a view of the one list of messages: its cost does not grow with what it shows.
    assert len({id(history._items) for history in seen}) == 1
    history: Any = seen[-1]
    for change in (
        lambda: history.__setitem__(0, "mine"),
        lambda: history.append("mine"),
        lambda: setattr(history[0], "text", "mine"),
        lambda: setattr(history, "text", "mine"),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()
    history[1].calls[0].args["amount"] = 99
    assert history[1].calls[0].args == {"amount": 1}


def test_what_a_rule_does_to_a_history_changes_no_request() -> None:
    def tampers(context: Any) -> Any:
        mine: Any = list(context.history)
        mine.clear()
        context.history.plus(ToolMessage(call_id="c9", tool_name="pay", text="made up"))
        context.history.first(1)
        return allow()

    for moment in ("before-tool", "after-tool", "output"):
        played = play(act_at(moment, rule_at(moment, tampers)), replies=MANY)
        assert played.requests == play(replies=MANY).requests


@pytest.mark.parametrize("moment", ["before-tool", "after-tool"])
def test_a_value_is_taken_when_a_rule_answers(moment: RuledMoment) -> None:
    given: Any = {"order": {"lines": [{"sku": "b"}]}}
    expected = copy.deepcopy(given)
    shown: list[Any] = []

    def gives(_: Any) -> Any:
        return allow(given, why="another one")

    def spoils(context: Any) -> Any:
        shown.append(copy.deepcopy(context.args if moment == "before-tool" else context.result))
        _scribble(given)
        return allow()

    rules = [rule_at(moment, gives, "gives"), rule_at(moment, spoils, "spoils")]
    played = _place(act_at(moment, *(rules[::-1] if moment == "after-tool" else rules)))
    assert given != expected
    assert shown == [expected]
    assert [row["after"] for row in played.rows if row["changed"]] == [expected]
    if moment == "before-tool":
        assert [fact.args for fact in played.facts if isinstance(fact, ToolIntended)] == [expected]
    else:
        assert played.read == plain.rendered(expected)


def test_the_copy_a_rule_was_shown_and_gave_back_is_no_longer_its_own() -> None:
    kept: list[Any] = []

    def adds(context: Any) -> Any:
        context.args["order"]["gift"] = ["card"]
        kept.append(context.args)
        return allow(context.args, why="a gift")

    def spoils(_: Any) -> Any:
        _scribble(kept[0])
        return allow()

    played = _place(
        act_at("before-tool", rule_at("before-tool", adds, "a"), rule_at("before-tool", spoils, "b"))
    )
    expected = {"order": {**ARGS["order"], "gift": ["card"]}}
    assert played.rows[0]["before"] == ARGS
    assert played.rows[0]["after"] == expected
    assert [fact.args for fact in played.facts if isinstance(fact, ToolIntended)] == [expected]


def test_the_detail_of_a_question_is_taken_when_it_is_asked() -> None:
    detail: Any = {"limits": [1, {"upper": [2]}]}
    expected = copy.deepcopy(detail)
    played = play(act_at("before-tool", rule_at("before-tool", answers(ask("May it?", detail=detail)))))
    _scribble(detail)
    assert isinstance(played.outcome, AskPause)
    assert played.outcome.detail == expected
    assert played.rows[0]["detail"] == expected
    _scribble(played.outcome.detail)
    assert played.rows[0]["detail"] == expected
    assert played.outcome.checkpoint["call"]["shown"] == expected
