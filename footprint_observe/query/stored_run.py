"""The stored fold: a run as its file tells it, one fact after another.

Beside the core's own state it keeps what only the order of the facts says: how a segment ended, which calls
of a reply are taken up, run and answered, and which question is open.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from footprint_core import facts as fa
from footprint_core.ledger import ERASED, REDACTED, Entry
from footprint_core.messages import Message, Messages, UserMessage
from footprint_core.readback import absent, calls_of, said, whole
from footprint_core.state import RunState

Unknown: TypeAlias = Literal["messages", "roles", "chars", "turn", "tokens", "attempts", "calls"]
"""What a file may not tell: where a run, or the conversation before it, began in another ledger, or where
values are gone."""


class Batch:
    """The calls of one reply, by their ids.

    Attributes:
        ids: In the order the model asked for them; None when their names are gone with the reply.
        count: How many they are.
        names: Their tools; None where a name could have been redacted.
        repeats: Those that came under the id of another one.
        taken: Those that are taken up.
        intended: Those that were about to run.
        failed: Those that ran, and whether the tool raised.
        declined: Those that a person refused.
        denied: Those that a rule or a permission refused.
        in_doubt: Those that may have run when a process died.
        answered: Those that are answered.
        out_of_turn: Whether a cancellation answered one before its turn.
    """

    __slots__ = (
        "answered",
        "count",
        "declined",
        "denied",
        "failed",
        "ids",
        "in_doubt",
        "intended",
        "names",
        "out_of_turn",
        "repeats",
        "taken",
    )

    def __init__(self, reply: fa.ModelReplied | None = None, *, readable: bool = True) -> None:
        dispatched = None if reply is None or reply.route != "tool-calls" else reply
        self.count = 0 if dispatched is None else dispatched.call_count
        calls = () if dispatched is None else calls_of(dispatched)
        self.ids = None if calls is None else tuple(call.id for call in calls)
        self.names = None if calls is None or not readable else tuple(call.name for call in calls)
        self.repeats = frozenset(call.id for call in calls or () if call.repeats is not None)
        self.taken: set[str] = set()
        self.intended: set[str] = set()
        self.failed: dict[str, bool] = {}
        self.denied: set[str] = set()
        self.declined: set[str] = set()
        self.in_doubt: set[str] = set()
        self.answered: set[str] = set()
        self.out_of_turn = False

    @property
    def next(self) -> str | None:
        """The call whose answer comes next; None when none is open, or nobody can say."""
        ids = self.ids or ()
        return ids[len(self.answered)] if len(self.answered) < len(ids) else None

    @property
    def open(self) -> int:
        """How many calls are not answered."""
        return self.count - len(self.answered)

    @property
    def doubtful(self) -> int:
        """How many calls may have run and are not answered."""
        return len(self.intended - self.failed.keys() - self.answered)

    def begin_again(self) -> None:
        """A process died: rules and permission are asked again, and what may have run is in doubt."""
        self.denied = set()
        self.in_doubt = self.intended - self.failed.keys() - self.answered

    def take(self, fact: fa.Fact, *, served: bool) -> None:
        """Take what a fact says about one of the calls; `served` is a client's, which no model asked for."""
        match fact:
            case fa.CallTaken():
                if served and self.ids is not None:
                    self.ids, self.count, self.names = (*self.ids, fact.call_id), self.count + 1, None
                self.taken.add(fact.call_id)
            case fa.ToolIntended():
                self.intended.add(fact.call_id)
            case fa.ToolFinished():
                if not fact.cancelled:
                    self.failed[fact.call_id] = fact.failed
            case fa.Decided():
                if fact.call_id is not None and _refuses(fact):
                    (self.declined if fact.answer == "person" else self.denied).add(fact.call_id)
            case fa.PermissionChecked():
                if fact.result in {"deny", "halt"}:
                    self.denied.add(fact.call_id)
            case fa.CheckInAnswered():
                if not fact.approved:
                    self.declined.add(fact.call_id)
            case fa.CallAnswered():
                self.answered.add(fact.call_id)
                self.out_of_turn = self.out_of_turn or fact.status == "cancelled"
            case _:
                pass


class StoredRun:
    """A run, as far as it was read.

    Args:
        before: The run of the conversation before it, read to its end; None when there is none.

    Attributes:
        state: What the core's fold makes of it.
        position: The position of its last fact, 0 before the first.
        segment: The segment of that.
        first: The configuration it began with; None when it began in another ledger.
        opening: The configuration of its last segment.
        turn_index: The place of its turn in the conversation.
        outcome: How its last segment ended; None while it has not.
        messaged: Whether it took its message.
        asking: Whether the model was asked and has not replied.
        reply_calls: Calls in the last reply, also those that were not dispatched.
        batch: The calls of the last reply.
        pause: The question that is open.
        pauses: The ids of all questions so far.
        finished: Calls whose tool had ended.
        asking_again: Whether a request that a crash left without a reply goes out again.
        given_up: Whether a person abandoned it.
        pausing: Whether its last fact opened a question.
        early: What ended the budget of the segment.
        unknown: What the file does not tell.
        redacted: How many values were redacted.
        erased: How many values were erased.
    """

    def __init__(self, before: StoredRun | None = None) -> None:
        self.state: RunState = RunState() if before is None else RunState.following(before.state)
        self.position = 0
        self.segment = 0
        self.first: fa.RunConfigured | None = None
        self.opening: fa.RunConfigured | None = None
        self.turn_index: int = 0 if before is None else before.turn_index + 1
        self.outcome: str | None = None
        self.messaged = False
        self.asking = False
        self.reply_calls = 0
        self.batch = Batch()
        self.pause: fa.PauseOpened | None = None
        self.pauses: set[str] = set()
        self.finished = 0
        self.asking_again = False
        self.given_up = False
        self.pausing = False
        self.early: fa.BudgetExhausted | None = None
        self._spent: fa.BudgetExhausted | None = None
        self.unknown: set[Unknown] = set()
        self.redacted = 0
        self.erased = 0
        if before is not None:
            self.unknown |= before.unknown & {"messages", "roles", "chars", "turn"}

    def begins_elsewhere(self) -> None:
        """The conversation before this run is in another ledger."""
        self.unknown |= {"messages", "roles", "chars", "turn"}

    def take(self, segment: int, entry: Entry) -> tuple[Message, ...]:
        """Fold the next fact in; the messages that came with it."""
        fact = entry.fact
        if self.position == 0 and not isinstance(fact, fa.RunConfigured):
            # It came here behind a pause, and only its decisions came along.
            self.unknown |= {"messages", "roles", "chars", "turn", "tokens", "attempts", "calls"}
        self._count(entry)
        self.position, self.segment = entry.position, segment
        self.pausing = isinstance(fact, fa.PauseOpened) and not fact.imported
        self._order(fact, entry)
        return self._apply(fact, entry)

    def _count(self, entry: Entry) -> None:
        erased = sum(method == ERASED for _, method in entry.marks)
        self.erased += erased
        self.redacted += len(entry.marks) - erased
        changed = {path.partition(".")[0] for path, _ in entry.marks}
        if changed.intersection(said(entry.fact)) or absent(entry.fact):
            self.unknown.add("chars")

    def _apply(self, fact: fa.Fact, entry: Entry) -> tuple[Message, ...]:
        state = self.state
        before = state.messages
        if isinstance(fact, fa.WindowVisited):
            if "messages" in self.unknown:
                # Its indices mean messages that are not here; the next request says how many were left.
                fact = msgspec.structs.replace(fact, removed=())
            known = set(map(id, before))
            state.apply(whole(fact, entry.marks))
            return tuple(one for one in state.messages if id(one) not in known)
        state.apply(whole(fact, entry.marks))
        return state.messages[len(before) :]

    def _order(self, fact: fa.Fact, entry: Entry) -> None:
        """What the order of the facts says; nothing in it is a value."""
        self.batch.take(fact, served=self.state.iteration == 0)
        match fact:
            case fa.RunConfigured():
                self._begins(fact)
            case fa.MessageTaken():
                self.messaged = True
            case fa.ModelAsked():
                self._adopt(fact)
                self.asking, self.asking_again = True, False
            case fa.ModelReplied():
                self.asking = False
                self.reply_calls = fact.call_count
                named = any(path.startswith("calls.") for path, _ in entry.marks)
                self.batch = Batch(fact, readable=not named)
                self.unknown.discard("calls")
            case fa.ModelFailed():
                self.asking = False
            case fa.PauseOpened():
                self._asks(fact)
            case fa.PauseAnswered() | fa.PauseClosed():
                self.pause = None
            case fa.BudgetExhausted():
                self.early = self._spent = fact
            case fa.ToolFinished():
                self.finished += not fact.cancelled
            case fa.SegmentEnded():
                self._ends(fact)
            case fa.RunRecovered():
                self.asking_again = self.asking
                self.early = self._spent
                self.batch.begin_again()
            case fa.RunAbandoned():
                self.given_up = True
                self.pause = None
            case _:
                pass

    def _begins(self, fact: fa.RunConfigured) -> None:
        if self.position == 1:
            self.first = fact
        if "turn" in self.unknown:
            self.turn_index = fact.turn_index
            self.unknown.discard("turn")
        self.opening = fact
        self.outcome = None
        self.early = None

    def _asks(self, fact: fa.PauseOpened) -> None:
        self.pause = fact
        self.pauses.add(fact.pause_id)
        if fact.imported:
            self.state.iteration = fact.iteration
            self.state.asked = True
            self.outcome = "paused"

    def _ends(self, fact: fa.SegmentEnded) -> None:
        self.outcome = fact.outcome
        if "tokens" in self.unknown:
            self.state.input_tokens, self.state.output_tokens = fact.input_tokens, fact.output_tokens
            self.unknown.discard("tokens")

    def _adopt(self, fact: fa.ModelAsked) -> None:
        """A conversation that is not here is as long as the first request says."""
        if "messages" not in self.unknown:
            return
        missing = fact.messages - len(self.state.messages)
        stand_ins = [UserMessage(text=REDACTED)] * max(0, missing)
        self.state.messages = Messages([*stand_ins, *self.state.messages])
        self.unknown.discard("messages")


def _refuses(fact: fa.Decided) -> bool:
    return fact.moment == "before-tool" and fact.outcome == "deny" and not fact.shadow
