"""How far one call came, worked out from the entries about it."""

from __future__ import annotations

from typing import TypeAlias, assert_never

import msgspec

from footprint_core import facts as fa
from footprint_core.loop.dispatch import decoded
from footprint_core.messages import ToolCall
from footprint_core.plain import Json
from footprint_core.readback import kind_of

AboutCall: TypeAlias = (
    fa.CallTaken
    | fa.Decided
    | fa.PermissionChecked
    | fa.CheckInAsked
    | fa.CheckInAnswered
    | fa.CredentialRequested
    | fa.CredentialAcquired
    | fa.CredentialFailed
    | fa.ToolIntended
    | fa.ToolPaused
    | fa.ToolFinished
    | fa.CallAnswered
)
"""What is told of a call, beside its pauses."""


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """A value that redaction or erasure took.

    Attributes:
        kind: The kind of the entry that held it.
        field: Its field.
    """

    kind: str
    field: str


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that ended and was not answered.

    Attributes:
        args: What it ran with.
        args_lost: The args, when they are not what they were.
        end: How it ended.
        result_lost: Its result, when it is not what it was.
        changed: Whether the args were no longer what the model sent.
    """

    args: Json
    args_lost: Lost | None
    end: fa.ToolFinished
    result_lost: Lost | None
    changed: bool


class InDoubt(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that may have run.

    Attributes:
        position: The position of its first intent, which is its idempotency key.
        args: What it was about to run with.
        args_lost: The args, when they are not what they were.
        changed: Whether the args were no longer what the model sent.
        approved: Whether a person was asked about the call.
    """

    position: int
    args: Json
    args_lost: Lost | None
    changed: bool
    approved: bool


class PersonDecided(msgspec.Struct, frozen=True, kw_only=True):
    """A call a person decided about, and on which nothing acted since.

    Attributes:
        pause: The question.
        args: The args the chain had made when they were asked.
        changed: Whether those were no longer what the model sent.
        approved: What they decided.
        note: What they said to a decline, or None.
        rewalk: Whether everything was asked again behind it.
        lost: A value that is needed and is not what it was.
    """

    pause: fa.PauseOpened
    args: Json
    changed: bool
    approved: bool
    note: str | None
    rewalk: bool
    lost: Lost | None


class _Args(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules made of the arguments so far, where they changed them; and what of it is lost."""

    changed: bool = False
    args: Json = msgspec.UNSET
    lost: Lost | None = None


_AS_SENT = _Args()


class Call:
    """One call of a reply.

    Attributes:
        taken: Whether it was taken up.
        source: The server its tool came from then, or None.
        answered: Whether the model can read what came of it.
    """

    def __init__(self, call: ToolCall) -> None:
        self.taken = False
        self.source: str | None = None
        self.answered = False
        self._call = call
        # As far as the rules came; when one of them asked; and when that question was put to a person.
        self._args = self._asked = self._shown = _AS_SENT
        self._pause: fa.PauseOpened | None = None
        self._answer: fa.PauseAnswered | None = None
        self._note: str | None = None
        self._note_lost: Lost | None = None
        self._intent: InDoubt | None = None
        self._end: Finished | None = None

    @property
    def known(self) -> Finished | InDoubt | PersonDecided | None:
        """What cannot be asked for again; None for a call whose gates are walked from the top."""
        if self._end is not None or self._intent is not None:
            return self._end or self._intent
        pause, answer = self._pause, self._answer
        if pause is None or answer is None or answer.answer == "value":
            return None
        approved = answer.answer == "approved"
        shown = self._shown
        return PersonDecided(
            pause=pause,
            args=shown.args if shown.changed else decoded(self._call),
            changed=shown.changed,
            approved=approved,
            note=self._note,
            rewalk=answer.rewalk,
            lost=shown.lost if approved else self._note_lost,
        )

    def begin_again(self) -> None:
        """A segment begins; what was decided about a call in the one before it is asked again, or goes on."""
        self._args = _AS_SENT if self._answer is None or self._answer.rewalk else self._shown

    def pause(self, fact: fa.PauseOpened | fa.PauseAnswered | fa.PauseClosed) -> None:
        """A person is asked about it, or answered."""
        match fact:
            case fa.PauseOpened():
                self._pause, self._answer, self._shown = fact, None, self._asked
            case fa.PauseAnswered():
                self._answer = fact
                self.begin_again()
            case fa.PauseClosed():
                pass
            case _:
                assert_never(fact)

    def take(self, position: int, fact: AboutCall, lost: set[str]) -> None:
        """Read the next entry about it."""
        match fact:
            case fa.CallTaken():
                self.taken, self.source = True, fact.tool_source
            case fa.Decided():
                self._decided(fact, lost)
            case fa.CheckInAsked():
                self._asked = self._args
            case fa.CheckInAnswered():
                self._person(fact, fact.note, lost & {"note"})
            case fa.ToolIntended():
                self._intent = InDoubt(
                    position=position,
                    args=fact.args,
                    args_lost=_lost(fact, lost, "args"),
                    changed=self._args.changed,
                    approved=self._answer is not None,
                )
            case fa.ToolFinished():
                self._finished(fact, lost)
            case fa.CallAnswered():
                self.answered = True
            case (
                fa.PermissionChecked()
                | fa.CredentialRequested()
                | fa.CredentialAcquired()
                | fa.CredentialFailed()
                | fa.ToolPaused()
            ):
                # Permission and credentials are asked for again; a tool that paused stays in doubt.
                pass
            case _:
                assert_never(fact)

    def _decided(self, fact: fa.Decided, lost: set[str]) -> None:
        if fact.moment != "before-tool":
            return
        if fact.answer == "person":
            self._person(fact, _note(fact), lost & {"why", "decided_by"})
        elif fact.changed and not fact.shadow:
            self._args = _Args(args=fact.after, changed=True, lost=_lost(fact, lost, "after"))
        elif fact.outcome == "ask" and not fact.shadow:
            self._asked = self._args

    def _person(self, fact: fa.Decided | fa.CheckInAnswered, note: Json, lost: set[str]) -> None:
        self._note = note if isinstance(note, str) else None
        self._note_lost = None if not lost else Lost(kind=kind_of(fact), field=min(lost))

    def _finished(self, fact: fa.ToolFinished, lost: set[str]) -> None:
        # A body that was cancelled may have acted, and has no result.
        if self._intent is not None and not fact.cancelled:
            self._end = Finished(
                args=self._intent.args,
                args_lost=self._intent.args_lost,
                end=fact,
                result_lost=_lost(fact, lost, "result"),
                changed=self._intent.changed,
            )


def _note(fact: fa.Decided) -> str | None:
    """The note of a person, out of the sentence that says what they decided; see `Person.sentence`."""
    said, by = fact.why, fact.decided_by
    if not isinstance(said, str) or not isinstance(by, str):
        return None
    _, _, note = said.partition(f" by {by}: ")
    return note or None


def _lost(fact: fa.Fact, lost: set[str], field: str) -> Lost | None:
    gone = field in lost or getattr(fact, field) is msgspec.UNSET
    return Lost(kind=kind_of(fact), field=field) if gone else None
