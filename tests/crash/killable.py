"""The process that is killed: `python -m crash.killable DB NOTES ORDER`, the order as JSON.

Its ledger says what is about to be appended and what was acknowledged, and a trap ends the process at the
n-th passage of one seam. A seam is `before:KIND` or `after:KIND` of an append that holds a fact of that kind,
`in:body` or `end:body`; the kind `any` stands for every append.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from crash.desk import MESSAGE, Notes, Passes, agent_of, answer_about, fingerprint, to_the_end
from footprint_core import Agent
from footprint_core.errors import FootprintError, LedgerError
from footprint_core.facts import MessageTaken
from footprint_core.ledger import Batch, Entry, Receipt
from footprint_observe import KeyRing, Redaction, SqliteLedger
from footprint_observe.store import append


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a process is to do, and where it is to die.

    Attributes:
        mode: `run`, `resume` or `recover`.
        runs: How many conversations at once.
        seam: Where it is killed; empty for nowhere.
        when: At which passage, from 1.
        durability: Of its ledger.
        together: Whether calls of one reply run at the same time.
        short: Whether only the first two replies are played.
        behind: How many more conversations it holds behind the first, whatever became of that.
        filled: Whether its log is nearly full when it begins.
        keyed: Whether its ledger has keys, and keeps the bodies of pauses.
        run_id: The run to recover.
        seconds: How long it holds one conversation after another.
        waits: Whether it says on its standard output that it is ready, and waits for a line.
        limit: The most bytes a file of it may have; 0 for no limit.
        end: What it does in the end: `close` the ledger, or `die`.
    """

    mode: str = "run"
    runs: int = 1
    seam: str = ""
    when: int = 1
    durability: str = "process"
    together: bool = False
    short: bool = False
    behind: int = 0
    filled: bool = False
    keyed: bool = False
    run_id: str = ""
    seconds: float = 0.0
    waits: bool = False
    limit: int = 0
    end: str = "close"


class Trap:
    """Kills the process at the n-th passage of a seam."""

    def __init__(self, order: Order, notes: Notes) -> None:
        self._order = order
        self._left = order.when
        self._notes = notes
        self._lock = threading.Lock()

    def passes(self, seam: str) -> None:
        with self._lock:
            if seam != self._order.seam:
                return
            self._left -= 1
            if not self._left:
                self._notes.say("killed", by=seam)
                os.kill(os.getpid(), signal.SIGKILL)


class Noted(SqliteLedger):
    """A ledger file that says what is appended and what was acknowledged."""

    notes: Notes
    passes: Passes

    def _begins(self, batch: Batch) -> tuple[str, ...]:
        entries = batch.entries
        kinds = tuple(dict.fromkeys(str(entry.fact.__struct_config__.tag) for entry in entries))
        first, last = entries[0].position, entries[-1].position
        self.notes.say("begins", run=batch.run_id, first=first, last=last, kinds=kinds)
        for kind in ("any", *kinds):
            self.passes(f"before:{kind}")
        return kinds

    def _kept(self, batch: Batch, receipt: Receipt, kinds: tuple[str, ...]) -> Receipt:
        prints = {entry.position: fingerprint(entry) for entry in receipt.entries}
        self.notes.say("kept", run=batch.run_id, prints=prints)
        for kind in ("any", *kinds):
            self.passes(f"after:{kind}")
        return receipt

    def _refused(self, batch: Batch, error: LedgerError) -> None:
        first, last = batch.entries[0].position, batch.entries[-1].position
        said = {"error": type(error).__name__, "text": str(error)}
        self.notes.say("refused", run=batch.run_id, first=first, last=last, **said)

    def append_inline(self, batch: Batch, /) -> Receipt | None:
        kinds = self._begins(batch)
        try:
            receipt = super().append_inline(batch)
        except LedgerError as error:
            self._refused(batch, error)
            raise
        if receipt is None:
            self.notes.say("queued", run=batch.run_id)
            return None
        return self._kept(batch, receipt, kinds)

    async def append(self, batch: Batch, /) -> Receipt:
        kinds = self._begins(batch)
        try:
            receipt = await super().append(batch)
        except LedgerError as error:
            self._refused(batch, error)
            raise
        return self._kept(batch, receipt, kinds)


def open_noted(
    path: Path, notes: Notes, passes: Passes, *, durability: Any = "process", keyed: bool = True
) -> Noted:
    """The ledger file at a path; it keeps every value, so that values can be compared."""
    keys = KeyRing.of({"first": bytes(range(32))}) if keyed else None
    ledger = Noted(path, redact=Redaction.none(), durability=durability, keys=keys)
    ledger.notes, ledger.passes = notes, passes
    return ledger


# Of the thousand pages at which SQLite moves the log into the file.
_NEARLY_FULL = 930 * 4096

# strace makes appends slow, and which thread makes a call must not depend on that.
append.SLOW_SECONDS = 3600.0


async def _play(order: Order, path: Path, notes: Notes) -> None:
    trap = Trap(order, notes)
    if order.limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order.limit, order.limit))
    try:
        ledger = open_noted(path, notes, trap.passes, durability=order.durability, keyed=order.keyed)
    except LedgerError as error:
        notes.say("not opened", error=type(error).__name__, text=str(error))
        return
    if order.filled:
        _fill(ledger)
    notes.say("opened")
    trap.passes("opened")
    if order.waits:
        print("ready", flush=True)
        sys.stdin.readline()
    agent = agent_of(ledger, notes, trap.passes, together=order.together, short=order.short)
    until = time.monotonic() + order.seconds
    await asyncio.gather(*(_conversations(order, agent, notes, until) for _ in range(order.runs)))
    notes.say("played")
    if order.end == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        await ledger.close()
    except LedgerError as error:
        notes.say("not closed", error=type(error).__name__, text=str(error))
    notes.say("closed")


def _fill(ledger: SqliteLedger) -> None:
    fact = MessageTaken(turn_index=0, message_chars=_NEARLY_FULL, text="x" * _NEARLY_FULL)
    batch = Batch(run_id="filler", segment=1, entries=(Entry(position=1, time=1, fact=fact),))
    assert SqliteLedger.append_inline(ledger, batch) is not None


async def _conversations(order: Order, agent: Agent, notes: Notes, until: float) -> None:
    number = 0
    while number <= order.behind or time.monotonic() < until:
        number += 1
        try:
            await _conversation(order, agent.session(), notes)
        except FootprintError as error:
            of_the_ledger = isinstance(error, LedgerError)
            notes.say("failed", error=type(error).__name__, text=str(error), of_the_ledger=of_the_ledger)


async def _conversation(order: Order, session: Any, notes: Notes) -> None:
    if order.mode == "recover":
        out = await session.recover(order.run_id)
    elif order.mode == "resume":
        handed = notes.of("handed")[-1]["checkpoint"]
        out = await session.resume(handed, answer_about(handed["call"]["tool_name"]))
    else:
        out = await session.run(MESSAGE)
    await to_the_end(session, out, notes)


if __name__ == "__main__":
    asyncio.run(
        _play(msgspec.json.decode(sys.argv[3], type=Order), Path(sys.argv[1]), Notes(Path(sys.argv[2])))
    )
