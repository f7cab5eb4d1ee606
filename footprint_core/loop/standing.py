"""Where a run stands, worked out from its entries alone: any that a process can have left behind it.

What only a person, a tool or the model could say again is taken from the entries. Where a rule had decided
and nothing had acted on it yet, the rule is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, assert_never, cast

import msgspec

from footprint_core import facts as fa
from footprint_core.ledger import Entry
from footprint_core.loop.standing_call import AboutCall, Call, Finished, InDoubt, PersonDecided
from footprint_core.messages import ToolCall
from footprint_core.plain import Json

Step: TypeAlias = Literal["message", "window", "model", "reply", "calls", "close"]
"""What comes next: a message was not taken yet; the window is visited; the model is asked, by the request
that was about to go out; its reply is decided about; its calls are answered; its iteration ends."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands.

    Attributes:
        opening: How its first segment was configured.
        configured: How its last one was.
        identity_lost: Whether the caller's identity is not what it was.
        began_us: When the last segment began, microseconds since the Unix epoch, UTC.
        last_us: When its last entry was noted.
        ended: How the last segment ended, or None.
        given_up: Whether a person abandoned the run.
        served: Whether it is a call of a client.
        question: The pause that waits for an answer, or None.
        expired: Whether the last pause takes no answer any more, though nobody answered it.
        step: What comes next.
        asking: The iteration whose request was about to go out, or None.
        reply: The last reply, or None when the model was asked since.
        reply_lost: Whether its text is not what it was.
        early: Why the turn will have ended before the model was done, or None.
        taken: The calls of the reply that were taken up, by index, each with its source.
        answered: How many of them are answered.
        calls: What is known of those that came to something and are not answered, by index.
        finished: How many calls of the run had ended.
    """

    opening: fa.RunConfigured
    configured: fa.RunConfigured
    identity_lost: bool
    began_us: int
    last_us: int
    ended: fa.RunOutcome | None
    given_up: bool
    served: bool
    question: fa.PauseOpened | None
    expired: bool
    step: Step
    asking: int | None
    reply: fa.ModelReplied | None
    reply_lost: bool
    early: fa.EarlyStop | None
    taken: dict[int, str | None]
    answered: int
    calls: dict[int, Finished | InDoubt | PersonDecided]
    finished: int

    @property
    def in_doubt(self) -> int:
        """How many calls may have run."""
        return sum(isinstance(call, InDoubt) for call in self.calls.values())


def standing(opening: fa.RunConfigured, entries: Iterable[Entry]) -> Standing:
    """Where a run stands behind its entries, of which the first is `opening`."""
    read = _Read(opening)
    for entry in entries:
        read.take(entry)
    return read.standing()


class _Read:
    """What was read of a run so far."""

    def __init__(self, opening: fa.RunConfigured) -> None:
        self._opening = self._configured = opening
        self._identity_lost = False
        self._began_us = self._last_us = 0
        self._ended: fa.RunOutcome | None = None
        self._given_up = False
        self._taken_message = self._called = False
        self._question: fa.PauseOpened | None = None
        self._expired = False
        self._asking: int | None = None
        self._reply: fa.ModelReplied | None = None
        self._reply_lost = False
        self._early: fa.EarlyStop | None = None
        # Of the iteration: whether the loop goes on behind it, and whether its end is on record.
        self._goes_on = self._over = False
        self._calls: dict[str, Call] = {}
        self._finished = 0

    def take(self, entry: Entry) -> None:
        """Read the next entry."""
        fact, lost = entry.fact, {path.partition(".")[0] for path, _ in entry.marks}
        self._last_us = entry.time
        match fact:
            case fa.RunConfigured():
                self._segment(fact, entry.time, lost)
            case fa.SegmentEnded():
                self._ended = fact.outcome
            case fa.RunAbandoned():
                self._given_up = True
            case fa.MessageTaken():
                self._taken_message = fact.text is not msgspec.UNSET or bool(lost)
            case fa.WindowVisited() | fa.ModelAsked() | fa.ModelFailed():
                self._ask(fact.iteration)
            case fa.ModelReplied():
                self._answer(fact, lost)
            case fa.BudgetExhausted():
                self._stop_early(fact)
            case fa.OutputJudged():
                self._goes_on = fact.outcome == "retried"
            case fa.IterationEnded():
                self._over = True
            case fa.PauseOpened() | fa.PauseAnswered() | fa.PauseClosed():
                self._pause(fact)
            case (
                fa.CallTaken()
                | fa.Decided()
                | fa.PermissionChecked()
                | fa.CheckInAsked()
                | fa.CheckInAnswered()
                | fa.CredentialRequested()
                | fa.CredentialAcquired()
                | fa.CredentialFailed()
                | fa.ToolIntended()
                | fa.ToolPaused()
                | fa.ToolFinished()
                | fa.CallAnswered()
            ):
                self._about_call(entry.position, fact, lost)
            case fa.RouteTaken() | fa.RunRecovered():
                pass
            case _:
                assert_never(fact)

    def standing(self) -> Standing:
        """What was read."""
        order = [] if self._step() != "calls" or self._reply is None else list(self._calls.values())
        known = {index: call.known for index, call in enumerate(order) if not call.answered}
        return Standing(
            opening=self._opening,
            configured=self._configured,
            identity_lost=self._identity_lost,
            began_us=self._began_us,
            last_us=self._last_us,
            ended=self._ended,
            given_up=self._given_up,
            served=self._called and not self._taken_message,
            question=self._question,
            expired=self._expired,
            step=self._step(),
            asking=self._asking,
            reply=self._reply,
            reply_lost=self._reply_lost,
            early=self._early,
            taken={index: call.source for index, call in enumerate(order) if call.taken},
            answered=sum(call.answered for call in order),
            calls={index: one for index, one in known.items() if one is not None},
            finished=self._finished,
        )

    def _step(self) -> Step:
        reply = self._reply
        if not self._taken_message:
            return "message"
        if self._asking is not None:
            return "model"
        if reply is None or (self._goes_on and self._over):
            return "window"
        if reply.route == "tool-calls":
            return "calls"
        return "close" if self._goes_on else "reply"

    def _segment(self, fact: fa.RunConfigured, time: int, lost: set[str]) -> None:
        if fact is self._opening:
            self._identity_lost = "identity" in lost
        self._configured, self._began_us, self._ended = fact, time, None
        for call in self._calls.values():
            call.begin_again()

    def _ask(self, iteration: int) -> None:
        self._asking, self._reply, self._calls = iteration, None, {}

    def _answer(self, fact: fa.ModelReplied, lost: set[str]) -> None:
        self._asking, self._reply, self._over = None, fact, False
        self._reply_lost = "text" in lost or not isinstance(fact.text, str)
        self._goes_on = fact.route == "tool-calls"
        calls: Json = fact.calls
        if self._goes_on and isinstance(calls, tuple):
            self._calls = {call.id: Call(call) for call in cast("tuple[ToolCall, ...]", calls)}

    def _stop_early(self, fact: fa.BudgetExhausted) -> None:
        self._goes_on = fact.action == "wrapped-up"
        self._early = fa.EarlyStop(
            reason="max-iterations",
            iteration=fact.iteration,
            pending_tool_calls=fact.pending_tool_calls,
            wrapped_up=self._goes_on,
        )

    def _pause(self, fact: fa.PauseOpened | fa.PauseAnswered | fa.PauseClosed) -> None:
        self._question = fact if isinstance(fact, fa.PauseOpened) else None
        self._expired = isinstance(fact, fa.PauseClosed)
        call = self._calls.get(fact.call_id)
        if call is not None:
            call.pause(fact)

    def _about_call(self, position: int, fact: AboutCall, lost: set[str]) -> None:
        self._called = self._called or isinstance(fact, fa.CallTaken)
        if isinstance(fact, fa.ToolFinished) and not fact.cancelled:
            self._finished += 1
        # A row about a message is about no call.
        call = None if fact.call_id is None else self._calls.get(fact.call_id)
        if call is not None:
            call.take(position, fact, lost)
