"""What the model is about to be shown."""

from __future__ import annotations

from typing import ClassVar, Literal

from footprint_core.events.base import EventBase, Slot
from footprint_core.facts import PlanAction


class ContextEvicted(EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="context.evicted"):
    """One message left the window."""

    type: ClassVar[str] = "context.evicted"
    slot: Slot
    reason: Literal["budget"]
    iteration: int


class BudgetPressure(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="context.budget_pressure"
):
    """The window was over the threshold of a token strategy."""

    type: ClassVar[str] = "context.budget_pressure"
    slot: Slot
    unit: Literal["tokens"]
    cap: int
    projected: int
    overflow_by: int
    plan_action: PlanAction
    iteration: int


class ContextInjected(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="context.injected"
):
    """A slot gained pieces since the last model call of the run."""

    type: ClassVar[str] = "context.injected"
    slot: Slot
    pieces: int
    iteration: int


class SlotComposed(
    EventBase, frozen=True, kw_only=True, gc=False, tag_field="type", tag="context.slot_composed"
):
    """A slot as the model will see it."""

    type: ClassVar[str] = "context.slot_composed"
    slot: Slot
    iteration: int
    pieces: int
    chars: int


class ToolsOffered(EventBase, frozen=True, kw_only=True, tag_field="type", tag="tools.offered"):
    """The tools the model may ask for in this call."""

    type: ClassVar[str] = "tools.offered"
    iteration: int
    offered: tuple[str, ...]
    count: int
