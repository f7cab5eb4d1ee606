"""A fact as it is read back: which of its values become messages, which of those are gone, what stands in.

A redactor replaces a value by another of any type, and an erasure takes it away. The fold needs a text where
there was one, so that it has as many messages as the run had.
"""

from __future__ import annotations

from typing import assert_never, cast

import msgspec

from footprint_core import facts as fa
from footprint_core.ledger import REDACTED, Marks
from footprint_core.messages import ToolCall
from footprint_core.plain import Json


def said(fact: fa.Fact) -> tuple[str, ...]:
    """The values of a fact that become messages, or parts of one."""
    match fact:
        case fa.MessageTaken():
            return ("text",)
        case fa.ModelReplied():
            return ("text", "calls") if fact.route == "tool-calls" else ()
        case fa.ToolFinished():
            return ("result",)
        case fa.CallAnswered():
            return ("text",)
        case fa.WindowVisited():
            return ("notice", "summary") if fact.notice_after is not None else ()
        case fa.BudgetExhausted():
            return ("instruction",) if fact.action == "wrapped-up" else ()
        case fa.OutputJudged():
            return ("text", "correction") if fact.outcome == "retried" else ()
        case fa.SegmentEnded():
            return ("text",) if fact.outcome == "answered" else ()
        case (
            fa.RunConfigured()
            | fa.Decided()
            | fa.ModelAsked()
            | fa.ModelFailed()
            | fa.CallTaken()
            | fa.PermissionChecked()
            | fa.CheckInAsked()
            | fa.CheckInAnswered()
            | fa.CredentialRequested()
            | fa.CredentialAcquired()
            | fa.CredentialFailed()
            | fa.ToolIntended()
            | fa.ToolPaused()
            | fa.PauseOpened()
            | fa.PauseAnswered()
            | fa.PauseClosed()
            | fa.IterationEnded()
            | fa.RouteTaken()
            | fa.RunRecovered()
            | fa.RunAbandoned()
        ):
            return ()
        case _:
            assert_never(fact)


def absent(fact: fa.Fact) -> tuple[str, ...]:
    """Those of its `said` values that are not there in the form they were noted in."""
    return tuple(name for name in said(fact) if not _is_there(fact, name))


def whole(fact: fa.Fact, marks: Marks) -> fa.Fact:
    """The fact with something in the place of what is not there, so that it folds to as many messages.

    Args:
        fact: The fact as it was read.
        marks: What was taken out of it.
    """
    gone = absent(fact)
    if not gone or (isinstance(fact, fa.MessageTaken) and fact.text is msgspec.UNSET and not marks):
        # A message that was refused was never one of the conversation.
        return fact
    stand_in: dict[str, Json] = {name: () if name == "calls" else REDACTED for name in gone}
    if isinstance(fact, fa.WindowVisited):
        stand_in["summary"] = msgspec.UNSET
    return msgspec.structs.replace(fact, **stand_in)


def calls_of(reply: fa.ModelReplied) -> tuple[ToolCall, ...] | None:
    """The calls of a reply; None when they are not all there."""
    calls: Json = reply.calls
    if not isinstance(calls, tuple):
        return None
    calls = cast("tuple[ToolCall, ...]", calls)
    return calls if len(calls) == reply.call_count else None


def kind_of(fact: fa.Fact) -> str:
    """The kind of a fact, as a file calls it."""
    return str(type(fact).__struct_config__.tag)


def _is_there(fact: fa.Fact, name: str) -> bool:
    """Whether a value is there in the form it was noted in, or need not be."""
    value: Json = getattr(fact, name)
    if isinstance(fact, fa.ModelReplied) and name == "calls":
        return calls_of(fact) is not None
    if isinstance(fact, fa.ToolFinished):
        return value is not msgspec.UNSET
    if isinstance(fact, fa.CallAnswered) and value is msgspec.UNSET:
        # The model read the result.
        return True
    if isinstance(fact, fa.WindowVisited):
        # One of the two stands in the place of what left.
        return isinstance(fact.notice, str) or isinstance(fact.summary, str)
    return isinstance(value, str)
