"""The chain before a tool: walked first to last; the first answer that is no allow wins."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from footprint_core import plain
from footprint_core.chain.judge import CALL_ARMS, Judgement, judge
from footprint_core.chain.links import Link
from footprint_core.chain.subject import Subject, tool_row
from footprint_core.commit import Writer
from footprint_core.middleware import ToolCallContext
from footprint_core.outcomes import UNCHANGED, Allow, Ask, Deny, ToolArgs
from footprint_core.plain import Json


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """Every rule allowed; `args` is what the chain made of the arguments."""

    args: ToolArgs


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A rule denied; `reason` is what the model reads."""

    reason: str
    rule: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A rule asked; `index` is its place in the chain, `args` what the chain made of them so far."""

    rule: str
    index: int
    question: str
    detail: Json
    args: ToolArgs


Walked: TypeAlias = Passed | Refused | Asked


async def walk_call(
    links: tuple[Link, ...],
    subject: Subject,
    args: ToolArgs,
    writer: Writer,
    *,
    start: int = 0,
) -> Walked:
    """Ask the rules about a call, from the link at `start`; each answer is a row.

    A walk that starts behind a link continues after a person's approval: another question is then a
    refusal, since one call gets one question.
    """
    for index in range(start, len(links)):
        link = links[index]
        if (hook := link.on_tool_call) is None:
            continue
        context = ToolCallContext(
            tool_name=subject.tool_name,
            tool_source=subject.tool_source,
            tool_call_id=subject.call_id,
            iteration=subject.iteration,
            args=args,
            history=subject.history,
            identity=subject.identity,
        )
        judged = await judge(link.name, hook, context, moment="before-tool", arms=CALL_ARMS)
        match judged.answer:
            case Allow() as allowed:
                args = _allowed(link, subject, judged, allowed, args, writer, after_approval=start > 0)
            case Deny(reason=reason):
                return _refused(link, subject, judged, reason, writer)
            case Ask() as question:
                return _asked(link, index, subject, judged, question, args, writer, may_ask=start == 0)
    return Passed(args=args)


def _allowed(
    link: Link,
    subject: Subject,
    judged: Judgement,
    allowed: Allow[ToolArgs],
    args: ToolArgs,
    writer: Writer,
    *,
    after_approval: bool,
) -> ToolArgs:
    row = tool_row("before-tool", link, subject, judged)
    if allowed.value is UNCHANGED:
        writer.note(row if not allowed.why else msgspec.structs.replace(row, why=plain.detach(allowed.why)))
        return args
    after: ToolArgs = plain.detach(allowed.value)
    if plain.same(args, after):
        writer.note(msgspec.structs.replace(row, why=plain.detach(allowed.why)))
        return args
    changed = msgspec.structs.replace(
        row,
        changed=True,
        why=plain.detach(allowed.why),
        before=args,
        after=after,
        after_approval=after_approval,
    )
    writer.note(changed)
    return after


def _refused(link: Link, subject: Subject, judged: Judgement, reason: str, writer: Writer) -> Refused:
    reason = plain.detach(reason)
    writer.note(
        msgspec.structs.replace(tool_row("before-tool", link, subject, judged), outcome="deny", why=reason)
    )
    return Refused(reason=reason, rule=link.name)


def _asked(
    link: Link,
    index: int,
    subject: Subject,
    judged: Judgement,
    question: Ask,
    args: ToolArgs,
    writer: Writer,
    *,
    may_ask: bool,
) -> Asked | Refused:
    text = plain.detach(question.question)
    if not may_ask:
        reason = (
            f"The rule {link.name} asked a second question about a call a person had approved ({text}); "
            "one call gets one question, so it was not run."
        )
        return _refused(link, subject, judged, reason, writer)
    detail = plain.detach(question.detail)
    row = msgspec.structs.replace(tool_row("before-tool", link, subject, judged), outcome="ask", why=text)
    if question.detail is not None:
        row = msgspec.structs.replace(row, detail=detail)
    writer.note(row)
    return Asked(rule=link.name, index=index, question=text, detail=detail, args=args)
