"""The after-tool moment, and the one place where what a model reads of a call is filed."""

from __future__ import annotations

import msgspec

from footprint_core import plain
from footprint_core.chain.calls import Refused
from footprint_core.chain.results import walk_result
from footprint_core.chain.subject import Subject
from footprint_core.facts import CallAnswered, CallStatus
from footprint_core.loop.turn import Ran, Refusing, Turn
from footprint_core.messages import ToolCall
from footprint_core.plain import Json


async def read_result(turn: Turn, call: ToolCall, subject: Subject, ran: Ran) -> None:
    """Let the rules decide about a result, then answer the call with what they let through."""
    turn.stage = "after-tool"
    links = turn.spec.chains.results
    result: Json = ran.result
    text: Json = msgspec.UNSET
    rule: str | None = None
    refused = False
    status: CallStatus = "failed" if ran.failed else "ran"
    if links:
        walked = await walk_result(links, subject, ran.args, ran.result, turn.writer, failed=ran.failed)
        if isinstance(walked, Refused):
            result, rule, text, refused = walked.reason, walked.rule, walked.reason, True
        elif walked.changed:
            result, rule, text = walked.result, walked.rule, plain.rendered(walked.result)
    # An agent that went on in another process may have lost a tool that ran before.
    tool = turn.spec.tools.get(call.name)
    known = 0 if tool is None else len(ran.args.keys() & tool.keys)
    turn.writer.note(
        CallAnswered(
            iteration=subject.iteration,
            call_id=call.id,
            tool_name=call.name,
            tool_type="function" if tool is None else tool.type,
            status=status,
            executed=True,
            args_changed=ran.changed,
            args_known_keys=known,
            args_unknown_keys=len(ran.args) - known,
            result_type=plain.json_type(result),
            result_bytes=plain.size(result),
            tool_source=subject.tool_source,
            decided_by_rule=rule,
            error_class=ran.error_class,
            duration_us=ran.duration_us,
            refused=refused,
            text=text,
        )
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
