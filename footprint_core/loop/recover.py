"""The run of a dead process goes on from where it stands: nothing that is on record happens again."""

from __future__ import annotations

from typing import assert_never

from footprint_core import plain
from footprint_core.facts import IterationEnded, RunRecovered
from footprint_core.loop.acquire import acquire
from footprint_core.loop.dispatch import before_subject, dispatch
from footprint_core.loop.gates import Ready
from footprint_core.loop.resume import go_on_behind
from footprint_core.loop.run import converse
from footprint_core.loop.standing import Standing
from footprint_core.loop.standing_call import Finished, InDoubt, PersonDecided
from footprint_core.loop.together import run_bodies
from footprint_core.loop.turn import Ending, Question, Ran, Refusing, Settled, Taken, Turn
from footprint_core.outcomes import ToolArgs
from footprint_core.pause.person import Person
from footprint_core.plain import Json
from footprint_core.tools.tool import Checked, checked


async def recover_run(turn: Turn, found: Standing) -> Ending:
    """Go on with a run that stands somewhere between its message and its end."""
    turn.stage = "recover"
    turn.stopped_early = found.early
    turn.writer.note(RunRecovered(finished=found.finished, in_doubt=found.in_doubt))
    match found.step:
        case "calls":
            return await _answer_calls(turn, found)
        case "model":
            return await converse(turn, asking=found.asking)
        case "reply":
            return await converse(turn, replied=found.reply)
        case "close":
            turn.writer.note(IterationEnded(iteration=turn.state.iteration, call_count=0))
            return await converse(turn)
        case "message" | "window":
            return await converse(turn)
        case _:
            assert_never(found.step)


async def _answer_calls(turn: Turn, found: Standing) -> Ending:
    """Answer the calls of a reply that are not answered yet."""
    turn.taken = frozenset(found.taken)
    for index, call in found.calls.items():
        if isinstance(call, Finished):
            turn.held[index] = _ran(call)
    turn.held.update(await _settle_doubts(turn, found))
    first = turn.state.answered
    decided = found.calls.get(first)
    if isinstance(decided, PersonDecided):
        # Whoever was asked was asked about the first call that is not answered: the others came behind it.
        person = Person(decision="approved" if decided.approved else "declined", by="", note=decided.note)
        question = _question(turn, first, decided)
        return await go_on_behind(turn, question, person, rewalk=decided.rewalk)
    stopped = await dispatch(turn, start=first)
    return await converse(turn) if stopped is None else stopped


def _ran(call: Finished) -> Ran:
    return Ran(
        args=_object(call.args),
        result=call.end.result,
        failed=call.end.failed,
        error_class=call.end.error_class,
        duration_us=call.end.duration_us,
        changed=call.changed,
    )


async def _settle_doubts(turn: Turn, found: Standing) -> dict[int, Settled]:
    """What the calls come to that may have run: those of an idempotent tool run again, with the same key."""
    settled: dict[int, Settled] = {}
    again: dict[int, Ready] = {}
    positions: dict[int, int] = {}
    for index, doubt in found.calls.items():
        if isinstance(doubt, InDoubt):
            ready = await _once_more(turn, index, doubt)
            if ready is None:
                settled[index] = _refusing(turn, index, doubt)
            else:
                again[index], positions[index] = ready, doubt.position
    if not again:
        return settled
    # Behind its first intent it has no other; what makes this attempt known is that the run was recovered.
    await turn.writer.commit()
    await turn.writer.cancellation.heed()
    if turn.spec.parallel_tools:
        return settled | await run_bodies(turn, again, positions)
    for index, ready in again.items():
        settled |= await run_bodies(turn, {index: ready}, positions)
    return settled


async def _once_more(turn: Turn, index: int, doubt: InDoubt) -> Ready | None:
    """The call as it can run again; None where that could do harm, or something else would run."""
    call = turn.state.calls[index]
    tool = turn.spec.tools.get(call.name)
    if tool is None or not tool.idempotent or not plain.is_object(doubt.args):
        return None
    same = checked(tool, doubt.args)
    if not isinstance(same, Checked) or not plain.same(same.args, doubt.args):
        return None
    subject = before_subject(turn, call)
    taken = Taken(index=index, call=call, subject=subject, args=doubt.args, changed=doubt.changed)
    credential = None if tool.needs is None else await acquire(turn, taken, tool.needs)
    if tool.needs is not None and credential is None:
        return None
    return Ready(taken=taken, tool=tool, found=same, credential=credential, approved=doubt.approved)


def _refusing(turn: Turn, index: int, doubt: InDoubt) -> Refusing:
    name = turn.state.calls[index].name
    text = (
        f"The tool {name} may have run before the process died, so it was not run again; find out what it "
        "did before you call it again."
    )
    return Refusing(status="blocked", text=text, args=_object(doubt.args), changed=doubt.changed)


def _question(turn: Turn, index: int, decided: PersonDecided) -> Question:
    """The question a person answered, as it was put to them."""
    pause, call = decided.pause, turn.state.calls[index]
    names = [link.name for link in turn.spec.chains.calls]
    asked = pause.pause_kind == "ask" and not decided.rewalk
    return Question(
        kind=pause.pause_kind,
        index=index,
        call_id=call.id,
        tool_name=call.name,
        tool_source=pause.tool_source,
        args=_object(decided.args),
        middleware=pause.middleware,
        link=names.index(pause.middleware or "") if asked else -1,
        checked=_shown(turn, call.name, decided) if pause.pause_kind == "check-in" else None,
        changed=decided.changed,
    )


def _shown(turn: Turn, name: str, decided: PersonDecided) -> ToolArgs | None:
    """The args a person saw at a check-in; None for a tool that makes a value of them up at each check."""
    tool = turn.spec.tools.get(name)
    if tool is None:
        return None
    once, again = (checked(tool, _object(decided.args)) for _ in range(2))
    if isinstance(once, Checked) and isinstance(again, Checked) and plain.same(once.args, again.args):
        return once.args
    return None


def _object(args: Json) -> ToolArgs:
    """Arguments; none where the ledger does not keep them and nobody needs them."""
    return args if plain.is_object(args) else {}
