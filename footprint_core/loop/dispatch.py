"""The calls of a reply are taken up one after another: rules decide, then the tool runs, or does not."""

from __future__ import annotations

import json
from typing import assert_never

from footprint_core import plain
from footprint_core.chain.subject import Subject
from footprint_core.facts import CallTaken, IterationEnded
from footprint_core.loop.gates import Ready, pass_gates
from footprint_core.loop.read_result import answer_refused, read_result, subject_of
from footprint_core.loop.run_tool import commit_intents, note_intent, run_intended
from footprint_core.loop.together import run_together
from footprint_core.loop.turn import Halted, Question, Ran, Refusing, Settled, Taken, Turn
from footprint_core.messages import ToolCall

_MANY_BRACKETS = 100


async def dispatch(turn: Turn, *, start: int = 0) -> Question | Halted | None:
    """Answer the calls of the last reply from the one at `start`, up to one that asks a person or halts."""
    calls = turn.state.calls
    if turn.spec.parallel_tools and len(calls) - start > 1:
        await _gate_together(turn, start)
    for index in range(start, len(calls)):
        settled = turn.held.pop(index, None)
        if settled is None:
            settled = await settle(turn, take(turn, index))
        stopped = await finish(turn, index, settled)
        if stopped is not None:
            return stopped
    # Of this batch; the calls of the next one have the same places.
    turn.taken = frozenset()
    turn.writer.note(IterationEnded(iteration=turn.state.iteration, call_count=len(calls)))
    return None


async def _gate_together(turn: Turn, start: int) -> None:
    """Walk the gates in call order, up to the first call that asks or halts; run what passed together."""
    ready: dict[int, Ready] = {}
    calls = turn.state.calls
    for index in range(start, len(calls)):
        gated: Ready | Settled | None = turn.held.get(index)
        if gated is None:
            taken = take(turn, index)
            gated = taken if isinstance(taken, Refusing) else await pass_gates(turn, taken)
            if isinstance(gated, Ready):
                ready[index] = gated
                continue
            turn.held[index] = gated
        if isinstance(gated, Halted) or (isinstance(gated, Question) and gated.kind != "human"):
            break
    turn.held.update(await run_together(turn, ready))


def take(turn: Turn, index: int) -> Taken | Refusing:
    """Take up one call, unless it is none that could be decided about."""
    state = turn.state
    call = state.calls[index]
    tool = turn.spec.tools.get(call.name)
    if index not in turn.taken:
        turn.writer.note(
            CallTaken(
                iteration=state.iteration,
                call_id=call.id,
                tool_name=call.name,
                tool_source=None if tool is None else tool.source,
                parallel_count=len(state.calls) if len(state.calls) > 1 else None,
            )
        )
    if call.repeats is not None:
        text = (
            f"The call id {call.repeats} was used twice in one reply, so this call to {call.name} was not "
            "run; use a new id."
        )
        return Refusing(status="blocked", text=text, args={})
    args = decoded(call)
    if not plain.is_object(args):
        text = (
            f"The arguments for {call.name} are not valid, so it was not run. (arguments): expected a "
            f"JSON object, got {plain.json_type(args)}."
        )
        return Refusing(status="invalid", text=text, args={}, issues=1)
    return Taken(index=index, call=call, subject=before_subject(turn, call), args=args)


def decoded(call: ToolCall) -> plain.Json:
    """The arguments as they are worked with; text when the model wrote none that is JSON."""
    text = call.args_json
    try:
        # What is nested deeper than anybody reads is cut, so that no walk over it can exhaust the stack.
        deep = len(text) > _MANY_BRACKETS and text.count("[") + text.count("{") > _MANY_BRACKETS
        return plain.detach(call.args) if deep else call.args
    except ValueError:
        pass
    try:
        # An escape of half a character is legal JSON, and what it stands for cannot be written.
        return plain.detach(json.loads(text))
    except (ValueError, RecursionError):
        # A provider hands over what the model wrote; text that is no JSON is a string, and no object.
        return text


async def settle(turn: Turn, taken: Taken | Refusing) -> Settled:
    """Let everything decide about a call, and run it when it may."""
    if isinstance(taken, Refusing):
        return taken
    gated = await pass_gates(turn, taken)
    if not isinstance(gated, Ready):
        return gated
    position = note_intent(turn, gated)
    await commit_intents(turn, (gated,))
    settled = await run_intended(turn, gated, position, inline=turn.inline)
    if turn.spec.chains.results and isinstance(settled, Ran):
        # A result rule may take its time; what the tool did is on record before one is asked.
        await turn.writer.commit()
    return settled


async def finish(
    turn: Turn, index: int, settled: Settled, *, source: str | None = None
) -> Question | Halted | None:
    """Answer a call with what it came to; a question stays open. For `source` see `before_subject`."""
    call = turn.state.calls[index]
    match settled:
        case Ran():
            await read_result(turn, call, settled, source=source)
        case Refusing():
            answer_refused(turn, call, settled, source=source)
        case Question():
            return settled
        case Halted():
            answer_refused(turn, call, settled.refusing, source=source)
            return settled
        case _:
            assert_never(settled)
    return None


def before_subject(turn: Turn, call: ToolCall, *, source: str | None = None) -> Subject:
    """What is shown of a call to whoever decides before it runs.

    Args:
        turn: The segment.
        call: The call.
        source: Where its tool came from before a pause, for an agent that has lost it meanwhile.
    """
    messages = turn.state.messages
    if turn.spec.parallel_tools:
        # Calls that run together are decided about before any of them has a result; a pause between them
        # changes nothing about that.
        messages = messages.first(len(messages) - turn.state.answered)
    return subject_of(turn, call, messages, source)
