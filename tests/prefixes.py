"""A run as a process that died can have left it: cut off in memory, or as its file was behind a commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from footprint_core import Agent, Answer, Ledger, MemoryLedger, Outcome, Redactor, ToolMessage
from footprint_core.facts import Fact, RunConfigured
from footprint_core.ledger import Batch, Receipt
from footprint_core.providers import Scripted
from footprint_observe import Redaction, SqliteLedger


def cut(ledger: Ledger, run_id: str, length: int) -> MemoryLedger:
    """A ledger with the first so many entries of a run, and with the runs before it in its conversation."""
    shorter = MemoryLedger()
    follows = run_id
    while follows:
        segment, entries = 0, ledger.entries(follows)
        for entry in entries if follows != run_id else entries[:length]:
            segment += isinstance(entry.fact, RunConfigured)
            shorter.append_inline(Batch(run_id=follows, segment=segment, entries=(entry,)))
        opening = entries[0].fact
        assert isinstance(opening, RunConfigured)
        follows = opening.follows or ""
    return shorter


def cuts(ledger: Ledger, run_id: str) -> Iterator[tuple[tuple[Fact, ...], MemoryLedger]]:
    """The run cut off behind each of its entries but the last, and what is left of it."""
    facts = facts_of_run(ledger, run_id)
    for length in range(1, len(facts)):
        yield facts[:length], cut(ledger, run_id, length)


def facts_of_run(ledger: Ledger, run_id: str) -> tuple[Fact, ...]:
    """The facts of a run."""
    return tuple(entry.fact for entry in ledger.entries(run_id))


class Photographed(SqliteLedger):
    """A ledger in a file that keeps a copy of it as it was behind each commit."""

    def __init__(self, path: Path, *, redact: Redactor | None = None) -> None:
        super().__init__(path, redact=redact or Redaction.none(), durability="process")
        self.copies: list[Path] = []

    def append_inline(self, batch: Batch, /) -> Receipt | None:
        receipt = super().append_inline(batch)
        if receipt is not None:
            self._copy()
        return receipt

    async def append(self, batch: Batch, /) -> Receipt:
        receipt = await super().append(batch)
        self._copy()
        return receipt

    def _copy(self) -> None:
        copy = self.path.with_name(f"{len(self.copies)}.db")
        source, target = sqlite3.connect(self.path), sqlite3.connect(copy)
        try:
            source.backup(target)
        finally:
            source.close()
            target.close()
        self.copies.append(copy)


def told(fact: Fact) -> Any:
    """The kind of a fact, as a file calls it."""
    return type(fact).__struct_config__.tag


def cut_behind(ledger: Ledger, run_id: str, kind: type[Any], nth: int = 1) -> MemoryLedger:
    """A ledger in which the run ends with its nth fact of a kind."""
    places = [i for i, fact in enumerate(facts_of_run(ledger, run_id), 1) if isinstance(fact, kind)]
    return cut(ledger, run_id, places[nth - 1])


async def answered_by(agent: Agent, answer: Any) -> Answer:
    """The answer of a turn whose questions are all answered with this."""
    out: Outcome = await agent.run("go", identity={"user": "ada"})
    while not isinstance(out, Answer):
        out = await agent.resume(out.checkpoint, answer)
    return out


def read(model: Scripted, request: int = -1) -> list[str]:
    """What the model read of its calls."""
    return [one.text for one in model.requests[request].messages if isinstance(one, ToolMessage)]
