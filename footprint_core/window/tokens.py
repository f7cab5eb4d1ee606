"""The token budget: when the last call read too much, let the oldest span go."""

from __future__ import annotations

import msgspec

from footprint_core.errors import BuilderError, CompactionUnmeasurableError
from footprint_core.facts import TokenPressure
from footprint_core.facts.window import Figure
from footprint_core.window.engine import oldest_span
from footprint_core.window.strategy import WindowPlan, WindowView, keeping


class TokenBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Engages when the last call read more than `threshold_tokens`, as its provider reported."""

    threshold_tokens: int
    keep_recent_turns: int

    @property
    def name(self) -> str:
        """`token-budget`."""
        return "token-budget"

    def plan(self, view: WindowView, /) -> WindowPlan | None:
        """The oldest span that may leave; None within the budget.

        Raises:
            CompactionUnmeasurableError: The provider reports no tokens.
        """
        measured = tokens_over(view, self.threshold_tokens)
        if measured is None:
            return None
        span = oldest_span(view, keep_recent_turns=self.keep_recent_turns)
        return WindowPlan(
            remove=span.remove,
            refusals=span.refusals,
            pinned=span.pinned,
            yielded=span.yielded,
            figures={
                "keep_recent_turns": self.keep_recent_turns,
                **token_figures(measured, self.threshold_tokens),
            },
            pressure=TokenPressure(cap=self.threshold_tokens, projected=measured, action="evict"),
        )


def token_budget(*, threshold_tokens: int, keep_recent_turns: int = 6) -> TokenBudget:
    """A window that lets its oldest turns go once the last call read more than `threshold_tokens` tokens.

    Tokens are those the provider reported, and never guessed. A provider that reports none ends the run
    with `CompactionUnmeasurableError`; while only the last call went unreported, nothing leaves.

    Args:
        threshold_tokens: Input tokens of one call, at least 1.
        keep_recent_turns: Turns that never leave, at least 1.

    Raises:
        BuilderError: A number is no whole number of at least 1.
    """
    return TokenBudget(
        threshold_tokens=threshold(threshold_tokens, "token_budget"),
        keep_recent_turns=keeping(keep_recent_turns, "token_budget"),
    )


def tokens_over(view: WindowView, threshold_tokens: int) -> int | None:
    """The tokens the last call read, when they are above a threshold; None when they are not.

    A reading is good at the boundary behind the call it was taken of. When that call was not reported, an
    earlier one was, and the strategy stands down.

    Raises:
        CompactionUnmeasurableError: No call of this run was reported, or the last one with no tokens.
    """
    if view.iteration == 1:
        return None
    read, wrote = view.last_input_tokens, view.last_output_tokens
    if read is None and view.usage_reported:
        return None
    if read is None or (read == 0 and not wrote):
        raise CompactionUnmeasurableError(provider=view.provider)
    return read if read > threshold_tokens else None


def token_figures(measured: int, threshold_tokens: int) -> dict[str, Figure]:
    """The numbers of a strategy that counts tokens."""
    return {"measured_tokens": measured, "threshold_tokens": threshold_tokens, "over_budget": True}


def threshold(threshold_tokens: object, door: str) -> int:
    """A checked threshold.

    Raises:
        BuilderError: It is no whole number of at least 1.
    """
    if type(threshold_tokens) is not int or threshold_tokens < 1:
        raise BuilderError(f"{door}(threshold_tokens=...) counts tokens; give a whole number of at least 1.")
    return threshold_tokens
