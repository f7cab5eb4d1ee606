"""The run of a process that died is taken over: read, refused where it cannot go on, its segment closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from footprint_core.commit import Writer
from footprint_core.errors import MessageLostError, RecoverError, RunTakenOverError
from footprint_core.facts import RuleRef, RunConfigured, SegmentEnded
from footprint_core.ledger import RunStanding
from footprint_core.loop.kept_conversation import KeptTurn, about_run, kept_turn
from footprint_core.loop.pause import Origin
from footprint_core.loop.standing import Standing, standing
from footprint_core.loop.standing_call import Finished, InDoubt, Lost, PersonDecided
from footprint_core.messages import ToolCall
from footprint_core.moments import LoopMoment
from footprint_core.plain import Json
from footprint_core.spec import AgentSpec
from footprint_core.state import RunState
from footprint_core.tools.tool import Tool


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a dead process left it, which can go on.

    Attributes:
        run_id: The run.
        standing: Where it stands.
        state: The run, folded.
        origin: Where its turn began.
        at: Where it ends in the ledger.
    """

    run_id: str
    standing: Standing
    state: RunState
    origin: Origin
    at: RunStanding

    @property
    def identity(self) -> Json:
        """What its caller passed as identity, or None."""
        identity = self.standing.opening.identity
        return None if identity is msgspec.UNSET else identity


async def left_behind(spec: AgentSpec, run_id: str) -> Left:
    """The run, when it can go on from what the ledger holds. Nothing is written.

    Raises:
        RecoverError: It is not here, over, paused, given up, or of an agent that differs from this one.
        RunTakenOverError: A process goes on with it at this moment.
        MessageLostError: Redaction or erasure took a value that is needed.
        NoConversationError: A run before it in its conversation is not here.
        LedgerError: The ledger cannot be read.
    """
    if not isinstance(cast("object", run_id), str):
        raise RecoverError("recover() takes the id of a run as a text; pass its run_id.")
    entries = spec.ledger.entries(run_id)
    at = await spec.ledger.run_standing(run_id)
    if not entries or at is None:
        raise _refused(run_id, "is not in this ledger; recover it with the ledger that has it.")
    if at.position != entries[-1].position:
        raise RunTakenOverError("A process goes on with this run at this moment; it is not recovered.")
    opening = entries[0].fact
    if not isinstance(opening, RunConfigured):
        raise _refused(run_id, "came here behind a pause, without its messages; go on where it began.")
    if opening.agent_id != spec.agent_id:
        raise _refused(
            run_id, f"belongs to the agent {opening.agent_id!r}, not to {spec.agent_id!r}; recover it there."
        )
    found = standing(opening, entries)
    _refuse_over(run_id, found)
    _refuse_other_agent(run_id, found, spec)
    turn = kept_turn(spec.ledger, spec.agent_id, run_id, opening, entries)
    _refuse_other_source(run_id, found, turn.state.calls, spec.tools)
    _refuse_lost(run_id, found, turn.state.calls, spec)
    return Left(
        run_id=run_id, standing=found, state=turn.state, origin=_origin(spec, run_id, opening, turn), at=at
    )


async def take_over(spec: AgentSpec, left: Left) -> int:
    """Close the segment that has no end; the last position of the run.

    Raises:
        RunTakenOverError: Another process goes on with the run.
        LedgerError: The ledger did not take it.
    """
    found, at, state = left.standing, left.at, left.state
    if found.ended is not None:
        # A process that recovered the run died behind this step.
        return at.position
    writer = Writer(
        ledger=spec.ledger,
        audience=spec.bus.audience(),
        state=state,
        clock=spec.clock(),
        run_id=left.run_id,
        segment=at.segment,
        position=at.position,
    )
    writer.trace = at.trace
    writer.note(
        SegmentEnded(
            outcome="abandoned",
            iterations=state.iteration,
            input_tokens=state.input_tokens,
            output_tokens=state.output_tokens,
            # How long it was heard of; nobody knows when its process died.
            duration_us=max(0, found.last_us - found.began_us),
            stopped_early=found.early,
        )
    )
    await writer.commit()
    return writer.position


def _refused(run_id: str, why: str) -> RecoverError:
    return about_run(RecoverError, run_id, why)


def _origin(spec: AgentSpec, run_id: str, opening: RunConfigured, turn: KeptTurn) -> Origin:
    return Origin(
        conversation_id=opening.conversation_id,
        follows=opening.follows,
        before=turn.before,
        rows=spec.ledger.decisions(run_id),
    )


def _refuse_over(run_id: str, found: Standing) -> None:
    """Refuse a run that has nothing left to do, or waits for somebody else."""
    if found.given_up:
        raise _refused(run_id, "was abandoned by a person, so nothing continues it; begin a new one.")
    if found.question is not None:
        raise _refused(
            run_id,
            f"waits for a person's answer about {found.question.tool_name} "
            f"(call {found.question.call_id}); answer it with resume().",
        )
    if found.expired:
        raise _refused(
            run_id, "paused for an answer that did not come in time, so it cannot go on; abandon it."
        )
    if found.ended is not None and found.ended != "abandoned":
        raise _refused(run_id, f"is over, it is {found.ended}; begin a new one.")
    if found.served:
        raise _refused(run_id, "is a call of a client, which waits for no answer any more; abandon it.")
    if found.step == "message":
        raise _refused(run_id, "took no message before its process died, so nothing acted; start it again.")


def _refuse_other_agent(run_id: str, found: Standing, spec: AgentSpec) -> None:
    """Refuse an agent whose rules or tools are not those the run was going on with."""
    then = found.configured
    for moment, refs in spec.rules.items():
        before = then.rules.get(moment, ())
        if before != refs:
            raise _refused(run_id, _differing(moment, before, refs))
    for name in (*then.tools, *spec.tools):
        if (name in then.tools) != (name in spec.tools):
            has = "had the tool" if name in then.tools else "did not have the tool"
            raise _refused(run_id, f"{has} {name}; recover it on an agent with the same tools.")
    if then.tools != spec.offers.names:
        moved = next(a for a, b in zip(then.tools, spec.offers.names, strict=True) if a != b)
        raise _refused(
            run_id, f"offered the tool {moved} at another place; give the tools in the same order."
        )


def _differing(moment: LoopMoment, before: tuple[RuleRef, ...], now: tuple[RuleRef, ...]) -> str:
    names = [ref.name for ref in before], [ref.name for ref in now]
    if names[0] == names[1]:
        one = next(b.name for b, n in zip(before, now, strict=True) if b != n)
        return f"had another version of the rule {one} at {moment}; recover it on an agent with that one."
    then, there = (", ".join(those) or "none" for those in names)
    return f"had the rules {then} at {moment}, and here they are {there}; recover it on an agent with those."


def _refuse_other_source(
    run_id: str, found: Standing, calls: tuple[ToolCall, ...], tools: Mapping[str, Tool]
) -> None:
    """What was decided about the tool of one server is no word about another of its name."""
    for index, source in found.taken.items():
        tool, known = tools.get(calls[index].name), found.calls.get(index)
        anew = isinstance(known, PersonDecided) and known.rewalk
        if index >= found.answered and tool is not None and tool.source != source and not anew:
            raise _refused(
                run_id,
                f"took up a call to {tool.name} of {source or 'its own program'}, and here that comes from "
                f"{tool.source or 'this program'}; recover it on an agent with that one.",
            )


def _refuse_lost(run_id: str, found: Standing, calls: tuple[ToolCall, ...], spec: AgentSpec) -> None:
    """Refuse a run of which a value that is needed to go on is gone."""
    gone: Lost | None = None
    if found.identity_lost:
        gone = Lost(kind="run.configured", field="identity")
    elif found.step == "reply" and found.reply_lost:
        gone = Lost(kind="model.replied", field="text")
    for index, call in found.calls.items():
        gone = gone or _gone(call, calls[index].name, spec)
    if gone is not None:
        raise MessageLostError(run_id=run_id, kind=gone.kind, field=gone.field)


def _gone(call: Finished | InDoubt | PersonDecided, name: str, spec: AgentSpec) -> Lost | None:
    """What is needed of a call and is not what it was."""
    if isinstance(call, PersonDecided):
        return call.lost
    if isinstance(call, Finished):
        # Without rules behind a tool, nobody is shown what it ran with.
        return call.result_lost or (call.args_lost if spec.chains.results else None)
    tool = spec.tools.get(name)
    return call.args_lost if tool is not None and tool.idempotent else None
