"""A checkpoint and an answer are checked against the agent and the ledger before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from footprint_core.decisions import Decision
from footprint_core.errors import ForeignCheckpointError, StaleDecisionError
from footprint_core.facts import TraceRef
from footprint_core.ledger import Ledger
from footprint_core.messages import AssistantMessage, Messages, ToolMessage, UserMessage
from footprint_core.moments import LoopMoment
from footprint_core.pause.checkpoint import Checkpoint, read_checkpoint, refuse_other_agent
from footprint_core.pause.person import Person, read_decision
from footprint_core.plain import Json
from footprint_core.state import RunState


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A paused run that can go on.

    Attributes:
        checkpoint: Where it paused.
        person: The decision.
        state: The run, folded.
        before: The conversation as it was before the turn.
        rows: The decision rows so far.
        position: The last position of the run.
        segment: Its last segment.
        trace: The span of the segment that paused, or None.
    """

    checkpoint: Checkpoint
    person: Person
    state: RunState
    before: Messages
    rows: tuple[Decision, ...]
    position: int
    segment: int
    trace: TraceRef | None


async def restore(
    data: Mapping[str, Json],
    answer: object,
    *,
    ledger: Ledger,
    agent_id: str,
    rules: Mapping[LoopMoment, tuple[str, ...]],
) -> Restored:
    """Everything a resume needs; whatever refuses it leaves the pause answerable.

    Raises:
        ForeignCheckpointError: The checkpoint is none, was edited, or the agent's rules differ.
        DecisionRequiredError: The answer is no decision of a person.
        StaleDecisionError: The pause was answered before.
    """
    checkpoint = read_checkpoint(data)
    refuse_other_agent(checkpoint, agent_id, rules)
    person = read_decision(answer, gate=checkpoint.call.kind, tool_name=checkpoint.call.tool_name)
    standing = await ledger.pause_standing(checkpoint.run_id, checkpoint.pause_id)
    if standing is None:
        # Going on without a record of the pause, one approval would run a tool once a ledger.
        raise ForeignCheckpointError(
            "The ledger of this agent does not know this pause; resume on the ledger it was opened in."
        )
    if standing.answered:
        raise StaleDecisionError("The pause was answered before; each answer is used once.")
    if (standing.salt, standing.digest) != (checkpoint.salt, checkpoint.digest):
        raise ForeignCheckpointError("The checkpoint is not the one the ledger recorded; use the original.")
    state, before = _state(checkpoint, rules["before-tool"])
    trace = checkpoint.trace
    return Restored(
        checkpoint=checkpoint,
        person=person,
        state=state,
        before=before,
        rows=ledger.decisions(checkpoint.run_id),
        position=standing.position,
        segment=standing.segment,
        trace=None if trace is None else TraceRef(trace_id=trace[0], span_id=trace[1]),
    )


_Said = tuple[UserMessage | AssistantMessage | ToolMessage, ...]


def _state(checkpoint: Checkpoint, links: tuple[str, ...]) -> tuple[RunState, Messages]:
    """The folded run and the conversation before it, when they fit the call in question."""
    asked = checkpoint.call
    try:
        state = RunState.from_plain(checkpoint.state)
        before = msgspec.convert(
            checkpoint.before, type=tuple[UserMessage | AssistantMessage | ToolMessage, ...]
        )
    except msgspec.ValidationError:
        state, before = RunState(), ()
    calls = state.calls[asked.index : asked.index + 1] if asked.index >= 0 else ()
    fits = (
        [(call.id, call.name) for call in calls] == [(asked.call_id, asked.tool_name)]
        and 0 <= asked.link < len(links)
        and links[asked.link] == asked.middleware
    )
    if not fits:
        raise ForeignCheckpointError("The checkpoint was damaged; use the original.")
    return state, Messages(before)
