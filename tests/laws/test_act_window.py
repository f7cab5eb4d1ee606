"""One window strategy, by whichever door, and it is a strategy."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from footprint_core import (
    AgentBuilder,
    BuilderError,
    sliding_window,
    summarize_oldest,
    token_budget,
)
from ruled import Played, paying

DOORS: dict[str, Callable[[AgentBuilder, Any], Any]] = {
    ".act(window=...)": lambda builder, window: builder.act(window=window),
    ".window()": lambda builder, window: builder.window(window),
}


class Named:
    """A strategy that is asked and moves nothing."""

    def __init__(self, name: Any = "mine") -> None:
        self.name = name
        self.asked = 0

    def plan(self, _: Any) -> Any:
        self.asked += 1


@pytest.mark.parametrize(("first", "second"), list(product(DOORS, DOORS)))
@pytest.mark.parametrize("same", [True, False])
def test_a_second_window_is_refused_and_the_first_stays(first: str, second: str, same: bool) -> None:
    builder, model = paying()
    window, other = Named("the-first"), Named("the-second")
    DOORS[first](builder, window)
    with pytest.raises(BuilderError) as caught:
        DOORS[second](builder, window if same else other)
    if (first, second) != (".act(window=...)", ".act(window=...)"):
        assert "the-first" in str(caught.value)
        assert f"set by {first}" in str(caught.value)
    Played(builder, model).go()
    assert (window.asked, other.asked) == (2, 0)


def test_a_second_act_is_refused_as_such_before_its_window_is_looked_at() -> None:
    builder = paying()[0].act(window=Named())
    with pytest.raises(BuilderError, match=r"called once.*\.window\(\)"):
        builder.act(window=Named())


class Flat:
    """Has a `plan` that cannot be called."""

    name = "flat"
    plan = 3


class Planless:
    """Has a name, and nothing that plans."""

    name = "planless"


WRONG: list[Any] = [
    *(Named(name) for name in (None, "", "  ", 3, b"mine")),
    Flat(),
    Planless(),
    object(),
    "sliding-window",
    3,
    True,
    [],
    [sliding_window(keep_recent_turns=3)],
    {"name": "mine", "plan": print},
    Named,
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_window_needs_a_name_and_a_plan(door: str, wrong: Any) -> None:
    builder, model = paying()
    with pytest.raises(BuilderError, match="window= takes a strategy"):
        DOORS[door](builder, wrong)
    right = Named()
    DOORS[door](builder, right)
    Played(builder, model).go()
    assert right.asked == 2


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("factory", [sliding_window, token_budget, summarize_oldest])
def test_a_factory_is_refused_with_the_advice_to_call_it(door: str, factory: Any) -> None:
    with pytest.raises(BuilderError, match=rf"call it: {factory.__name__}\("):
        DOORS[door](paying()[0], factory)


@pytest.mark.parametrize("door", DOORS)
def test_every_strategy_of_the_product_is_taken_by_every_door(door: str) -> None:
    _, model = paying()
    for window in (
        sliding_window(keep_recent_turns=1),
        token_budget(threshold_tokens=1),
        summarize_oldest(threshold_tokens=1, summarizer=model, model="small"),
    ):
        described = paying()[0]
        DOORS[door](described, window)
        assert described.spec().window is window
