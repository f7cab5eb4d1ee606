"""The sliding window: keep the recent turns and the current request, let the oldest span go."""

from __future__ import annotations

import msgspec

from footprint_core.window.engine import oldest_span
from footprint_core.window.strategy import WindowPlan, WindowView, keeping


class SlidingWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Engages when there are more than `keep_recent_turns` turns."""

    keep_recent_turns: int

    @property
    def name(self) -> str:
        """`sliding-window`."""
        return "sliding-window"

    def plan(self, view: WindowView, /) -> WindowPlan | None:
        """The oldest span that may leave; None within the depth."""
        if view.turn_count <= self.keep_recent_turns:
            return None
        span = oldest_span(view, keep_recent_turns=self.keep_recent_turns)
        return WindowPlan(
            remove=span.remove,
            refusals=span.refusals,
            pinned=span.pinned,
            yielded=span.yielded,
            figures={"keep_recent_turns": self.keep_recent_turns, "turns_before": view.turn_count},
        )


def sliding_window(*, keep_recent_turns: int) -> SlidingWindow:
    """A window that keeps the `keep_recent_turns` most recent turns, at least 1, and the current request.

    A turn is one user or assistant message with the tool messages that answer it. Where a window would
    open with an answer, a notice takes the place of what left; a removal is given up while that notice
    would be longer than what it replaces.

    Raises:
        BuilderError: The number is no whole number of at least 1.
    """
    return SlidingWindow(keep_recent_turns=keeping(keep_recent_turns, "sliding_window"))
