"""A run is folded again from what its file holds, and compared with what its facts say, step by step."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator

import msgspec

from footprint_core import facts as fa
from footprint_core.errors import LedgerReadError
from footprint_core.ledger import Entry
from footprint_core.messages import Message
from footprint_core.readback import kind_of
from footprint_observe.query.agreement import Difference, difference
from footprint_observe.query.database import reading
from footprint_observe.query.runs import meant
from footprint_observe.query.stored_run import StoredRun
from footprint_observe.store import read

_FOLLOWS = """
SELECT json_extract(extra, '$.follows') FROM facts
WHERE run_id = :run AND position = 1 AND kind = 'run.configured'
"""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The run behind one fact.

    Attributes:
        position: The fact's place in its run.
        segment: Its segment.
        kind: Its kind.
        fact: The fact as the file has it.
        iteration: Model calls of the turn so far.
        messages: Messages the model would be sent now.
        came: The roles of the messages that came with the fact.
        input_tokens: Tokens read by all model calls of the run so far.
        output_tokens: Tokens written by them.
    """

    position: int
    segment: int
    kind: str
    fact: fa.Fact
    iteration: int
    messages: int
    came: tuple[str, ...]
    input_tokens: int
    output_tokens: int


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay found.

    Attributes:
        run_id: The run.
        matches: Whether every fact says what follows from those before it.
        difference: The first one that does not, or None.
        facts: How many facts were folded.
        segments: The last segment.
        outcome: How it ended; None while it has not.
        redacted: How many values were redacted when they were written.
        erased: How many were erased since.
        elsewhere: Whether the run, or the conversation before it, began in another ledger. What came before
            is taken then to be as long as the first request here says.
    """

    run_id: str
    matches: bool
    difference: Difference | None
    facts: int
    segments: int
    outcome: str | None
    redacted: int
    erased: int
    elsewhere: bool


def replay(
    path: str | os.PathLike[str], run: str = "last", *, told: Callable[[Step], None] | None = None
) -> Replay:
    """Fold a run again from what its file holds, and compare.

    Args:
        path: The ledger file.
        run: Its id, the beginning of one, or `last`.
        told: Called with every step, in order.

    Raises:
        NoSuchRunError: No run is meant, or more than one.
        LedgerError: There is no ledger at that path, or it cannot be read.
    """
    found: Difference | None = None
    with reading(path) as db:
        run_id = meant(db, run)
        stored = _begun(db.conn, run_id)
        for one in _entries(db.conn, run_id):
            if one is None:
                found = found or _unreadable(stored)
                break
            segment, entry = one
            found = found or difference(stored, segment, entry)
            came = stored.take(segment, entry)
            if told is not None:
                told(_step(stored, entry.fact, came))
    return Replay(
        run_id=run_id,
        matches=found is None,
        difference=found,
        facts=stored.position,
        segments=stored.segment,
        outcome=stored.outcome,
        redacted=stored.redacted,
        erased=stored.erased,
        elsewhere="roles" in stored.unknown,
    )


def _begun(connection: sqlite3.Connection, run_id: str) -> StoredRun:
    """The run before its first fact: behind the conversation before it, as far as the file has that."""
    chain: list[str] = []
    follows = _follows(connection, run_id)
    # A ledger that somebody wrote by hand could lead round in a circle.
    while follows is not None and follows not in (run_id, *chain):
        chain.append(follows)
        follows = _follows(connection, follows)
    before: StoredRun | None = None
    for earlier in reversed(chain):
        before = StoredRun(before)
        for one in _entries(connection, earlier):
            if one is None:
                break
            before.take(*one)
        if before.position == 0:
            before.begins_elsewhere()
    return StoredRun(before)


def _follows(connection: sqlite3.Connection, run_id: str) -> str | None:
    row = connection.execute(_FOLLOWS, {"run": run_id}).fetchone()
    return None if row is None else row[0]


def _entries(connection: sqlite3.Connection, run_id: str) -> Iterator[tuple[int, Entry] | None]:
    """The facts of a run with their segments; None, once, in the place of a row that is no fact."""
    rows = read.numbered(connection, run_id)
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except LedgerReadError:
            yield None
            return


def _unreadable(run: StoredRun) -> Difference:
    return Difference(
        position=run.position + 1, kind="unknown", what="a row that reads back as a fact", says=None, folded=1
    )


def _step(run: StoredRun, fact: fa.Fact, came: tuple[Message, ...]) -> Step:
    state = run.state
    return Step(
        position=run.position,
        segment=run.segment,
        kind=kind_of(fact),
        fact=fact,
        iteration=state.iteration,
        messages=len(state.messages),
        came=tuple(message.role for message in came),
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
    )
