"""A conversation as a ledger keeps it: its runs are folded again, and what was taken out of them is named."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from footprint_core import facts as fa
from footprint_core.errors import MessageLostError, NoConversationError, RunError
from footprint_core.ledger import Entry, Ledger
from footprint_core.messages import Message, Messages, harmless_id
from footprint_core.readback import absent, kind_of, said, whole
from footprint_core.state import RunState

E = TypeVar("E", bound=RunError)


class KeptConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that can go on.

    Attributes:
        ended: Its last run, folded.
        conversation_id: What the application calls it, or None.
    """

    ended: RunState
    conversation_id: str | None


class KeptTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that came to no end.

    Attributes:
        state: Its run, folded behind the conversation before it.
        before: That conversation.
    """

    state: RunState
    before: Messages


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
    runs = _runs_up_to(ledger, agent_id, run_id)
    fold = _Fold()
    for run in runs:
        fold.take(run)
    fold.refuse_lost()
    return KeptConversation(ended=fold.state, conversation_id=runs[-1].opening.conversation_id)


def kept_turn(
    ledger: Ledger, agent_id: str, run_id: str, opening: fa.RunConfigured, entries: tuple[Entry, ...]
) -> KeptTurn:
    """A turn that has no end, behind the conversation it goes on with.

    Args:
        ledger: Where its runs are kept.
        agent_id: The agent whose conversation it has to be.
        run_id: Its run.
        opening: How that was configured.
        entries: Its entries.

    Raises:
        NoConversationError: As `kept_conversation`, about a run before this one.
        MessageLostError: A message the model would be sent is not what it was.
        LedgerError: The ledger cannot be read.
    """
    fold = _Fold()
    for run in _runs_up_to(ledger, agent_id, opening.follows):
        fold.take(run)
    before = fold.state.messages
    fold.take(_KeptRun(run_id=run_id, opening=opening, entries=entries))
    fold.refuse_lost()
    return KeptTurn(state=fold.state, before=before)


def _runs_up_to(ledger: Ledger, agent_id: str, run_id: str | None) -> tuple[_KeptRun, ...]:
    """The runs of a conversation that ends with a run, the first one first."""
    runs: dict[str, _KeptRun] = {}
    at = run_id
    # A ledger that somebody wrote by hand could lead round in a circle.
    while at is not None and at not in runs:
        runs[at] = _answered(ledger.entries(at), agent_id, at)
        at = runs[at].opening.follows
    return tuple(reversed(runs.values()))


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


def about_run(error: type[E], run_id: str, why: str) -> E:
    """The error about a run; what a caller gives as an id could be anything, a message even."""
    known = harmless_id(run_id)
    made = error(f"The run {run_id if known else 'that was given'} {why}")
    made.run_id = run_id if known else None
    return made


def _refused(run_id: str, why: str) -> NoConversationError:
    return about_run(NoConversationError, run_id, why)


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
            self.state.apply(whole(entry.fact, entry.marks))
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
        gone = [name for name in said(fact) if name in marked] or absent(fact)
        lost = MessageLostError(run_id=run_id, kind=kind_of(fact), field=gone[0]) if gone else None
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
