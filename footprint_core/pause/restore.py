"""A checkpoint and an answer are checked against the agent and the ledger before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from footprint_core.decisions import Decision
from footprint_core.errors import ForeignCheckpointError, StaleDecisionError
from footprint_core.facts import TraceRef
from footprint_core.ledger import Ledger, PauseStanding
from footprint_core.messages import AssistantMessage, Messages, ToolMessage, UserMessage
from footprint_core.moments import LoopMoment
from footprint_core.pause.checkpoint import Checkpoint, read_checkpoint, refuse_other_agent
from footprint_core.pause.person import Person, Value, read_decision, read_value
from footprint_core.plain import Json
from footprint_core.state import RunState


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A paused run that can go on.

    Attributes:
        checkpoint: Where it paused.
        answer: What the person decided, or the value they gave.
        state: The run, folded.
        before: The conversation as it was before the turn.
        rows: The decision rows so far, as the checkpoint carries them.
        standing: What the ledger knows of the pause; None when another ledger has the run.
        trace: The span of the segment that paused, or None.
    """

    checkpoint: Checkpoint
    answer: Person | Value
    state: RunState
    before: Messages
    rows: tuple[Decision, ...]
    standing: PauseStanding | None
    trace: TraceRef | None


async def restore(
    data: Mapping[str, Json],
    answer: object,
    *,
    ledger: Ledger,
    agent_id: str,
    rules: Mapping[LoopMoment, tuple[str, ...]] | None,
    key: bytes | None,
) -> Restored:
    """Everything a resume needs; whatever refuses it leaves the pause answerable.

    Args:
        data: The checkpoint.
        answer: What the person answered.
        ledger: The agent's ledger.
        agent_id: The agent.
        rules: The names of its rules, which must be those of then; None when they may differ.
        key: What checkpoints are signed with, or None.

    Raises:
        ForeignCheckpointError: The checkpoint is none, was edited, or the agent's rules differ.
        DecisionRequiredError: The answer is no decision of a person.
        PauseAnswerRequiredError: A tool waits for an answer, and there is none.
        StaleDecisionError: The pause was answered before.
    """
    checkpoint = read_checkpoint(data, key)
    refuse_other_agent(checkpoint, agent_id, rules)
    read = _answer(checkpoint, answer)
    standing = await ledger.pause_standing(checkpoint.run_id, checkpoint.pause_id)
    # Rows that were imported and no pause: a process died while it brought them here, and that goes on.
    if standing is None and not all(row.imported for row in ledger.decisions(checkpoint.run_id)):
        # Another process may have brought both here at this moment.
        standing = await ledger.pause_standing(checkpoint.run_id, checkpoint.pause_id)
        if standing is None:
            raise ForeignCheckpointError(
                "The ledger has this run and does not know this pause; resume on the ledger it was opened in."
            )
    if standing is not None:
        if standing.answered:
            raise taken_before()
        if (standing.salt, standing.digest) != (checkpoint.salt, checkpoint.digest):
            raise ForeignCheckpointError(
                "The checkpoint is not the one the ledger recorded; use the original."
            )
    state, before, rows = _state(checkpoint)
    trace = checkpoint.trace
    return Restored(
        checkpoint=checkpoint,
        answer=read,
        state=state,
        before=before,
        rows=rows,
        standing=standing,
        trace=None if trace is None else TraceRef(trace_id=trace[0], span_id=trace[1]),
    )


def taken_before() -> StaleDecisionError:
    """A pause that takes no answer any more."""
    return StaleDecisionError(
        "The pause was answered before, or closed, or its run was abandoned; look at the run, for each "
        "answer is used once."
    )


def _answer(checkpoint: Checkpoint, answer: object) -> Person | Value:
    """The answer, of the form the pause demands; the answer has no say in that."""
    call = checkpoint.call
    if call.kind == "human":
        return read_value(answer, tool_name=call.tool_name, call_id=call.call_id)
    return read_decision(answer, gate=call.kind, tool_name=call.tool_name, middleware=call.middleware)


def _state(checkpoint: Checkpoint) -> tuple[RunState, Messages, tuple[Decision, ...]]:
    """The folded run, the conversation before it and its rows, when they fit the call in question."""
    asked = checkpoint.call
    try:
        state = RunState.from_plain(checkpoint.state)
        before = msgspec.convert(
            checkpoint.before, type=tuple[UserMessage | AssistantMessage | ToolMessage, ...]
        )
        rows = msgspec.convert(checkpoint.rows, type=tuple[Decision, ...])
    except msgspec.ValidationError:
        raise ForeignCheckpointError("The checkpoint was damaged; use the original.") from None
    calls = state.calls[asked.index : asked.index + 1] if asked.index >= 0 else ()
    links = checkpoint.rules.get("before-tool", [])
    fits = [(call.id, call.name) for call in calls] == [(asked.call_id, asked.tool_name)]
    if asked.kind == "ask":
        fits = fits and 0 <= asked.link < len(links) and links[asked.link] == asked.middleware
    if not fits:
        raise ForeignCheckpointError("The checkpoint was damaged; use the original.")
    return state, Messages(before), rows
