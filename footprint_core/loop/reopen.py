"""A paused run is opened again: checked, closed when it came too late, and given its place in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from footprint_core import plain
from footprint_core.commit import Writer
from footprint_core.decisions import Decision
from footprint_core.errors import (
    ForeignCheckpointError,
    ResumeError,
    RunTakenOverError,
    StaleDecisionError,
    UnknownPauseError,
)
from footprint_core.facts import PauseClosed, PauseOpened
from footprint_core.loop.dispatch import decoded
from footprint_core.loop.import_run import import_run
from footprint_core.loop.pause import Origin
from footprint_core.loop.resume import Answering
from footprint_core.loop.turn import Question, Settled
from footprint_core.pause.kept import kept_checkpoint
from footprint_core.pause.restore import Restored, restore
from footprint_core.plain import Json
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a paused run goes on.

    Attributes:
        position: The last position of the run in this ledger.
        segment: Its last segment.
        rows: Its decision rows, as this ledger keeps them.
    """

    position: int
    segment: int
    rows: tuple[Decision, ...]


async def meant(
    spec: AgentSpec, checkpoint: Mapping[str, Json] | None, pause_id: str | None
) -> Mapping[str, Json]:
    """The checkpoint a caller means, who gave it or the id of its pause.

    Raises:
        ResumeError: Both or neither was given, or as `pause.kept.kept_checkpoint`.
        KeyRingError: The ledger's keys do not open what it keeps.
    """
    if pause_id is None and checkpoint is not None:
        return checkpoint
    if pause_id is None or checkpoint is not None:
        raise ForeignCheckpointError(
            "resume() takes the checkpoint a pause gave, or its pause_id=, and exactly one of them; give one."
        )
    if not isinstance(cast("object", pause_id), str):
        raise UnknownPauseError(
            "resume(pause_id=...) takes the id of a pause as a text; pass pause.pause_id."
        )
    return await kept_checkpoint(spec.ledger, pause_id, spec.checkpoint_key)


async def reopen(spec: AgentSpec, data: Mapping[str, Json], answer: object, *, rewalk: bool) -> Restored:
    """Everything that can refuse an answer; whatever does leaves the pause answerable, its expiry excepted.

    Raises:
        ResumeError: As `pause.restore.restore`; a pause that expired is closed on record.
        LedgerError: The ledger did not take that.
    """
    restored = await restore(
        data,
        answer,
        ledger=spec.ledger,
        agent_id=spec.agent_id,
        rules=None if rewalk else spec.rule_names(),
        key=spec.checkpoint_key,
    )
    _refuse_damaged(restored)
    _refuse_other_source(spec, restored, rewalk=rewalk)
    expires = restored.checkpoint.expires_us
    if expires is not None and spec.clock().now() > expires:
        await _close(spec, restored)
        raise StaleDecisionError("The pause expired before it was answered; ask again.")
    return restored


def _refuse_damaged(restored: Restored) -> None:
    """What is read behind the answer is read before it too, so that it cannot fail there."""
    calls, index = restored.state.calls, restored.checkpoint.call.index
    try:
        later = held(restored).keys()
    except msgspec.ValidationError:
        raise ForeignCheckpointError("The checkpoint was damaged at held; use the original.") from None
    if not all(index < one < len(calls) for one in later):
        raise ForeignCheckpointError("The checkpoint was damaged at held; use the original.")
    if not plain.is_object(decoded(calls[index])):
        raise ForeignCheckpointError("The checkpoint was damaged at state.calls; use the original.")


def _refuse_other_source(spec: AgentSpec, restored: Restored, *, rewalk: bool) -> None:
    """A person decided about the tool of one server; that is no word about another of its name."""
    call = restored.checkpoint.call
    tool = spec.tools.get(call.tool_name)
    if tool is None or tool.source == call.tool_source or (rewalk and call.kind != "human"):
        return
    raise ForeignCheckpointError(
        f"The tool {call.tool_name} comes from {tool.source or 'this program'} here, and came from "
        f"{call.tool_source or 'the program'} when a person was asked; resume on an agent with that one."
    )


async def _close(spec: AgentSpec, restored: Restored) -> None:
    """Close an expired pause on record, also in a ledger that did not have it."""
    checkpoint, at = restored.checkpoint, await place(spec, restored)
    writer = Writer(
        ledger=spec.ledger,
        audience=spec.bus.audience(),
        state=RunState(),
        clock=spec.clock(),
        run_id=checkpoint.run_id,
        segment=at.segment,
        position=at.position,
    )
    writer.note(
        PauseClosed(
            pause_id=checkpoint.pause_id,
            reason="expired",
            tool_name=checkpoint.call.tool_name,
            call_id=checkpoint.call.call_id,
        )
    )
    try:
        await writer.commit()
    except RunTakenOverError:
        # Somebody answered or closed it at this moment; it takes no answer either way.
        return


async def place(spec: AgentSpec, restored: Restored) -> Place:
    """Where the run goes on; a ledger that does not have it is given what the checkpoint carries.

    Raises:
        ForeignCheckpointError: It has the run after all, and not this pause.
        StaleDecisionError: Another process brought the pause there meanwhile.
        LedgerError: It did not take it.
    """
    checkpoint, standing = restored.checkpoint, restored.standing
    if standing is not None:
        position, segment = standing.position, standing.segment
    else:
        call = checkpoint.call
        pause = PauseOpened(
            pause_id=checkpoint.pause_id,
            pause_kind=call.kind,
            iteration=restored.state.iteration,
            call_id=call.call_id,
            tool_name=call.tool_name,
            tool_source=call.tool_source,
            middleware=call.middleware,
            expires_us=checkpoint.expires_us,
            salt=checkpoint.salt,
            digest=checkpoint.digest,
        )
        segment = checkpoint.segment
        try:
            position = await import_run(spec, checkpoint.run_id, segment, restored.rows, pause)
        except RunTakenOverError:
            raise await _already_there(spec, checkpoint.run_id, checkpoint.pause_id) from None
    return Place(position=position, segment=segment, rows=spec.ledger.decisions(checkpoint.run_id))


async def _already_there(spec: AgentSpec, run_id: str, pause_id: str) -> ResumeError:
    if await spec.ledger.pause_standing(run_id, pause_id) is None:
        return ForeignCheckpointError(
            "The ledger has this run and does not know this pause; resume on the ledger it was opened in."
        )
    return StaleDecisionError("Another process answers this pause at this moment; look at its run.")


def answering(restored: Restored, *, rewalk: bool) -> Answering:
    """The question of a checkpoint, and what answers it."""
    checkpoint = restored.checkpoint
    return Answering(
        pause_id=checkpoint.pause_id,
        question=msgspec.convert(checkpoint.call.model_dump(), Question),
        opened_us=checkpoint.opened_us,
        answer=restored.answer,
        rewalk=rewalk,
    )


def held(restored: Restored, *, rewalk: bool = False) -> dict[int, Settled]:
    """The calls of the batch that came to something before the one in question.

    Where everything is asked again, a question that a rule or a declaration asked then is none any more.
    """
    found = {index: msgspec.convert(one, Settled) for index, one in restored.checkpoint.held}
    return {index: one for index, one in found.items() if not (rewalk and _asks_anew(one))}


def _asks_anew(settled: Settled) -> bool:
    return isinstance(settled, Question) and settled.kind != "human"


def taken(restored: Restored) -> frozenset[int]:
    """The calls of the batch that were taken up already."""
    return frozenset(index for index, _ in restored.checkpoint.held)


def origin_of(restored: Restored, rows: tuple[Decision, ...]) -> Origin:
    """Where the turn of a paused run began."""
    checkpoint = restored.checkpoint
    return Origin(
        conversation_id=checkpoint.conversation_id,
        follows=checkpoint.follows,
        before=restored.before,
        rows=rows,
    )
