"""The reference of the append benchmark: code written by hand for one row mix, as a good engineer would.

It builds, hashes and inserts the same rows from the same values into the same schema, without redaction,
without a fence against other writers, and without a look at whether the file is still there.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from footprint_core.facts import Decided, Fact, ModelReplied, ToolFinished, ToolIntended
from footprint_core.ledger import Batch
from footprint_observe.store.connect import open_writer
from footprint_observe.store.schema import HASHED_COLUMNS

Row = tuple[tuple[Any, ...], bytes, list[tuple[str, str, bytes]]]
"""The columns of a row, its document, and its values."""

_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="sorted").encode
_FACT = (
    f"INSERT INTO facts (id, {', '.join(HASHED_COLUMNS)}, prev_hash, hash) "
    f"VALUES ({', '.join('?' * (len(HASHED_COLUMNS) + 3))})"
)
_VALUE = "INSERT INTO vals (fact_id, field, json, salt) VALUES (?, ?, ?, ?)"
_PREFIX = {
    name: len(name).to_bytes(4, "big") + name.encode()
    for name in ("after", "args", "before", "calls", "result", "text", "why")
}


def _row(batch: Batch, position: int, time: int, fact: Fact) -> Row:
    found: dict[str, Any] = {
        "run_id": batch.run_id, "segment": batch.segment, "position": position, "recorded_us": time,
    }  # fmt: skip
    if batch.trace is not None:
        found["trace_id"], found["span_id"] = batch.trace.trace_id, batch.trace.span_id
    given: tuple[tuple[str, Any], ...]
    if isinstance(fact, Decided):
        found |= {
            "kind": "decision", "middleware": fact.middleware, "moment": fact.moment, "at": "tool",
            "iteration": fact.iteration, "outcome": fact.outcome, "changed": int(fact.changed),
            "answer": fact.answer, "version": fact.version, "tool_name": fact.tool_name,
            "tool_call_id": fact.call_id, "duration_us": fact.duration_us, "shadow": int(fact.shadow),
            "after_approval": int(fact.after_approval),
        }  # fmt: skip
        given = (("after", fact.after), ("before", fact.before), ("why", fact.why)) if fact.changed else ()
    elif isinstance(fact, ToolIntended):
        found |= {
            "kind": "tool.intended", "iteration": fact.iteration, "tool_call_id": fact.call_id,
            "tool_name": fact.tool_name,
        }  # fmt: skip
        given = (("args", fact.args),)
    elif isinstance(fact, ToolFinished):
        found |= {
            "kind": "tool.finished", "iteration": fact.iteration, "tool_call_id": fact.call_id,
            "tool_name": fact.tool_name, "duration_us": fact.duration_us,
            "extra": _encode({"failed": fact.failed}).decode(),
        }  # fmt: skip
        given = (("result", fact.result),)
    elif isinstance(fact, ModelReplied):
        extra = {
            "call_count": fact.call_count, "stop_reason": fact.stop_reason, "route": fact.route,
            "usage": fact.usage,
        }  # fmt: skip
        found |= {
            "kind": "model.replied", "iteration": fact.iteration, "duration_us": fact.duration_us,
            "extra": _encode(extra).decode(),
        }  # fmt: skip
        given = (("calls", fact.calls), ("text", fact.text))
    else:
        raise TypeError(type(fact))
    values: list[tuple[str, str, bytes]] = []
    if given:
        committed: dict[str, str] = {}
        for name, value in given:
            json, salt = _encode(value), os.urandom(16)
            values.append((name, json.decode(), salt))
            committed[name] = sha256(b"footprint:value:1\n" + salt + _PREFIX[name] + json).hexdigest()
        found["commitments"] = _encode(committed).decode()
    return tuple(map(found.get, HASHED_COLUMNS)), _sorted(found), values


class Handwritten:
    """One connection; `append` for a run that is alone, `put` for many at once."""

    def __init__(self, path: Path) -> None:
        self._connection = open_writer(path, durability="power", busy_timeout=5.0)
        self._heads: dict[str, bytes] = {}
        self._queue: list[tuple[str, list[Row], asyncio.Future[None]]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False

    def append(self, batch: Batch) -> None:
        """Commit one batch in the calling thread."""
        self._commit([(batch.run_id, [_row(batch, e.position, e.time, e.fact) for e in batch.entries])])

    async def put(self, batch: Batch) -> None:
        """Queue one batch for the thread, which commits what is queued at once and wakes the loop once."""
        rows = [_row(batch, e.position, e.time, e.fact) for e in batch.entries]
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._changed:
            self._queue.append((batch.run_id, rows, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, args=(asyncio.get_running_loop(),))
                self._thread.start()
            self._changed.notify()
        await done

    def close(self) -> None:
        """End the thread and close the file."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._connection.close()

    def _commit(self, batches: Sequence[tuple[str, list[Row]]]) -> None:
        connection, heads = self._connection, self._heads
        connection.execute("BEGIN IMMEDIATE")
        (row_id,) = connection.execute("SELECT ifnull(max(id), 0) FROM facts").fetchone()
        facts: list[tuple[Any, ...]] = []
        values: list[tuple[Any, ...]] = []
        for run_id, rows in batches:
            before = heads.get(run_id, bytes(32))
            for columns, document, given in rows:
                row_id += 1
                after = sha256(b"footprint:row:1\n" + before + document).digest()
                facts.append((row_id, *columns, before, after))
                values += [(row_id, *value) for value in given]
                before = after
            heads[run_id] = before
        connection.executemany(_FACT, facts)
        connection.executemany(_VALUE, values)
        connection.execute("COMMIT")

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    return
                taken, self._queue = self._queue, []
            self._commit([(run_id, rows) for run_id, rows, _ in taken])
            loop.call_soon_threadsafe(_wake, [done for _, _, done in taken])


def _wake(waiting: Sequence[asyncio.Future[None]]) -> None:
    for done in waiting:
        done.set_result(None)
