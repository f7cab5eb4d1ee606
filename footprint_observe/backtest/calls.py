"""Watches what became of the calls of one conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from footprint_core.events import DecisionFiled, Event, PauseResumed, ToolCallEnded
from footprint_core.facts import CallStatus
from footprint_observe.backtest.report import What
from footprint_observe.backtest.tally import Counted

_REFUSED: dict[CallStatus, What] = {"blocked": "call-blocked", "invalid": "call-invalid"}


class Diverge(Protocol):
    """Is told of a divergence."""

    def __call__(self, what: What, *, call_id: str, rule: str | None) -> None:
        """Mark it."""
        ...


class CallWatch:
    """A watcher that counts the calls that came to an end, and marks those that left the recording.

    Args:
        count: Is told what to count.
        diverge: Is told of a divergence.

    Attributes:
        id: The watcher's id.
    """

    id = "footprint.backtest"

    def __init__(self, count: Callable[[Counted], None], diverge: Diverge) -> None:
        self._count = count
        self._diverge = diverge
        self._declined = False

    def on_event(self, event: Event, /) -> None:
        """Take one event."""
        match event:
            case PauseResumed(answer=answer):
                self._declined = answer == "declined"
            case DecisionFiled(moment="after-tool", outcome="deny", tool_call_id=str(call_id)):
                self._diverge("result-denied", call_id=call_id, rule=event.middleware)
            case ToolCallEnded():
                self._ended(event)
            case _:
                pass

    def _ended(self, event: ToolCallEnded) -> None:
        # The call a person was asked about is the first that ends behind the answer.
        declined, self._declined = self._declined, False
        self._count("executed" if event.executed else "refused")
        if event.executed:
            if event.args_changed:
                self._diverge("args-changed", call_id=event.tool_call_id, rule=None)
            return
        refused = _REFUSED.get(event.status, "call-declined" if declined else "call-denied")
        self._diverge(refused, call_id=event.tool_call_id, rule=event.decided_by_rule)
