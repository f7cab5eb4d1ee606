"""The port to a window strategy: it is shown a view and plans a removal, or nothing."""

from __future__ import annotations

from typing import Protocol, cast

import msgspec

from footprint_core.errors import BuilderError
from footprint_core.facts import Refusal, TokenPressure
from footprint_core.facts.window import Figure
from footprint_core.messages import AssistantMessage, Messages, ToolMessage, UserMessage
from footprint_core.providers.port import Provider


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
        iteration: The model call of this run that is about to be made, from 1.
        provider: The name of the agent's model provider.
        last_input_tokens: Tokens the last call of this run read, as its provider reported; None when it did
            not say, and before the first call.
        last_output_tokens: Tokens that call wrote. A provider that counts nothing may report 0 of both.
        usage_reported: Whether any call of this run was reported with tokens.
        keep_last_tool_results: How many turns are pinned for holding a tool's latest result; 0 pins none.
        stand_down: Whether nothing is pinned this time, since pins alone kept the last visits from removing.
    """

    __slots__ = (
        "_turns",
        "iteration",
        "keep_last_tool_results",
        "last_input_tokens",
        "last_output_tokens",
        "messages",
        "provider",
        "stand_down",
        "turn_count",
        "usage_reported",
    )

    def __init__(
        self,
        *,
        messages: Messages,
        turn_count: int,
        iteration: int,
        provider: str,
        last_input_tokens: int | None,
        last_output_tokens: int | None,
        usage_reported: bool,
        keep_last_tool_results: int,
        stand_down: bool,
    ) -> None:
        self.messages = messages
        self.turn_count = turn_count
        self.iteration = iteration
        self.provider = provider
        self.last_input_tokens = last_input_tokens
        self.last_output_tokens = last_output_tokens
        self.usage_reported = usage_reported
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


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """A call the loop makes, so that one summary stands where the removed turns stood.

    Attributes:
        provider: The model provider that writes the summary.
        model: Its model.
        instruction: What it is told; the turns come as JSON, one message a line.
    """

    provider: Provider
    model: str
    instruction: str


class WindowPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A removal a strategy wants.

    Attributes:
        remove: Indices of the turns to remove, ascending and without gaps; may be empty.
        refusals: Turns that could not leave, and why: a `RefusalReason`.
        pinned: Tools whose latest result was kept.
        yielded: Turns with a tool's latest result that would have been kept, had the limit been higher.
        figures: The strategy's own numbers, for the record; one with `turns_before` gets `turns_after`.
        pressure: How far the window is over a threshold, with what the strategy does about it.
        fold: How the removed turns become a summary; without it they leave.
    """

    remove: tuple[int, ...]
    refusals: tuple[Refusal, ...] = ()
    pinned: tuple[str, ...] = ()
    yielded: int = 0
    figures: dict[str, Figure] = {}
    pressure: TokenPressure | None = None
    fold: Fold | None = None


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
    made = not isinstance(strategy, type)
    if made and isinstance(name, str) and name.strip() and callable(getattr(strategy, "plan", None)):
        return cast("WindowStrategy", strategy)
    if callable(strategy):
        called = getattr(strategy, "__name__", type(strategy).__name__)
        raise BuilderError(f"window= takes a strategy, not what makes one; call it: {called}(...).")
    raise BuilderError(
        "window= takes a strategy, an object with a non-blank `name` and a `plan(view)` method."
    )


def keeping(keep_recent_turns: object, door: str) -> int:
    """A checked number of recent turns.

    Raises:
        BuilderError: It is no whole number of at least 1.
    """
    if type(keep_recent_turns) is not int or keep_recent_turns < 1:
        raise BuilderError(f"{door}(keep_recent_turns=...) needs a whole number of at least 1.")
    return keep_recent_turns
