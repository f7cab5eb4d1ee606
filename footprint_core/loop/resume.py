"""A person answered: the answered call is finished first, then the rest of its batch, then the loop."""

from __future__ import annotations

import msgspec

from footprint_core import plain
from footprint_core.facts import CheckInAnswered, Decided, Fact, PauseAnswered, ToolFinished
from footprint_core.loop.dispatch import before_subject, decoded, dispatch, finish, settle
from footprint_core.loop.run import converse
from footprint_core.loop.turn import Consent, Ending, Question, Ran, Refusing, Settled, Taken, Turn
from footprint_core.pause.person import Person, Value


class Answering(msgspec.Struct, frozen=True, kw_only=True):
    """An open question and what answers it.

    Attributes:
        pause_id: The pause.
        question: The question.
        opened_us: When the pause was opened, microseconds since the Unix epoch, UTC.
        answer: What the person decided, or the value they gave.
        rewalk: Whether everything is asked again, since the agent's rules changed.
    """

    pause_id: str
    question: Question
    opened_us: int
    answer: Person | Value
    rewalk: bool


async def resume_run(turn: Turn, answering: Answering) -> Ending:
    """Go on behind the question; the append of the answer is what consumes the pause."""
    turn.stage = "resume"
    question, answer = answering.question, answering.answer
    turn.writer.note(
        PauseAnswered(
            pause_id=answering.pause_id,
            pause_kind=question.kind,
            answer=answer.word,
            tool_name=question.tool_name,
            call_id=question.call_id,
            paused_us=max(0, turn.writer.now() - answering.opened_us),
            rewalk=answering.rewalk,
        )
    )
    turn.writer.note(_on_record(turn, question, answer))
    try:
        await turn.writer.commit()
    finally:
        # Also when a cancellation waited for the commit: the answer is on record then.
        if not turn.writer.broken:
            turn.stage = "before-tool"
    return await go_on_behind(turn, question, answer, rewalk=answering.rewalk)


async def go_on_behind(
    turn: Turn, question: Question, answer: Person | Value, *, rewalk: bool = False
) -> Ending:
    """Finish the call a person was asked about, then the rest of its batch, then the turn."""
    settled = await _settled(turn, question, answer, rewalk=rewalk)
    stopped = await finish(turn, question.index, settled, source=question.tool_source)
    if stopped is None:
        stopped = await dispatch(turn, start=question.index + 1)
    return await converse(turn) if stopped is None else stopped


def _on_record(turn: Turn, question: Question, answer: Person | Value) -> Fact:
    """What the answer leaves: a second row of the rule that asked, a consent, or a tool's result."""
    iteration = turn.state.iteration
    if isinstance(answer, Value):
        return ToolFinished(
            iteration=iteration,
            call_id=question.call_id,
            tool_name=question.tool_name,
            tool_source=question.tool_source,
            failed=False,
            by_person=True,
            duration_us=question.ran_us,
            result=answer.value,
        )
    by = plain.detach(answer.by)
    if question.kind == "check-in":
        return CheckInAnswered(
            iteration=iteration,
            call_id=question.call_id,
            tool_name=question.tool_name,
            tool_source=question.tool_source,
            approved=answer.approved,
            decided_by=by,
            note=plain.detach(answer.note) if answer.note else msgspec.UNSET,
        )
    versions = {link.name: link.version for link in turn.spec.chains.calls}
    rule = question.middleware or ""
    return Decided(
        middleware=rule,
        version=versions.get(rule),
        moment="before-tool",
        iteration=iteration,
        outcome="allow" if answer.approved else "deny",
        answer="person",
        tool_name=question.tool_name,
        tool_source=question.tool_source,
        call_id=question.call_id,
        why=plain.detach(answer.sentence()),
        decided_by=by,
    )


async def _settled(turn: Turn, question: Question, answer: Person | Value, *, rewalk: bool) -> Settled:
    """What the answered call comes to."""
    call = turn.state.calls[question.index]
    sent, changed = decoded(call), question.changed
    if isinstance(answer, Value):
        return Ran(
            args=question.args,
            result=answer.value,
            failed=False,
            error_class=None,
            duration_us=question.ran_us,
            changed=changed,
        )
    if not answer.approved:
        note = f": {answer.note}" if answer.note else "."
        text = f"A person declined this call to {call.name}, so it was not run{note}"
        return Refusing(
            status="denied", text=text, args=question.args, rule=question.middleware, changed=changed
        )
    links = turn.spec.chains.calls
    subject = before_subject(turn, call, source=question.tool_source)
    consent = Consent(
        kind=question.kind, rule=question.middleware, args=question.args, checked=question.checked
    )
    taken = Taken(
        index=question.index,
        call=call,
        subject=subject,
        args=sent if rewalk else question.args,
        changed=changed and not rewalk,
        start=0 if rewalk else question.link + 1 if question.kind == "ask" else len(links),
        # The tool of another server was never approved. Where nothing is asked again, it was refused before.
        consent=None if rewalk and subject.tool_source != question.tool_source else consent,
        rewalk=rewalk,
    )
    return await settle(turn, taken)
