"""What tests of sealed pauses share: keys, the bodies of a file, and the forms a text can be found in."""

from __future__ import annotations

import base64
import sqlite3
from pathlib import Path
from typing import Any

from file_ledger import select
from footprint_core.facts import RunAbandoned
from footprint_core.ledger import Batch, Entry
from footprint_observe import KeyRing
from story import run

SECRET = bytes(range(32))
KEYS = KeyRing.of({"k1": SECRET})


def written(secret: bytes = SECRET, *, key_id: str = "k1") -> str:
    """A key as FOOTPRINT_KEYS and key files have it."""
    return f"{key_id}:{base64.b64encode(secret).decode()}"


def bodies(path: Path) -> list[tuple[Any, ...]]:
    """Pause, run, key and sealed body of every body in a file."""
    return select(path, "SELECT pause_id, run_id, key_id, body FROM pause_bodies ORDER BY pause_id")


def flushed(path: Path) -> bytes:
    """The bytes of the file itself, once its log has been moved into it."""
    connection = sqlite3.connect(path)
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.close()
    assert not busy
    return path.read_bytes()


def traces(body: bytes, data: bytes) -> list[int]:
    """Where pieces of a body are found in data; a long one lies there in pieces, page by page."""
    return [at for at in range(0, len(body) - 32, 512) if body[at : at + 32] in data]


def abandon(ledger: Any, pause: Any) -> None:
    """A person gives the run up."""
    position = ledger.entries(pause.run_id)[-1].position + 1
    entry = Entry(position=position, time=1, fact=RunAbandoned(by="dana@ops", reason="a duplicate"))
    run(ledger.append(Batch(run_id=pause.run_id, segment=1, entries=(entry,))))


def tampered(path: Path, statement: str, **values: Any) -> None:
    """Change a file as somebody does who takes its guards away first."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for (name,) in found:
        connection.execute(f"DROP TRIGGER {name}")
    assert connection.execute(statement, values).rowcount > 0
    connection.commit()
    connection.close()


def forms(token: str) -> dict[str, bytes]:
    """The bytes a token can be found as: raw, in hex, in UTF-16, and in base64 wherever it begins there."""
    raw = token.encode()
    found = {
        "raw": raw,
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "utf-16-le": token.encode("utf-16-le"),
        "utf-16-be": token.encode("utf-16-be"),
    }
    for offset in range(3):
        # The characters that are made of the token alone, whatever stands before and behind it.
        whole = base64.b64encode(b"\0" * offset + raw)
        found[f"base64 at {offset}"] = whole[4 if offset else 0 : len(whole) - 4]
    return found
