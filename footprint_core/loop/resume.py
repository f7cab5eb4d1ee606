"""A person answered: the answered call is finished first, then the rest of its batch, then the loop."""

from __future__ import annotations

import msgspec

from footprint_core import plain
from footprint_core.facts import Decided, PauseAnswered
from footprint_core.loop.dispatch import decide, dispatch
from footprint_core.loop.read_result import Refusing, answer_refused
from footprint_core.loop.run import converse
from footprint_core.loop.turn import Ending, Turn
from footprint_core.outcomes import ToolArgs
from footprint_core.pause.person import Person


class Answering(msgspec.Struct, frozen=True, kw_only=True):
    """An open question and the decision that answers it.

    Attributes:
        pause_id: The pause.
        middleware: The rule that asked.
        link: Its place in the chain.
        index: The call's place among the calls of the reply.
        args: The args the person was shown.
        opened_us: When the pause was opened, microseconds since the Unix epoch, UTC.
        person: The decision.
    """

    pause_id: str
    middleware: str
    link: int
    index: int
    args: ToolArgs
    opened_us: int
    person: Person


async def resume_run(turn: Turn, answering: Answering) -> Ending:
    """Go on behind the question; the append of the answer is what consumes the pause."""
    turn.stage = "resume"
    call = turn.state.calls[answering.index]
    person = answering.person
    turn.writer.note(
        PauseAnswered(
            pause_id=answering.pause_id,
            pause_kind="ask",
            answer="approved" if person.approved else "declined",
            tool_name=call.name,
            call_id=call.id,
            paused_us=max(0, turn.writer.now() - answering.opened_us),
        )
    )
    turn.writer.note(_row(turn, answering))
    try:
        await turn.writer.commit()
    finally:
        # Also when a cancellation waited for the commit: the answer is on record then.
        if not turn.writer.broken:
            turn.stage = "before-tool"
    if person.approved:
        changed = not plain.same(call.args, answering.args)
        question = await decide(
            turn, answering.index, answering.args, start=answering.link + 1, changed=changed
        )
        if question is not None:
            return question
    else:
        note = f": {person.note}" if person.note else "."
        text = f"A person declined this call to {call.name}, so it was not run{note}"
        refusing = Refusing(status="denied", text=text, rule=answering.middleware)
        answer_refused(turn, call, answering.args, refusing)
    question = await dispatch(turn, start=answering.index + 1)
    return await converse(turn) if question is None else question


def _row(turn: Turn, answering: Answering) -> Decided:
    """The second row of the rule that asked: what the person decided. No rule ran, so no duration."""
    call = turn.state.calls[answering.index]
    tool = turn.spec.tools.get(call.name)
    link = turn.spec.chains.calls[answering.link]
    return Decided(
        middleware=answering.middleware,
        version=link.version,
        moment="before-tool",
        iteration=turn.state.iteration,
        outcome="allow" if answering.person.approved else "deny",
        answer="person",
        tool_name=call.name,
        tool_source=None if tool is None else tool.source,
        call_id=call.id,
        why=plain.detach(answering.person.sentence()),
        detail=msgspec.UNSET,
        decided_by=plain.detach(answering.person.by),
    )
