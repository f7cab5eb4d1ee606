"""The after-tool moment, and the one place where what a model reads of a call is filed."""

from __future__ import annotations

import msgspec

from footprint_core import plain
from footprint_core.chain.calls import Refused
from footprint_core.chain.results import walk_result
from footprint_core.chain.subject import Subject
from footprint_core.facts import CallAnswered
from footprint_core.loop.turn import Ran, Refusing, Turn
from footprint_core.messages import Messages, ToolCall
from footprint_core.plain import Json


async def read_result(turn: Turn, call: ToolCall, ran: Ran, *, source: str | None = None) -> None:
    """Let the rules decide about a result, then answer the call with what they let through.

    Args:
        turn: The segment.
        call: The call.
        ran: What its body came to.
        source: Where its tool came from before a pause, for an agent that has lost it meanwhile.
    """
    turn.stage = "after-tool"
    links = turn.spec.chains.results
    result: Json = ran.result
    said: dict[str, Json] = {}
    if links:
        subject = subject_of(turn, call, turn.state.messages, source)
        walked = await walk_result(links, subject, ran.args, ran.result, turn.writer, failed=ran.failed)
        if isinstance(walked, Refused):
            result = walked.reason
            said = {"decided_by_rule": walked.rule, "text": walked.reason, "refused": True}
        elif walked.changed:
            result = walked.result
            said = {"decided_by_rule": walked.rule, "text": plain.rendered(result)}
    # An agent that went on in another process may have lost a tool that ran before.
    tool = turn.spec.tools.get(call.name)
    known = 0 if tool is None else len(ran.args.keys() & tool.keys)
    answered = CallAnswered(
        iteration=turn.state.iteration,
        call_id=call.id,
        tool_name=call.name,
        tool_type="function" if tool is None else tool.type,
        status="failed" if ran.failed else "ran",
        executed=True,
        args_changed=ran.changed,
        args_known_keys=known,
        args_unknown_keys=len(ran.args) - known,
        result_type=plain.json_type(result),
        result_bytes=plain.size(result),
        tool_source=source if tool is None else tool.source,
        error_class=ran.error_class,
        duration_us=ran.duration_us,
    )
    turn.writer.note(msgspec.structs.replace(answered, **said) if said else answered)


def subject_of(turn: Turn, call: ToolCall, history: Messages, source: str | None) -> Subject:
    """What rules are shown of a call; for `source` see `read_result`."""
    tool = turn.spec.tools.get(call.name)
    return Subject(
        tool_name=call.name,
        tool_source=source if tool is None else tool.source,
        call_id=call.id,
        iteration=turn.state.iteration,
        history=history,
        identity=turn.identity,
    )


def answer_refused(turn: Turn, call: ToolCall, refusing: Refusing, *, source: str | None = None) -> None:
    """Answer a call that did not run; no result rule is asked.

    Args:
        turn: The segment.
        call: The call.
        refusing: Why it did not run.
        source: Where its tool came from before a pause, for an agent that has lost it meanwhile.
    """
    tool = turn.spec.tools.get(call.name)
    known = 0 if tool is None else len(refusing.args.keys() & tool.keys)
    text = plain.detach(refusing.text)
    turn.writer.note(
        CallAnswered(
            iteration=turn.state.iteration,
            call_id=call.id,
            tool_name=call.name,
            tool_type="function" if tool is None else tool.type,
            status=refusing.status,
            executed=False,
            args_changed=refusing.changed,
            args_known_keys=known,
            args_unknown_keys=len(refusing.args) - known,
            result_type="string",
            result_bytes=plain.size(text),
            tool_source=source if tool is None else tool.source,
            decided_by_rule=refusing.rule,
            refused=True,
            issues=refusing.issues,
            text=text,
        )
    )
