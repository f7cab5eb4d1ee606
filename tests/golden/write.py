"""Writes the golden files of the schema this release has: run once for a schema, before it is released.

`schema-N.sql` is the schema's text, `ledger-N.db` a file with a fact of every kind, values that were masked
and values that were cut out, and `ledger-N.json` what is read back of it. They are never written again: every
later release has to open them.

    python tests/golden/write.py
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from footprint_core.facts import Fact, PauseOpened, ToolIntended
from footprint_core.ledger import Batch, Entry, PauseBody
from footprint_observe import KeyRing, Redaction, SqliteLedger
from footprint_observe.store.schema import VERSION

HERE = Path(__file__).parent
KEYS = {"golden": bytes(range(32))}
PAUSE = "9" * 32
RUNS = ("a" * 32, "b" * 32, "c" * 32)
_TIME = 1_780_000_000_123_456


def schema_of(path: Path) -> str:
    """The schema of a file as text, in the order it was made."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        texts = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
        return "".join(f"{sql};\n" for (sql,) in texts)
    finally:
        connection.close()


def read_back(ledger: SqliteLedger) -> dict[str, list[dict[str, Any]]]:
    """Every entry of the golden runs as plain JSON."""
    return {
        run: [
            {"position": entry.position, "time": entry.time, "marks": entry.marks, "fact": _plain(entry.fact)}
            for entry in ledger.entries(run)
        ]
        for run in RUNS
    }


def _plain(fact: Fact) -> Any:
    return msgspec.json.decode(msgspec.json.encode(fact))


def _batch(run_id: str, facts: tuple[Fact, ...], pause: PauseBody | None = None) -> Batch:
    entries = tuple(Entry(position=at, time=_TIME + at, fact=fact) for at, fact in enumerate(facts, 1))
    return Batch(run_id=run_id, segment=1, entries=entries, pause=pause)


def _write(path: Path) -> None:
    sys.path.append(str(HERE.parent))
    from samples import FULL, VALUE

    policy = Redaction.of(fields=["args.card"], erasable=["**.zulu", "**.alpha.b", "args.customer.ssn"])
    keys = KeyRing.of(KEYS)
    args = {"password": "correct horse", "card": "4111", "customer": {"ssn": "123-45-6789", "name": "Ada"}}
    opened = PauseOpened(
        pause_id=PAUSE, pause_kind="ask", iteration=1, call_id="c", tool_name="t", salt="00", digest="11"
    )
    ledger = SqliteLedger(path, redact=policy, keys=keys)
    ledger.append_inline(_batch(RUNS[0], FULL))
    ledger.append_inline(
        _batch(RUNS[1], (ToolIntended(iteration=1, call_id="c", tool_name="t", args=args), opened),
               PauseBody(pause_id=PAUSE, checkpoint={"version": 1, "args": args}))
    )  # fmt: skip
    ledger.append_inline(
        _batch(RUNS[2], (ToolIntended(iteration=1, call_id="c", tool_name="t", args=VALUE),))
    )
    read = json.dumps(read_back(ledger), indent=1, ensure_ascii=False)
    asyncio.run(ledger.close())
    (HERE / f"ledger-{VERSION}.json").write_text(f"{read}\n", encoding="utf-8")
    (HERE / f"schema-{VERSION}.sql").write_text(schema_of(path), encoding="utf-8")


if __name__ == "__main__":
    target = HERE / f"ledger-{VERSION}.db"
    if target.exists():
        sys.exit(f"{target} exists, and what was released is never written again.")
    with tempfile.TemporaryDirectory() as folder:
        # Not here, for a reader leaves files beside it.
        _write(Path(folder) / target.name)
        shutil.copy(Path(folder) / target.name, target)
