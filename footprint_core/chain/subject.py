"""The call a chain decides about, and the row every decision about it begins with."""

from __future__ import annotations

import msgspec

from footprint_core.chain.judge import Judgement
from footprint_core.chain.links import Link
from footprint_core.facts import Decided
from footprint_core.messages import Messages
from footprint_core.moments import LoopMoment
from footprint_core.plain import Json


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The call a chain decides about.

    Attributes:
        tool_name: The tool.
        tool_source: The server it comes from, or None.
        call_id: The call.
        iteration: The model call that asked for it.
        history: The conversation at this point.
        identity: The caller's identity.
    """

    tool_name: str
    tool_source: str | None
    call_id: str
    iteration: int
    history: Messages
    identity: Json


def tool_row(moment: LoopMoment, link: Link, subject: Subject, judged: Judgement) -> Decided:
    """The row of an allow that changed nothing; the others are made from it."""
    return Decided(
        middleware=link.name,
        version=link.version,
        moment=moment,
        iteration=subject.iteration,
        outcome="allow",
        answer=judged.how,
        tool_name=subject.tool_name,
        tool_source=subject.tool_source,
        call_id=subject.call_id,
        duration_us=judged.duration_us,
        error_class=judged.error_class,
    )
