"""A ledger file of as many rows as a benchmark asks for, made once and kept.

Real runs are recorded (see `templates`) and made ready by the store's own code, once each. Then they are
stamped out, 64 of them under way at a time: every copy has ids, times and salts of its own, so its
commitments, the documents of its rows and their hashes are computed anew, by the store's functions, and the
sums come from its trigger. The other triggers, which only refuse, are put back when the rows are in. What
comes out is a file that `footprint verify` takes at every level, and whose runs replay.

Run it as a program to make a file: `rows.py 10000000`. It lies in FOOTPRINT_BENCH_DIR, or else in the user's
cache folder. When tables change it is made anew; when only views and triggers do, these are renewed in it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import templates

from footprint_core.ledger import Batch
from footprint_core.redacting import Redacting
from footprint_observe import Redaction, SqliteLedger
from footprint_observe.query import replay
from footprint_observe.store.append import _INSERT_FACT, _INSERT_VALUE
from footprint_observe.store.hashing import FIRST, commitment, document, link, value_prefix
from footprint_observe.store.prepare import Prepared, prepare
from footprint_observe.store.schema import HASHED_COLUMNS, create
from footprint_observe.store.totals import BLOCK, BLOCKS
from footprint_observe.store.verify import Fault, verify

MIX = 1
"""Which mix of rows the files have; another number makes them anew."""

SEED, DAYS, TEMPLATES, OPEN = 7, 90, 400, 64
FIRST_US = 1_767_225_600_000_000
"""2026-01-01, the first day of the file."""

SPAN_US = DAYS * 86_400_000_000
_RUN, _TIME, _PAUSE, _TRACE, _SPAN, _COMMITMENTS = map(
    HASHED_COLUMNS.index, ("run_id", "recorded_us", "pause_id", "trace_id", "span_id", "commitments")
)
_TRANSACTION = 4096


class Value(NamedTuple):
    """A value of a recorded row: its field, its JSON twice, and its field as it goes into a commitment."""

    field: str
    text: str
    json: bytes
    prefix: bytes


class Recorded(NamedTuple):
    """A row of a recorded run: its columns, and its values."""

    columns: list[Any]
    values: list[Value]


class Part(NamedTuple):
    """A batch of a recorded run, whether it is the first of its segment, and its rows."""

    begins: bool
    rows: list[Recorded]


def folder() -> Path:
    """Where the files are kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("FOOTPRINT_BENCH_DIR") or cache / "footprint-bench")


def file_of(rows: int) -> Path:
    """The file of so many rows, which is made when it is not there."""
    path = folder() / f"rows-{rows}-{_layout()}.db"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        for part in path.parent.glob(f"{unfinished.name}*"):
            part.unlink()
        _fill(unfinished, rows)
        _check(unfinished)
        unfinished.rename(path)
    _renew(path)
    return path


def _schema(*types: str) -> dict[str, tuple[str, str]]:
    """Type and text of what a new file has, by name."""
    with closing(sqlite3.connect(":memory:")) as connection:
        create(connection)
        return _of(connection, *types)


def _of(connection: sqlite3.Connection, *types: str) -> dict[str, tuple[str, str]]:
    found = connection.execute("SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {name: (kind, sql) for name, kind, sql in found if kind in types}


def _layout() -> str:
    """What the rows of a file depend on beside their number."""
    tables = f"{MIX} {BLOCK} {BLOCKS} {_schema('table', 'index')}"
    return hashlib.sha256(tables.encode()).hexdigest()[:8]


def _renew(path: Path) -> None:
    """Give a file the views and triggers of today."""
    wanted = _schema("view", "trigger")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        there = _of(connection, "view", "trigger")
        if there == wanted:
            return
        connection.execute("BEGIN IMMEDIATE")
        for name, (kind, _) in there.items():
            connection.execute(f"DROP {kind} {name}")
        for _, sql in wanted.values():
            connection.execute(sql)
        connection.execute("COMMIT")


def _fill(path: Path, rows: int) -> None:
    chance = random.Random(SEED)
    made = [_recorded(version + 1, chance) for version in range(templates.VERSIONS)]
    asyncio.run(SqliteLedger(path, redact=Redaction.none()).close())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        # A file that is not finished is thrown away, so nothing has to survive meanwhile.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        refusing = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name <> 'facts_totals'"
        ).fetchall()
        for name, _ in refusing:
            connection.execute(f"DROP TRIGGER {name}")
        _insert(connection, _stream(made, rows, chance), rows)
        for _, sql in refusing:
            connection.execute(sql)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()


def _check(path: Path) -> None:
    """Look at some runs: their chains verify, and they replay."""
    some = "SELECT run_id FROM facts WHERE id >= ? AND kind = 'run.configured' LIMIT 1"
    chance = random.Random(SEED)
    with closing(sqlite3.connect(path)) as connection:
        (last,) = connection.execute("SELECT max(id) FROM facts").fetchone()
        runs = [connection.execute(some, (chance.randrange(last // 2),)).fetchone()[0] for _ in range(50)]
    for run_id in runs:
        found = verify(path, run_id, level=1)
        if isinstance(found, Fault):
            raise TypeError(f"A run of the file does not verify: {found}")
        if (difference := replay(path, run_id).difference) is not None:
            raise TypeError(f"A run of the file does not replay: {difference}")


def _insert(connection: sqlite3.Connection, stream: Iterator[tuple[Any, Any]], rows: int) -> None:
    began = time.monotonic()
    facts: list[Any] = []
    values: list[Any] = []
    for row_id, (fact, held) in enumerate(stream, 1):
        facts.append((row_id, *fact))
        values += [(row_id, *value) for value in held]
        if row_id % _TRANSACTION == 0 or row_id == rows:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_INSERT_FACT, facts)
            connection.executemany(_INSERT_VALUE, values)
            connection.execute("COMMIT")
            facts, values = [], []
        if row_id % 1_000_000 == 0:
            rate = row_id / (time.monotonic() - began)
            print(f"  {row_id} rows, {rate:.0f} a second", file=sys.stderr, flush=True)


def _recorded(version: int, chance: random.Random) -> list[list[Part]]:
    """Recorded runs, their batches made ready as the ledger does."""
    redacting = Redacting(Redaction.none())
    runs = asyncio.run(templates.recorded(version, TEMPLATES // templates.VERSIONS, chance))
    return [[_part(batch, prepare(batch, redacting)) for batch in run] for run in runs]


def _part(batch: Batch, prepared: Prepared) -> Part:
    begins = batch.entries[0].fact.__struct_config__.tag == "run.configured"
    rows = [
        Recorded(
            list(row.columns),
            [Value(field, text, text.encode(), value_prefix(field)) for field, text, _ in row.values],
        )
        for row in prepared.rows
    ]
    return Part(begins, rows)


def _stream(made: Sequence[list[list[Part]]], rows: int, chance: random.Random) -> Iterator[tuple[Any, Any]]:
    """So many rows with their values: one batch of every run under way after the other, of each in order."""
    done = 0
    under_way: list[Iterator[list[tuple[Any, Any]]]] = []
    while True:
        while len(under_way) < OPEN:
            at = done / rows
            run = chance.choice(made[int(at * len(made))])
            under_way.append(_stamped(run, int(FIRST_US + at * SPAN_US), chance))
        for going in tuple(under_way):
            batch = next(going, None)
            if batch is None:
                under_way.remove(going)
                continue
            for row in batch:
                yield row
                done += 1
                if done == rows:
                    return


def _stamped(recorded: list[Part], began_us: int, chance: random.Random) -> Iterator[list[tuple[Any, Any]]]:
    """The batches of a recorded run as those of another one: columns and hashes, and values with salts."""
    run_id = f"{began_us // 1000:012x}{chance.getrandbits(80):020x}"
    shift = began_us - recorded[0].rows[0].columns[_TIME]
    pauses: dict[str, str] = {}
    before, trace, span = FIRST, None, None
    for part in recorded:
        # The first batch of a segment is written before its span is known.
        known = (None, None) if part.begins else (trace, span)
        rows: list[tuple[Any, Any]] = []
        for row in part.rows:
            columns = row.columns.copy()
            columns[_RUN] = run_id
            columns[_TIME] += shift
            columns[_TRACE], columns[_SPAN] = known
            if columns[_PAUSE] is not None:
                columns[_PAUSE] = pauses.setdefault(columns[_PAUSE], f"{chance.getrandbits(128):032x}")
            held = [(value.field, value.text, chance.randbytes(16)) for value in row.values]
            if held:
                own = zip(row.values, held, strict=True)
                said = (f'"{v.field}":"{commitment(salt, v.prefix, v.json)}"' for v, (_, _, salt) in own)
                columns[_COMMITMENTS] = f"{{{','.join(said)}}}"
            after = link(before, document(tuple(columns)))
            rows.append(((*columns, before, after), held))
            before = after
        if part.begins:
            trace, span = f"{chance.getrandbits(128):032x}", f"{chance.getrandbits(64):016x}"
        yield rows


def main() -> None:
    """Make the file and say where it is."""
    path = file_of(int(sys.argv[1]))
    print(path, f"{path.stat().st_size / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
