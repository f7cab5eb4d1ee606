"""A verifier that shares no code with the store, as somebody without this program would write it.

It is written from the format as `hashing` tells it, with the standard library.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any


def first_fault(path: Path) -> int | None:
    """The id of the first row that does not follow; None when all do."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    vals: dict[int, dict[str, sqlite3.Row]] = {}
    for value in connection.execute("SELECT * FROM vals"):
        vals.setdefault(value["fact_id"], {})[value["field"]] = value
    heads: dict[str, tuple[int, bytes]] = {}
    try:
        for number, row in enumerate(connection.execute("SELECT * FROM facts ORDER BY id").fetchall(), 1):
            position, before = heads.get(row["run_id"], (0, bytes(32)))
            if (
                row["id"] != number
                or row["position"] != position + 1
                or row["prev_hash"] != before
                or row["hash"] != row_hash(row)
                or not all_committed(row["commitments"], vals.pop(row["id"], {}))
            ):
                return int(row["id"])
            heads[row["run_id"]] = (row["position"], row["hash"])
        return min(vals, default=None)
    finally:
        connection.close()


def row_hash(row: sqlite3.Row) -> bytes:
    document = {
        column: row[column]
        for column in row.keys()  # noqa: SIM118 - iterating gives the values
        if row[column] is not None and column not in {"id", "prev_hash", "hash"}
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(b"footprint:row:1\n" + row["prev_hash"] + text.encode()).digest()


def all_committed(commitments: str | None, vals: dict[str, Any]) -> bool:
    committed: dict[str, str] = json.loads(commitments or "{}")
    return all(is_committed(committed.get(field), value) for field, value in vals.items())


def is_committed(entry: str | None, value: sqlite3.Row) -> bool:
    field, text, salt = value["field"], value["json"], value["salt"]
    if "." not in field:
        name = field.encode()
        data = b"footprint:value:1\n" + salt + len(name).to_bytes(4, "big") + name + text.encode()
        return entry == hashlib.sha256(data).hexdigest()
    key = last_step(field)
    written = [f'["{base64url(salt)}",{json.dumps(key, ensure_ascii=False)},{text}]']
    # A text that holds the key and the value of a member is no value.
    if key.isdigit() and not text.startswith(f'"{key}",'):
        written.append(f'["{base64url(salt)}",{text}]')
    return entry in {base64url(hashlib.sha256(base64url(one.encode()).encode()).digest()) for one in written}


def last_step(field: str) -> str:
    steps, at = [""], 0
    while at < len(field):
        if field[at] == ".":
            steps.append("")
        elif field[at] == "\\" and field[at + 1] == "x":
            steps[-1] += chr(int(field[at + 2 : at + 4], 16))
            at += 3
        elif field[at] == "\\":
            steps[-1] += field[at + 1]
            at += 1
        else:
            steps[-1] += field[at]
        at += 1
    return steps[-1]


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
