"""The chain before a tool: walked first to last; the first answer that is no allow wins."""

from __future__ import annotations

from typing import Literal, TypeAlias

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
    """Every rule allowed.

    Attributes:
        args: What the chain made of the arguments.
        approved: Whether a rule asked again what a person had approved.
    """

    args: ToolArgs
    approved: bool = False


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A rule denied.

    Attributes:
        reason: What the model reads, or the caller.
        rule: The rule.
        args: What the chain had made of the arguments, of a call.
    """

    reason: str
    rule: str
    args: ToolArgs | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A rule asked.

    Attributes:
        rule: The rule.
        index: Its place in the chain.
        question: What it asks.
        detail: What it gave with the question.
        args: What the chain made of the arguments so far.
        expires_in: Seconds within which it wants an answer, or None.
    """

    rule: str
    index: int
    question: str
    detail: Json
    args: ToolArgs
    expires_in: float | None = None


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a rule can ask a person now, and what one approved before.

    Attributes:
        may: A question pauses the run; or was answered about this call already, so that another is a
            refusal; or would reach nobody, since the call is served to a client.
        approved: The args a person approved, when the whole chain is walked again.
        approved_by: The rule whose question that answered.
    """

    may: Literal["pause", "answered", "served"]
    approved: ToolArgs | None = None
    approved_by: str | None = None

    def covers(self, rule: str, args: ToolArgs) -> bool:
        """Whether a question of a rule about these args is the one that was approved."""
        return self.approved is not None and self.approved_by == rule and plain.same(self.approved, args)


MAY_PAUSE = Asking(may="pause")
"""A question pauses the run, and nothing was approved before."""

_ANSWERED = Asking(may="answered")


Walked: TypeAlias = Passed | Refused | Asked


async def walk_call(
    links: tuple[Link, ...],
    subject: Subject,
    args: ToolArgs,
    writer: Writer,
    *,
    start: int = 0,
    asking: Asking = MAY_PAUSE,
) -> Walked:
    """Ask the rules about a call, from the link at `start`; each answer is a row.

    One call gets one question: behind a person's approval another one is a refusal.
    """
    approved = asking.may == "answered"
    for index in range(start, len(links)):
        link = links[index]
        if (hook := link.on_tool_call) is None:
            continue
        if writer.cancellation.asked:
            await writer.cancellation.heed()
        context = ToolCallContext(
            tool_name=subject.tool_name,
            tool_source=subject.tool_source,
            tool_call_id=subject.call_id,
            iteration=subject.iteration,
            args=args,
            history=subject.history,
            identity=subject.identity,
        )
        judged = await judge(link, hook, context, moment="before-tool", arms=CALL_ARMS)
        match judged.answer:
            case Allow() as allowed:
                args = _allowed(link, subject, judged, allowed, args, writer, after_approval=approved)
            case Deny(reason=reason):
                return _refused(link, subject, judged, reason, args, writer)
            case Ask() as question:
                asked = _asked(link, index, subject, judged, question, args, writer, asking=asking)
                if not isinstance(asked, Asked) or not asking.covers(link.name, args):
                    return asked
                approved, asking = True, _ANSWERED
    return Passed(args=args, approved=approved)


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


def _refused(
    link: Link, subject: Subject, judged: Judgement, reason: str, args: ToolArgs, writer: Writer
) -> Refused:
    reason = plain.detach(reason)
    writer.note(
        msgspec.structs.replace(tool_row("before-tool", link, subject, judged), outcome="deny", why=reason)
    )
    return Refused(reason=reason, rule=link.name, args=args)


def _asked(
    link: Link,
    index: int,
    subject: Subject,
    judged: Judgement,
    question: Ask,
    args: ToolArgs,
    writer: Writer,
    *,
    asking: Asking,
) -> Asked | Refused:
    text = plain.detach(question.question)
    if asking.may != "pause":
        return _refused(link, subject, judged, _cannot_ask(link.name, text, asking), args, writer)
    detail = plain.detach(question.detail)
    row = msgspec.structs.replace(tool_row("before-tool", link, subject, judged), outcome="ask", why=text)
    if question.detail is not None:
        row = msgspec.structs.replace(row, detail=detail)
    writer.note(row)
    return Asked(
        rule=link.name,
        index=index,
        question=text,
        detail=detail,
        args=args,
        expires_in=question.expires_in,
    )


def _cannot_ask(rule: str, question: str, asking: Asking) -> str:
    if asking.may == "served":
        return (
            f"The rule {rule} asks a person first ({question}), and a served call can ask nobody, so it was "
            "not run."
        )
    return (
        f"The rule {rule} asked a second question about a call a person had approved ({question}); one call "
        "gets one question, so it was not run."
    )
