"""A ledger in memory: for tests, and for programs that keep nothing."""

from __future__ import annotations

import msgspec

from footprint_core import plain
from footprint_core.decisions import Decision
from footprint_core.errors import LedgerWriteError, RunTakenOverError
from footprint_core.facts import Decided, PauseAnswered, PauseClosed, PauseOpened, RunAbandoned, TraceRef
from footprint_core.ledger import (
    Batch,
    Entry,
    KeptPause,
    Marks,
    PauseStanding,
    Receipt,
    Redactor,
    RunStanding,
    decision_row,
    ended_pauses,
)
from footprint_core.redacting import Redacting


class _Run:
    """What is kept of one run: its receipts, each with its segment."""

    __slots__ = ("next_position", "parts", "trace")

    def __init__(self) -> None:
        self.next_position = 1
        self.trace: TraceRef | None = None
        self.parts: list[tuple[int, Receipt]] = []


class MemoryLedger:
    """Keeps the entries of every run until it is dropped.

    Args:
        redact: What removes fields when they are written; None keeps everything.
    """

    def __init__(self, *, redact: Redactor | None = None) -> None:
        self._redacting = None if redact is None else Redacting(redact)
        self._runs: dict[str, _Run] = {}
        # By pause id, its run and its checkpoint as JSON, which nothing outside can change.
        self._bodies: dict[str, tuple[str, bytes]] = {}

    def append_inline(self, batch: Batch, /) -> Receipt:
        """Append, all or nothing.

        Raises:
            RunTakenOverError: The batch does not follow what is here of its run.
            LedgerWriteError: Nothing is here of its run, and the batch does not begin it.
        """
        first = batch.entries[0].position
        run = self._runs.get(batch.run_id)
        if run is None:
            run = _Run()
            if first != 1:
                raise LedgerWriteError("This ledger has nothing of this run; start the turn again.")
        if first != run.next_position:
            raise RunTakenOverError("This run was written elsewhere meanwhile; start the turn again.")
        receipt = (
            Receipt(entries=batch.entries, marks={})
            if self._redacting is None
            else _redacted(batch, self._redacting)
        )
        run.parts.append((batch.segment, receipt))
        run.next_position = first + len(batch.entries)
        run.trace = batch.trace
        self._runs[batch.run_id] = run
        if self._bodies:
            self._destroy_answered(batch)
        if batch.pause is not None:
            self._bodies[batch.pause.pause_id] = (batch.run_id, plain.encode(batch.pause.checkpoint))
        return receipt

    async def append(self, batch: Batch, /) -> Receipt:
        """Append, all or nothing."""
        return self.append_inline(batch)

    async def pause_standing(self, run_id: str, pause_id: str, /) -> PauseStanding | None:
        """What is known of a pause; None when it is not here."""
        opened: tuple[Entry, PauseOpened] | None = None
        answered = False
        for entry in self.entries(run_id):
            match entry.fact:
                case PauseOpened(pause_id=id) as fact if id == pause_id:
                    opened = (entry, fact)
                case PauseAnswered(pause_id=id) | PauseClosed(pause_id=id) if id == pause_id:
                    answered = True
                case RunAbandoned():
                    answered = answered or opened is not None
                case _:
                    pass
        if opened is None:
            return None
        run = self._runs[run_id]
        entry, fact = opened
        return PauseStanding(
            position=run.next_position - 1,
            segment=run.parts[-1][0],
            answered=answered,
            digest=None if fact.digest is msgspec.UNSET else fact.digest,
            salt=None if fact.salt is msgspec.UNSET else fact.salt,
            opened_us=entry.time,
        )

    async def kept_pause(self, pause_id: str, /) -> KeptPause | None:
        """A pause by its id alone, with its body until it is answered; None when it is not here."""
        kept = self._bodies.get(pause_id)
        if kept is not None:
            run_id, checkpoint = kept
            return KeptPause(run_id=run_id, checkpoint=plain.decode(checkpoint))
        for run_id, run in self._runs.items():
            for _, part in run.parts:
                for entry in part.entries:
                    if isinstance(entry.fact, PauseOpened) and entry.fact.pause_id == pause_id:
                        return KeptPause(run_id=run_id, checkpoint=None)
        return None

    async def run_standing(self, run_id: str, /) -> RunStanding | None:
        """Where a run ends; None when it is not here."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        segment, _ = run.parts[-1]
        return RunStanding(position=run.next_position - 1, segment=segment, trace=run.trace)

    def entries(self, run_id: str, /) -> tuple[Entry, ...]:
        """The entries of a run, in order and marked."""
        run = self._runs.get(run_id)
        return (
            ()
            if run is None
            else tuple(
                _marked(entry, part.marks.get(entry.position, ()))
                for _, part in run.parts
                for entry in part.entries
            )
        )

    def decisions(self, run_id: str, /) -> tuple[Decision, ...]:
        """The decision rows of a run, in order."""
        run = self._runs.get(run_id)
        return (
            ()
            if run is None
            else tuple(
                decision_row(run_id, segment, entry, entry.fact, part.marks.get(entry.position, ()))
                for segment, part in run.parts
                for entry in part.entries
                if isinstance(entry.fact, Decided)
            )
        )

    async def close(self) -> None:
        """Nothing to give back."""

    def _destroy_answered(self, batch: Batch) -> None:
        for pause_id in ended_pauses(batch):
            if pause_id is not None:
                self._bodies.pop(pause_id, None)
                continue
            for id in [id for id, (run_id, _) in self._bodies.items() if run_id == batch.run_id]:
                del self._bodies[id]


def _marked(entry: Entry, marks: Marks) -> Entry:
    return msgspec.structs.replace(entry, marks=marks) if marks else entry


def _redacted(batch: Batch, redacting: Redacting) -> Receipt:
    entries, marks = redacting.batch(batch)
    return Receipt(entries=entries, marks=marks)
