"""A ledger in memory: for tests, and for programs that keep nothing."""

from __future__ import annotations

import msgspec

from footprint_core.decisions import Decision
from footprint_core.errors import RunTakenOverError
from footprint_core.facts import Decided, PauseAnswered, PauseClosed, PauseOpened
from footprint_core.ledger import (
    Batch,
    Entry,
    Marks,
    PauseStanding,
    Receipt,
    Redactor,
    decision_row,
    redacted,
)


class _Run:
    """What is kept of one run: its receipts, each with its segment."""

    __slots__ = ("next_position", "parts")

    def __init__(self, first: int) -> None:
        self.next_position = first
        self.parts: list[tuple[int, Receipt]] = []


class MemoryLedger:
    """Keeps the entries of every run until it is dropped.

    Args:
        redact: What removes fields when they are written; None keeps everything.
    """

    def __init__(self, *, redact: Redactor | None = None) -> None:
        self._redact = redact
        self._runs: dict[str, _Run] = {}

    def append_inline(self, batch: Batch, /) -> Receipt:
        """Append, all or nothing.

        Raises:
            RunTakenOverError: The batch does not follow what is here of its run.
        """
        first = batch.entries[0].position
        run = self._runs.get(batch.run_id) or _Run(first)
        if first != run.next_position:
            raise RunTakenOverError("This run was written elsewhere meanwhile; start the turn again.")
        receipt = (
            Receipt(entries=batch.entries, marks={})
            if self._redact is None
            else _redacted(batch, self._redact)
        )
        run.parts.append((batch.segment, receipt))
        run.next_position = first + len(batch.entries)
        self._runs[batch.run_id] = run
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


def _marked(entry: Entry, marks: Marks) -> Entry:
    return msgspec.structs.replace(entry, marks=marks) if marks else entry


def _redacted(batch: Batch, redactor: Redactor) -> Receipt:
    entries: list[Entry] = []
    marks: dict[int, Marks] = {}
    for entry in batch.entries:
        fact, done = redacted(entry.fact, redactor)
        if done:
            marks[entry.position] = done
        entries.append(Entry(position=entry.position, time=entry.time, fact=fact))
    return Receipt(entries=tuple(entries), marks=marks)
