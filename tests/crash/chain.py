"""The chain of a file checked by what its layout says, with nothing of the product: SQL, JSON and SHA-256."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

_APART = {"id", "prev_hash", "hash"}


def breaks(path: Path) -> list[str]:
    """Where the rows of a file do not follow each other, or a value is not the one its row commits to."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    try:
        rows = db.execute("SELECT * FROM facts ORDER BY id").fetchall()
        values = db.execute("SELECT * FROM vals").fetchall()
    finally:
        db.close()
    found: list[str] = []
    heads: dict[str, tuple[int, bytes]] = {}
    for number, row in enumerate(rows, 1):
        position, head = heads.get(row["run_id"], (0, bytes(32)))
        columns = {name: row[name] for name in row.keys() if name not in _APART and row[name] is not None}  # noqa: SIM118 - a row iterates over its values
        document = json.dumps(columns, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        after = hashlib.sha256(b"footprint:row:1\n" + head + document).digest()
        if (row["id"], row["position"]) != (number, position + 1):
            found.append(f"row {row['id']} is number {number} and position {row['position']}")
        if (row["prev_hash"], row["hash"]) != (head, after):
            found.append(f"row {row['id']} does not follow")
        heads[row["run_id"]] = (row["position"], row["hash"])
    committed = {row["id"]: json.loads(row["commitments"] or "{}") for row in rows}
    for value in values:
        field = value["field"].encode()
        tagged = b"footprint:value:1\n" + value["salt"] + len(field).to_bytes(4, "big") + field
        digest = hashlib.sha256(tagged + value["json"].encode()).hexdigest()
        if committed[value["fact_id"]].pop(value["field"], None) != digest:
            found.append(f"the value {value['field']} of row {value['fact_id']} is not what was committed to")
    found += [f"row {id} lacks the value {field}" for id, left in committed.items() for field in left]
    return found
