"""The calls of a reply are taken up one after another: rules decide, then the tool runs, or does not."""

from __future__ import annotations

import json

from footprint_core import plain
from footprint_core.chain.calls import Asked, Passed, Refused, walk_call
from footprint_core.chain.subject import Subject
from footprint_core.facts import CallTaken, IterationEnded
from footprint_core.loop.read_result import Refusing, answer_refused
from footprint_core.loop.run_tool import run_tool
from footprint_core.loop.turn import Question, Turn
from footprint_core.messages import ToolCall
from footprint_core.outcomes import ToolArgs

_MANY_BRACKETS = 100


async def dispatch(turn: Turn, *, start: int = 0) -> Question | None:
    """Answer the calls of the last reply from the one at `start`; stop at the first that asks a person."""
    state = turn.state
    calls = state.calls
    for index in range(start, len(calls)):
        question = await take_call(turn, index)
        if question is not None:
            return question
    turn.writer.note(IterationEnded(iteration=state.iteration, call_count=len(calls)))
    return None


async def take_call(turn: Turn, index: int) -> Question | None:
    """Take up one call."""
    state = turn.state
    call = state.calls[index]
    tool = turn.spec.tools.get(call.name)
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
        answer_refused(turn, call, {}, Refusing(status="blocked", text=text))
        return None
    args = _decoded(call)
    if not plain.is_object(args):
        text = (
            f"The arguments for {call.name} are not valid, so it was not run. (arguments): expected a "
            f"JSON object, got {plain.json_type(args)}."
        )
        answer_refused(turn, call, {}, Refusing(status="invalid", text=text, issues=1))
        return None
    return await decide(turn, index, args, start=0)


def _decoded(call: ToolCall) -> plain.Json:
    text = call.args_json
    try:
        # What is nested deeper than anybody reads is cut, so that no walk over it can exhaust the stack.
        return plain.detach(call.args) if text.count("[") + text.count("{") > _MANY_BRACKETS else call.args
    except ValueError:
        pass
    try:
        # An escape of half a character is legal JSON, and what it stands for cannot be written.
        return plain.detach(json.loads(text))
    except (ValueError, RecursionError):
        # A provider hands over what the model wrote; text that is no JSON is a string, and no object.
        return text


async def decide(
    turn: Turn, index: int, args: ToolArgs, *, start: int, changed: bool = False
) -> Question | None:
    """Walk the chain over a call from the link at `start`, then act on what it says.

    `changed` says whether `args` are no longer what the model sent.
    """
    turn.stage = "before-tool"
    call = turn.state.calls[index]
    subject = subject_of(turn, call)
    links = turn.spec.chains.calls
    if start >= len(links):
        await run_tool(turn, call, subject, args, changed=changed)
        return None
    walked = await walk_call(links, subject, args, turn.writer, start=start)
    match walked:
        case Passed():
            await run_tool(turn, call, subject, walked.args, changed=changed or walked.args is not args)
            return None
        case Refused():
            refusing = Refusing(status="denied", text=walked.reason, rule=walked.rule)
            answer_refused(turn, call, args, refusing)
            return None
        case Asked():
            return Question(
                kind="ask",
                middleware=walked.rule,
                link=walked.index,
                question=walked.question,
                detail=walked.detail,
                index=index,
                call_id=call.id,
                tool_name=call.name,
                tool_source=subject.tool_source,
                args=walked.args,
            )


def subject_of(turn: Turn, call: ToolCall) -> Subject:
    """What the rules are shown of a call."""
    tool = turn.spec.tools.get(call.name)
    return Subject(
        tool_name=call.name,
        tool_source=None if tool is None else tool.source,
        call_id=call.id,
        iteration=turn.state.iteration,
        history=turn.state.messages,
        identity=turn.identity,
    )
