"""A conversation as a ledger keeps it: its runs are folded again, and what was taken out of them is named."""

from __future__ import annotations

from typing import assert_never, cast

import msgspec

from footprint_core import facts as fa
from footprint_core.errors import MessageLostError, NoConversationError
from footprint_core.ledger import REDACTED, Entry, Ledger
from footprint_core.messages import Message, Messages, harmless_id
from footprint_core.plain import Json
from footprint_core.state import RunState


class KeptConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that can go on.

    Attributes:
        ended: Its last run, folded.
        conversation_id: What the application calls it, or None.
    """

    ended: RunState
    conversation_id: str | None


class _KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was answered, as it is kept."""

    run_id: str
    opening: fa.RunConfigured
    entries: tuple[Entry, ...]


def kept_conversation(ledger: Ledger, agent_id: str, run_id: str) -> KeptConversation:
    """The conversation that ended with a run.

    Args:
        ledger: Where its runs are kept.
        agent_id: The agent whose conversation it has to be.
        run_id: The run.

    Raises:
        NoConversationError: A run of it is not here, not answered, another agent's, or without its messages.
        MessageLostError: A message the model would be sent is not what it was.
        LedgerError: The ledger cannot be read.
    """
    runs: dict[str, _KeptRun] = {}
    at: str | None = run_id
    # A ledger that somebody wrote by hand could lead round in a circle.
    while at is not None and at not in runs:
        runs[at] = _answered(ledger.entries(at), agent_id, at)
        at = runs[at].opening.follows
    fold = _Fold()
    for run in reversed(runs.values()):
        fold.take(run)
    fold.refuse_lost()
    return KeptConversation(ended=fold.state, conversation_id=runs[run_id].opening.conversation_id)


def _answered(entries: tuple[Entry, ...], agent_id: str, run_id: str) -> _KeptRun:
    """The run, when a conversation can go on behind it."""
    if not entries:
        raise _refused(run_id, "is not in this ledger; go on with the ledger that has it.")
    opening = entries[0].fact
    if not isinstance(opening, fa.RunConfigured):
        raise _refused(
            run_id, "came here behind a pause, without its messages; go on with the ledger it began in."
        )
    if opening.agent_id != agent_id:
        raise _refused(
            run_id, f"belongs to the agent {opening.agent_id!r}, not to {agent_id!r}; go on with that one."
        )
    if (outcome := _outcome(entries)) != "answered":
        raise _refused(run_id, f"has no answer, it is {outcome}; go on behind a run that has one.")
    if not any(isinstance(entry.fact, fa.MessageTaken) for entry in entries):
        raise _refused(run_id, "took no message, it is a client's call; go on behind a run of run().")
    return _KeptRun(run_id=run_id, opening=opening, entries=entries)


def _outcome(entries: tuple[Entry, ...]) -> str:
    """How the last segment ended."""
    for entry in reversed(entries):
        if isinstance(entry.fact, fa.SegmentEnded):
            return entry.fact.outcome
        if isinstance(entry.fact, fa.RunConfigured):
            break
    return "still open"


def _refused(run_id: str, why: str) -> NoConversationError:
    # What the caller gave as an id could be anything, a message even.
    named = run_id if harmless_id(run_id) else "that was given"
    error = NoConversationError(f"The run {named} {why}")
    error.run_id = run_id if harmless_id(run_id) else None
    return error


class _Fold:
    """Folds run after run, and knows which messages are not what was said."""

    def __init__(self) -> None:
        self.state = RunState()
        self._lost: list[tuple[Message, MessageLostError]] = []
        self._results: dict[str, MessageLostError] = {}

    def take(self, run: _KeptRun) -> None:
        """Fold the next run of the conversation."""
        self.state = RunState.following(self.state)
        self._results = {}
        for entry in run.entries:
            lost = self._loss(run.run_id, entry)
            before = self.state.messages
            self.state.apply(_whole(entry.fact))
            if lost is not None:
                self._lost += [(message, lost) for message in _added(before, self.state.messages, entry.fact)]

    def refuse_lost(self) -> None:
        """Refuse a message that would be sent and is not what it was; one that left the window is no matter.

        Raises:
            MessageLostError: There is one.
        """
        sent = {id(message) for message in self.state.messages}
        for message, lost in self._lost:
            if id(message) in sent:
                raise lost

    def _loss(self, run_id: str, entry: Entry) -> MessageLostError | None:
        fact = entry.fact
        marked = {path.partition(".")[0] for path, _ in entry.marks}
        said = _said(fact)
        gone = [name for name in said if name in marked] or _absent(fact, said)
        lost = MessageLostError(run_id=run_id, kind=_kind(fact), field=gone[0]) if gone else None
        if isinstance(fact, fa.ToolFinished) and lost is not None:
            self._results[fact.call_id] = lost
        elif isinstance(fact, fa.CallAnswered):
            of_result = self._results.pop(fact.call_id, None)
            # A text of its own stands in the place of the result, whatever became of that.
            return of_result if lost is None and fact.text is msgspec.UNSET else lost
        return lost


def _added(before: Messages, after: Messages, fact: fa.Fact) -> tuple[Message, ...]:
    """The messages a fact added."""
    if not isinstance(fact, fa.WindowVisited):
        return after[len(before) :]
    known = {id(message) for message in before}
    return tuple(message for message in after if id(message) not in known)


def _said(fact: fa.Fact) -> tuple[str, ...]:
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
        ):
            return ()
        case _:
            assert_never(fact)


def _absent(fact: fa.Fact, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if not _is_there(fact, name)]


def _is_there(fact: fa.Fact, name: str) -> bool:
    """Whether a value is there in the form it was noted in, or need not be."""
    value: Json = getattr(fact, name)
    if isinstance(fact, fa.ModelReplied) and name == "calls":
        return isinstance(value, tuple) and len(cast("tuple[object, ...]", value)) == fact.call_count
    if isinstance(fact, fa.ToolFinished):
        return value is not msgspec.UNSET
    if isinstance(fact, fa.CallAnswered) and value is msgspec.UNSET:
        # The model read the result.
        return True
    if isinstance(fact, fa.WindowVisited):
        # One of the two stands in the place of what left.
        return isinstance(fact.notice, str) or isinstance(fact.summary, str)
    return isinstance(value, str)


def _whole(fact: fa.Fact) -> fa.Fact:
    """The fact with something in the place of what is not there, so that it folds to as many messages."""
    absent = _absent(fact, _said(fact))
    if not absent:
        return fact
    stand_in: dict[str, Json] = {name: () if name == "calls" else REDACTED for name in absent}
    if isinstance(fact, fa.WindowVisited):
        stand_in["summary"] = msgspec.UNSET
    return msgspec.structs.replace(fact, **stand_in)


def _kind(fact: fa.Fact) -> str:
    return str(type(fact).__struct_config__.tag)
