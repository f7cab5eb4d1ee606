"""Rows made ready from a batch, before any lock is taken: redacted, encoded, committed to."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from footprint_core.ledger import Batch, Entry, Marks, Receipt
from footprint_core.redacting import Redacting
from footprint_observe.keyring import KeyRing
from footprint_observe.redaction.paths import Left
from footprint_observe.store import failures
from footprint_observe.store.codec import PLANS, columns_of, marks_text, values_of
from footprint_observe.store.cutting import cut_out
from footprint_observe.store.hashing import SALT_BYTES, Columns, commitment, document
from footprint_observe.store.pauses import Bodies, bodies_of

# Salts that are drawn at once. Each draw is a system call, at which another thread may take over.
_DRAWN = 8
_encode = msgspec.json.Encoder().encode


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A row that lacks only its id and its place in the chain.

    Attributes:
        columns: In the order of `HASHED_COLUMNS`.
        document: What its hash is over.
        values: Field, JSON and salt of each value.
    """

    columns: Columns
    document: bytes
    values: tuple[tuple[str, str, bytes], ...]


class Prepared(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A batch ready to be inserted, and the receipt it will get.

    Attributes:
        run_id: The run.
        segment: Its segment.
        first: The position of its first row.
        rows: One for every entry.
        receipt: The entries as they are kept.
        bodies: What the batch does to the bodies of pauses, or None.
    """

    run_id: str
    segment: int
    first: int
    rows: tuple[Row, ...]
    receipt: Receipt
    bodies: Bodies | None = None


def prepare(batch: Batch, redacting: Redacting, keys: KeyRing | None = None) -> Prepared:
    """Redact a batch and make its rows, and seal the body of the pause it opens.

    Raises:
        LedgerWriteError: A row cannot be made of an entry.
    """
    entries, marks = redacting.batch(batch)
    try:
        rows = _rows(batch, entries, marks, getattr(redacting.redactor, "erasable", ()))
        bodies = bodies_of(batch, keys)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        failure = failures.unencodable(error)
    else:
        return Prepared(
            run_id=batch.run_id,
            segment=batch.segment,
            first=entries[0].position,
            rows=rows,
            receipt=Receipt(entries=entries, marks=marks),
            bodies=bodies,
        )
    # Raised out here: an encoding error holds the text it failed on, and would be the context.
    raise failures.about(failure, batch.run_id, batch.segment)


def _rows(
    batch: Batch, entries: tuple[Entry, ...], marks: dict[int, Marks], erasable: Left
) -> tuple[Row, ...]:
    trace, first = batch.trace, entries[0].position
    place = (
        batch.run_id,
        batch.segment,
        None if trace is None else trace.trace_id,
        None if trace is None else trace.span_id,
    )
    rows: list[Row] = []
    salts = _salts()
    for offset, entry in enumerate(entries):
        if entry.position != first + offset:
            raise ValueError("The positions of a batch ascend by one.")
        rows.append(_row(place, entry, marks.get(entry.position, ()), erasable, salts))
    return tuple(rows)


def _salts() -> Iterator[bytes]:
    while True:
        drawn = os.urandom(SALT_BYTES * _DRAWN)
        for at in range(0, len(drawn), SALT_BYTES):
            yield drawn[at : at + SALT_BYTES]


def _row(
    place: tuple[str, int, str | None, str | None],
    entry: Entry,
    marks: Marks,
    erasable: Left,
    salts: Iterator[bytes],
) -> Row:
    fact = entry.fact
    plan = PLANS[type(fact)]
    values: list[tuple[str, str, bytes]] = []
    commitments: list[str] = []
    found = values_of(plan, fact)
    if erasable:
        found, cuts = cut_out(fact, found, erasable)
        values += ((cut.path, cut.json, cut.salt) for cut in cuts)
        commitments += (f'{_encode(cut.path).decode()}:"{cut.digest}"' for cut in cuts)
    for field, json in found:
        salt = next(salts)
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
