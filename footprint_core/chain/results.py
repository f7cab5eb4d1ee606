"""The chain after a tool: walked last to first over what the tool gave; there is no question any more."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from footprint_core import plain
from footprint_core.chain.calls import Refused
from footprint_core.chain.judge import RESULT_ARMS, judge
from footprint_core.chain.links import Link
from footprint_core.chain.subject import Subject, tool_row
from footprint_core.commit import Writer
from footprint_core.facts import Decided
from footprint_core.middleware import ToolResultContext
from footprint_core.outcomes import UNCHANGED, Allow, Deny, ToolArgs
from footprint_core.plain import Json


class Released(msgspec.Struct, frozen=True, kw_only=True):
    """Every rule allowed; `result` is what the chain made of it."""

    result: Json
    changed: bool
    rule: str | None


ResultWalked: TypeAlias = Released | Refused


async def walk_result(
    links: tuple[Link, ...],
    subject: Subject,
    args: ToolArgs,
    result: Json,
    writer: Writer,
    *,
    failed: bool,
) -> ResultWalked:
    """Ask the rules about a result; each answer is a row. A refused result survives in its row."""
    changed_by: str | None = None
    for link in links:
        if (hook := link.on_tool_result) is None:
            continue
        if writer.cancellation.asked:
            await writer.cancellation.heed()
        context = ToolResultContext(
            tool_name=subject.tool_name,
            tool_source=subject.tool_source,
            tool_call_id=subject.call_id,
            iteration=subject.iteration,
            args=args,
            history=subject.history,
            identity=subject.identity,
            result=result,
            failed=failed,
        )
        judged = await judge(link, hook, context, moment="after-tool", arms=RESULT_ARMS)
        row = tool_row("after-tool", link, subject, judged)
        if isinstance(judged.answer, Deny):
            reason = plain.detach(judged.answer.reason)
            writer.note(
                msgspec.structs.replace(
                    row, outcome="deny", changed=True, why=reason, before=result, after=reason
                )
            )
            return Refused(reason=reason, rule=link.name)
        if isinstance(judged.answer, Allow):
            after, changed = _allowed(row, judged.answer, result, writer)
            if changed:
                result, changed_by = after, link.name
    return Released(result=result, changed=changed_by is not None, rule=changed_by)


def _allowed(row: Decided, allowed: Allow[object], result: Json, writer: Writer) -> tuple[Json, bool]:
    if allowed.value is UNCHANGED:
        writer.note(row if not allowed.why else msgspec.structs.replace(row, why=plain.detach(allowed.why)))
        return result, False
    after, held = plain.examine(allowed.value)
    why = plain.detach(allowed.why)
    if held and plain.same(result, after):
        writer.note(msgspec.structs.replace(row, why=why))
        return result, False
    writer.note(msgspec.structs.replace(row, changed=True, why=why, before=result, after=after))
    return after, True
