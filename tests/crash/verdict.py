"""What must hold of a ledger file behind a kill or a disk that failed, whatever was going on."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from crash.chain import breaks
from crash.desk import Notes, fingerprint
from footprint_core.facts import ToolIntended
from footprint_observe import Redaction, SqliteLedger
from footprint_observe.query.replay import replay
from footprint_observe.store.verify import Fault, verify

_ENDED_WITH_A_BODY = """
SELECT b.pause_id FROM pause_bodies AS b JOIN facts AS f ON f.pause_id = b.pause_id
WHERE f.kind IN ('pause.answered', 'pause.closed')
"""


def problems(path: Path, notes: Notes) -> list[str]:
    """Everything that is wrong with a file, beside what the processes that wrote to it saw.

    The plain command comes first, so that it finds the file as the kill left it.
    """
    found = [*_opens_plainly(path), *breaks(path)]
    verified = verify(path)
    if isinstance(verified, Fault):
        found.append(f"row {verified.row}: {verified.why}")
    left = _select(path, _ENDED_WITH_A_BODY)
    found += [f"the pause {pause} has ended, and its body is kept" for (pause,) in left]
    ledger = SqliteLedger(path, redact=Redaction.none(), durability="process")
    try:
        kept = {run: ledger.entries(run) for run in {note["run"] for note in notes.of("begins")}}
    finally:
        asyncio.run(ledger.close())
    for run in (run for run, entries in kept.items() if entries):
        told = replay(path, run)
        if not told.matches:
            found.append(f"the stored fold does not match: {told.difference}")
    prints = {run: {entry.position: fingerprint(entry) for entry in rows} for run, rows in kept.items()}
    for note in notes.of("kept"):
        there = prints[note["run"]]
        lost = [at for at, digest in note["prints"].items() if there.get(int(at)) != digest]
        found += [f"position {at} was acknowledged and is lost or another" for at in lost]
    for body in notes.of("body"):
        at = int(body["key"].split(":")[1])
        intents = [entry.fact for entry in kept[body["run"]] if entry.position == at]
        if not intents or not isinstance(intents[0], ToolIntended) or intents[0].args != body["args"]:
            found.append(f"the body of {body['call']} ran without its intent")
    return found


def _opens_plainly(path: Path) -> list[str]:
    views = ("decisions", "runs", "tool_calls", "pauses")
    asked = "PRAGMA integrity_check; " + " ".join(f"SELECT count(*) >= 0 FROM {view};" for view in views)
    command = shutil.which("sqlite3")
    if command is None:
        db = sqlite3.connect(path)
        try:
            said = [str(db.execute(one).fetchone()[0]) for one in asked.split(";") if one.strip()]
        finally:
            db.close()
    else:
        done = subprocess.run(
            [command, str(path), asked], capture_output=True, text=True, timeout=60, check=False
        )
        said = done.stdout.split() + ([done.stderr] if done.returncode else [])
    return [] if said == ["ok", "1", "1", "1", "1"] else [f"sqlite3 says: {said}"]


def ran(notes: Notes) -> dict[tuple[str, str], int]:
    """How often the body of each call of each run was entered."""
    counts: dict[tuple[str, str], int] = {}
    for body in notes.of("body"):
        key = (body["run"], body["call"])
        counts[key] = counts.get(key, 0) + 1
    return counts


def keeps_a_body(path: Path, pause_id: str) -> bool:
    """Whether a file keeps what a pause handed over."""
    return (pause_id,) in _select(path, "SELECT pause_id FROM pause_bodies")


def positions(path: Path) -> dict[str, list[int]]:
    """The positions of every run, in the order of the file."""
    found: dict[str, list[int]] = {}
    for run, position in _select(path, "SELECT run_id, position FROM facts ORDER BY id"):
        found.setdefault(run, []).append(position)
    return found


def _select(path: Path, query: str) -> list[Any]:
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()
