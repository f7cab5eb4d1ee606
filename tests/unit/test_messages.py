"""The shared, immutable history."""

from __future__ import annotations

import pytest

from footprint_core import Messages, ToolCall, UserMessage


def _user(text: str) -> UserMessage:
    return UserMessage(text=text)


def test_a_view_does_not_change_when_the_conversation_grows() -> None:
    first = Messages().plus(_user("a"))
    second = first.plus(_user("b"))
    assert [m.text for m in first] == ["a"]
    assert [m.text for m in second] == ["a", "b"]
    assert second[-1].text == "b"
    with pytest.raises(IndexError):
        first[1]


def test_two_views_that_grow_apart_do_not_see_each_other() -> None:
    stem = Messages().plus(_user("a"))
    left, right = stem.plus(_user("left")), stem.plus(_user("right"))
    assert [m.text for m in left] == ["a", "left"]
    assert [m.text for m in right] == ["a", "right"]
    assert [m.text for m in stem] == ["a"]


def test_growing_shares_what_is_there_instead_of_copying_it() -> None:
    view = Messages([_user(str(i)) for i in range(1000)])
    grown = view.plus(_user("more"))
    assert grown._items is view._items


def test_the_args_of_a_call_in_the_history_cannot_be_changed() -> None:
    call = ToolCall(id="1", name="t", args_json='{"a":{"b":1}}')
    call.args["a"]["b"] = 2
    assert call.args == {"a": {"b": 1}}
