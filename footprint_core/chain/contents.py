"""The chain of messages: walked first to last, at input and at output."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from footprint_core import plain
from footprint_core.chain.calls import Refused
from footprint_core.chain.judge import MESSAGE_ARMS, judge
from footprint_core.chain.links import Link
from footprint_core.commit import Writer
from footprint_core.facts import Decided
from footprint_core.messages import Messages
from footprint_core.middleware import MessageContext, Phase
from footprint_core.outcomes import UNCHANGED, Allow, Deny
from footprint_core.plain import Json


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Every rule allowed; `text` is what the chain made of the message.

    `changed_by` is the last rule that changed it, or None.
    """

    text: str
    changed_by: str | None = None


ContentWalked: TypeAlias = Said | Refused


async def walk_content(
    links: tuple[Link, ...],
    text: str,
    writer: Writer,
    *,
    phase: Phase,
    iteration: int,
    history: Messages,
    identity: Json,
) -> ContentWalked:
    """Ask the rules about a message; each answer is a row.

    A link that was named for the other phase only passes through, with a row and without a duration:
    no rule ran.
    """
    changed_by: str | None = None
    for link in links:
        if (hook := link.on_message) is None:
            continue
        row = Decided(
            middleware=link.name, version=link.version, moment=phase, iteration=iteration, outcome="allow"
        )
        if link.guarded == phase:
            writer.note(row)
            continue
        if writer.cancellation.asked:
            await writer.cancellation.heed()
        context = MessageContext(phase=phase, content=text, history=history, identity=identity)
        judged = await judge(link, hook, context, moment=phase, arms=MESSAGE_ARMS)
        row = msgspec.structs.replace(
            row, answer=judged.how, duration_us=judged.duration_us, error_class=judged.error_class
        )
        if isinstance(judged.answer, Deny):
            reason = plain.detach(judged.answer.reason)
            writer.note(msgspec.structs.replace(row, outcome="deny", why=reason))
            return Refused(reason=reason, rule=link.name)
        if isinstance(judged.answer, Allow):
            after = _allowed(row, judged.answer, text, writer)
            if after != text:
                text, changed_by = after, link.name
    return Said(text=text, changed_by=changed_by)


def _allowed(row: Decided, allowed: Allow[str], text: str, writer: Writer) -> str:
    if allowed.why:
        row = msgspec.structs.replace(row, why=plain.detach(allowed.why))
    if allowed.value is UNCHANGED:
        writer.note(row)
        return text
    after = str(plain.detach(allowed.value))
    if after != text:
        row = msgspec.structs.replace(row, changed=True, before=text, after=after)
    writer.note(row)
    return after
