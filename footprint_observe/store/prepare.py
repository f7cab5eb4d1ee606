"""Rows made ready from a batch, before any lock is taken: redacted, encoded, committed to."""

from __future__ import annotations

import os

import msgspec

from footprint_core.ledger import Batch, Entry, Marks, Receipt, Redactor, redacted
from footprint_observe.store import failures
from footprint_observe.store.codec import PLANS, columns_of, marks_text, values_of
from footprint_observe.store.hashing import Columns, commitment, document

_SALT_BYTES = 16


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row that lacks only its id and its place in the chain.

    Attributes:
        columns: In the order of `HASHED_COLUMNS`.
        document: What its hash is over.
        values: Field, JSON and salt of each value.
    """

    columns: Columns
    document: bytes
    values: tuple[tuple[str, str, bytes], ...]


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A batch ready to be inserted, and the receipt it will get.

    Attributes:
        run_id: The run.
        segment: Its segment.
        first: The position of its first row.
        rows: One for every entry.
        receipt: The entries as they are kept.
    """

    run_id: str
    segment: int
    first: int
    rows: tuple[Row, ...]
    receipt: Receipt


def prepare(batch: Batch, redactor: Redactor) -> Prepared:
    """Redact a batch and make its rows.

    Raises:
        LedgerWriteError: A row cannot be made of an entry.
    """
    entries: list[Entry] = []
    marks: dict[int, Marks] = {}
    for entry in batch.entries:
        fact, done = redacted(entry.fact, redactor)
        if done:
            marks[entry.position] = done
        kept = entry if fact is entry.fact else Entry(position=entry.position, time=entry.time, fact=fact)
        entries.append(kept)
    try:
        rows = _rows(batch, entries, marks)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        failure = failures.unencodable(error)
    else:
        return Prepared(
            run_id=batch.run_id,
            segment=batch.segment,
            first=entries[0].position,
            rows=rows,
            receipt=Receipt(entries=tuple(entries), marks=marks),
        )
    # Raised out here: an encoding error holds the text it failed on, and would be the context.
    raise failures.about(failure, batch.run_id, batch.segment)


def _rows(batch: Batch, entries: list[Entry], marks: dict[int, Marks]) -> tuple[Row, ...]:
    trace, first = batch.trace, entries[0].position
    place = (
        batch.run_id,
        batch.segment,
        None if trace is None else trace.trace_id,
        None if trace is None else trace.span_id,
    )
    rows: list[Row] = []
    for offset, entry in enumerate(entries):
        if entry.position != first + offset:
            raise ValueError("The positions of a batch ascend by one.")
        rows.append(_row(place, entry, marks.get(entry.position, ())))
    return tuple(rows)


def _row(place: tuple[str, int, str | None, str | None], entry: Entry, marks: Marks) -> Row:
    fact = entry.fact
    plan = PLANS[type(fact)]
    values: list[tuple[str, str, bytes]] = []
    commitments: list[str] = []
    for field, json in values_of(plan, fact):
        salt = os.urandom(_SALT_BYTES)
        values.append((field.name, json.decode(), salt))
        commitments.append(f'"{field.name}":"{commitment(salt, field.prefix, json)}"')
    columns = columns_of(
        plan,
        fact,
        place,
        position=entry.position,
        recorded_us=entry.time,
        redacted=marks_text(marks),
        commitments=f"{{{','.join(commitments)}}}" if commitments else None,
    )
    return Row(columns=columns, document=document(columns), values=tuple(values))
