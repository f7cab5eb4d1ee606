"""The port to a ledger: append a batch, all or nothing; and the port to a redactor."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, TypeAlias

import msgspec

from footprint_core import plain
from footprint_core.decisions import Decision
from footprint_core.facts import (
    Decided,
    Fact,
    PauseAnswered,
    PauseClosed,
    PauseOpened,
    RunAbandoned,
    TraceRef,
)
from footprint_core.messages import ToolCall
from footprint_core.plain import Json

Marks: TypeAlias = tuple[tuple[str, str], ...]
"""Path and strategy of every field that was redacted, for example `(("args.token", "mask"),)`."""


class Redactor(Protocol):
    """Removes what must not be kept from a fact's values, before anything is stored or hashed.

    `redact` is all it needs. One that also has `removed`, as `redacting.EchoRedactor` says, lets a ledger
    take echoes of what went from a call out of what was said about that call.
    """

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        """The fact as it may be kept, and what was done. The fact itself when nothing was."""
        ...


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A fact at its place.

    Attributes:
        position: Its place among the entries of its run, from 1, without gaps.
        time: When it was noted, microseconds since the Unix epoch, UTC.
        fact: The fact.
        marks: What was taken out of it; only on entries that are read back.
    """

    position: int
    time: int
    fact: Fact
    marks: Marks = ()


class PauseBody(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a pause goes on from, for a ledger that can keep it so that nobody else reads it.

    A ledger that cannot drops it. One that keeps it destroys it with the append that answers or closes the
    pause, or abandons its run.

    Attributes:
        pause_id: The pause.
        checkpoint: The checkpoint without its rows, salt and digest, which the ledger has.
    """

    pause_id: str
    checkpoint: Mapping[str, Json]


_NO_RESULTS: Mapping[str, Json] = MappingProxyType({})


class Batch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is appended at once.

    `(run_id, position)` is unique in a ledger. That is the fence: of two processes that continue one
    run, the append of the second fails before it acts.

    Attributes:
        run_id: The run.
        segment: The segment of the run, from 1.
        entries: At least one entry, positions ascending by one.
        trace: The segment's span, written on every row.
        pause: The body of the pause this batch opens.
        calls: The calls of the last reply, for a redactor that looks for echoes of their arguments.
        results: What tools had given for calls that were still open when the segment began, by call; for the
            same redactor, since another process appended them.
    """

    run_id: str
    segment: int
    entries: tuple[Entry, ...]
    trace: TraceRef | None = None
    pause: PauseBody | None = None
    calls: tuple[ToolCall, ...] = ()
    results: Mapping[str, Json] = _NO_RESULTS


class Receipt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an append did.

    Attributes:
        entries: The entries as they are kept, redacted.
        marks: What was redacted, by position; a position without redactions is absent.
    """

    entries: tuple[Entry, ...]
    marks: Mapping[int, Marks]


class PauseStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger knows of a pause.

    Attributes:
        position: The last position of the run.
        segment: The last segment of the run.
        answered: Whether the pause was answered or closed, or its run abandoned.
        digest: The salted digest over the checkpoint, its rows excepted, hex; None when it was erased.
        salt: The salt, hex; None when it was erased.
        opened_us: When it was opened, microseconds since the Unix epoch, UTC.
    """

    position: int
    segment: int
    answered: bool
    digest: str | None
    salt: str | None
    opened_us: int


class RunStanding(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run ends in a ledger.

    Attributes:
        position: Its last position.
        segment: Its last segment.
        trace: The span of that segment, or None.
    """

    position: int
    segment: int
    trace: TraceRef | None


class KeptPause(msgspec.Struct, frozen=True, kw_only=True):
    """A pause that is asked for by its id alone.

    Attributes:
        run_id: The run it was opened in.
        checkpoint: What `PauseBody` brought, as a copy; None when it was not kept, or was destroyed.
    """

    run_id: str
    checkpoint: Mapping[str, Json] | None


class Ledger(Protocol):
    """Where facts are appended. Rows are never rewritten."""

    def append_inline(self, batch: Batch, /) -> Receipt | None:
        """Append without waiting; None when that is not possible now, and nothing was done.

        Raises:
            LedgerError: As `append`.
        """
        ...

    async def append(self, batch: Batch, /) -> Receipt:
        """Append all of it or nothing; it is durable on return.

        Raises:
            RunTakenOverError: A position of the batch exists.
            LedgerBusyError: The append could not be taken in time.
            LedgerWriteError: It failed for another reason.
        """
        ...

    async def pause_standing(self, run_id: str, pause_id: str, /) -> PauseStanding | None:
        """What is known of a pause; None for a ledger that does not have the run."""
        ...

    async def kept_pause(self, pause_id: str, /) -> KeptPause | None:
        """A pause by its id alone, with its body where it is kept; None for one the ledger does not have.

        Raises:
            KeyRingError: The body is kept and the ledger's keys do not open it.
        """
        ...

    async def run_standing(self, run_id: str, /) -> RunStanding | None:
        """Where a run ends; None for a ledger that does not have it."""
        ...

    def entries(self, run_id: str, /) -> tuple[Entry, ...]:
        """The entries of a run as they are kept, in order and marked; none for a run it does not have."""
        ...

    def decisions(self, run_id: str, /) -> tuple[Decision, ...]:
        """The decision rows of a run, in order."""
        ...

    async def close(self) -> None:
        """Give back what the ledger holds. Closing twice is harmless."""
        ...


_ENDS: frozenset[type[Fact]] = frozenset({PauseAnswered, PauseClosed, RunAbandoned})


def ended_pauses(batch: Batch) -> tuple[str | None, ...]:
    """The pauses a batch ends: each it answers or closes, and None for all, when it gives its run up."""
    # For every row there is: isinstance asks the metaclass of a struct, which costs several times as much.
    ends = [entry.fact for entry in batch.entries if type(entry.fact) in _ENDS]
    return tuple([getattr(fact, "pause_id", None) for fact in ends])


REDACTED = "[redacted]"
"""What stands for a value that is not kept, whatever it was: not even its length or type is told."""

FAILED = "failed"
"""The mark of a value that was masked because the redactor could not look through it."""

ERASED = "erased"
"""The mark of a whole value that was kept once and is not there any more."""


def redacted(fact: Fact, redactor: Redactor) -> tuple[Fact, Marks]:
    """The fact as it may be kept; when the redactor fails, with every value masked."""
    try:
        return redactor.redact(fact)
    except Exception:  # noqa: BLE001 - whatever a redactor raises, what it was asked about is not kept
        return mask_all(fact)


def mask_all(fact: Fact) -> tuple[Fact, Marks]:
    """The fact with every value masked."""
    names = [name for name in masked_fields(fact) if _holds(getattr(fact, name))]
    if not names:
        return fact, ()
    masks: dict[str, Json] = dict.fromkeys(names, REDACTED)
    if "calls" in masks:
        # The calls of a reply stay calls, so that the row can still be read back.
        masks["calls"] = ()
    return msgspec.structs.replace(fact, **masks), tuple((name, FAILED) for name in names)


def _holds(value: Json) -> bool:
    return value is not msgspec.UNSET and value is not None and value != ()


def masked_fields(fact: Fact) -> tuple[str, ...]:
    """The values of a fact that a redactor may look at. The salt and digest of a pause are our own."""
    return () if isinstance(fact, PauseOpened) else fact.values


def decision_row(run_id: str, segment: int, entry: Entry, fact: Decided, marks: Marks) -> Decision:
    """The row of a decision at its place; its values are copies, for the caller may keep and change it."""
    # In two steps, since most rows are those of a rule that let pass, and Python makes a dict of a call with
    # more than fifteen keywords.
    row = Decision(
        run_id=run_id,
        segment=segment,
        position=entry.position,
        recorded_us=entry.time,
        middleware=fact.middleware,
        moment=fact.moment,
        iteration=fact.iteration,
        outcome=fact.outcome,
        changed=fact.changed,
        answer=fact.answer,
        version=fact.version,
        tool_name=fact.tool_name,
        tool_source=fact.tool_source,
        tool_call_id=fact.call_id,
        duration_us=fact.duration_us,
    )
    if not marks and _said_nothing(fact):
        return row
    return msgspec.structs.replace(
        row,
        why=None if fact.why is msgspec.UNSET else fact.why,
        before=plain.copy(fact.before),
        after=plain.copy(fact.after),
        detail=plain.copy(fact.detail),
        decided_by=None if fact.decided_by is msgspec.UNSET else fact.decided_by,
        error_class=fact.error_class,
        shadow=fact.shadow,
        after_approval=fact.after_approval,
        imported=fact.imported is not None,
        redacted=tuple(dict.fromkeys((*(fact.imported or ()), *marks))),
    )


def _said_nothing(fact: Decided) -> bool:
    """Whether all fields are at their default that a rule's plain allow leaves there."""
    absent = msgspec.UNSET
    return (
        fact.why is absent
        and fact.before is absent
        and fact.after is absent
        and fact.detail is absent
        and fact.decided_by is absent
        and fact.error_class is None
        and fact.imported is None
        and not fact.shadow
        and not fact.after_approval
    )
