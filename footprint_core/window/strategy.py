"""The port to a window strategy: it is shown a view and plans a removal, or nothing."""

from __future__ import annotations

from typing import Protocol, cast

import msgspec

from footprint_core.errors import BuilderError
from footprint_core.facts import Refusal
from footprint_core.messages import AssistantMessage, Messages, ToolMessage, UserMessage


class WindowTurn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One user or assistant message with the tool messages that answer it.

    Attributes:
        first: Index of its first message.
        stop: Index behind its last message.
    """

    first: int
    stop: int


class WindowView:
    """What a strategy may look at. Asking for the count is free; the turns are found when first read.

    Attributes:
        messages: The conversation as it would be sent.
        turn_count: Turns in it.
        iteration: The model call that is about to be made, from 1.
        last_input_tokens: Tokens the last call read, as its provider reported; None when unknown.
        keep_last_tool_results: How many tools' latest results are pinned; 0 pins none.
        stand_down: Whether nothing is pinned this time, since pins alone kept the last visits from removing.
    """

    __slots__ = (
        "_turns",
        "iteration",
        "keep_last_tool_results",
        "last_input_tokens",
        "messages",
        "stand_down",
        "turn_count",
    )

    def __init__(
        self,
        *,
        messages: Messages,
        turn_count: int,
        iteration: int,
        last_input_tokens: int | None,
        keep_last_tool_results: int,
        stand_down: bool,
    ) -> None:
        self.messages = messages
        self.turn_count = turn_count
        self.iteration = iteration
        self.last_input_tokens = last_input_tokens
        self.keep_last_tool_results = keep_last_tool_results
        self.stand_down = stand_down
        self._turns: tuple[WindowTurn, ...] | None = None

    @property
    def turns(self) -> tuple[WindowTurn, ...]:
        """The turns, oldest first."""
        if self._turns is None:
            starts = [i for i, message in enumerate(self.messages) if not isinstance(message, ToolMessage)]
            stops = [*starts[1:], len(self.messages)]
            self._turns = tuple(
                WindowTurn(first=first, stop=stop) for first, stop in zip(starts, stops, strict=True)
            )
        return self._turns

    def opens(self, turn: WindowTurn) -> UserMessage | AssistantMessage:
        """The message a turn begins with."""
        return cast("UserMessage | AssistantMessage", self.messages[turn.first])

    def results(self, turn: WindowTurn) -> tuple[ToolMessage, ...]:
        """The tool messages of a turn."""
        return cast("tuple[ToolMessage, ...]", self.messages[turn.first + 1 : turn.stop])


class WindowPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A removal a strategy wants.

    Attributes:
        remove: Indices of the turns to remove, ascending and without gaps; may be empty.
        refusals: Turns that could not leave, and why.
        pinned: Tools whose latest result was kept.
        yielded: Tools whose latest result could have been kept, had the limit been higher.
        figures: The strategy's own numbers, for the record.
    """

    remove: tuple[int, ...]
    refusals: tuple[Refusal, ...] = ()
    pinned: tuple[str, ...] = ()
    yielded: int = 0
    figures: dict[str, int] = {}


class WindowStrategy(Protocol):
    """Plans what leaves the window. It edits what is sent, never the ledger."""

    @property
    def name(self) -> str:
        """A non-blank name; records and notices say it."""
        ...

    def plan(self, view: WindowView, /) -> WindowPlan | None:
        """What to remove before this model call; None when the strategy does not engage."""
        ...


def window_strategy(strategy: object) -> WindowStrategy:
    """A checked strategy.

    Raises:
        BuilderError: It has no name or no `plan`.
    """
    name = getattr(strategy, "name", None)
    if isinstance(name, str) and name.strip() and callable(getattr(strategy, "plan", None)):
        return cast("WindowStrategy", strategy)
    if callable(strategy):
        called = getattr(strategy, "__name__", type(strategy).__name__)
        raise BuilderError(f"window= takes a strategy, not a function; call it: {called}(...).")
    raise BuilderError(
        "window= takes a strategy, an object with a non-blank `name` and a `plan(view)` method."
    )
