"""What a server does without: a model, and a ledger when none is given."""

from __future__ import annotations

from collections.abc import AsyncIterator

from footprint_core.decisions import Decision
from footprint_core.errors import RunError
from footprint_core.ledger import Batch, Entry, KeptPause, PauseStanding, Receipt, RunStanding
from footprint_core.providers.port import Chunk, Completed, ModelRequest


class NoModel:
    """Stands where an agent has its model: only clients ask for calls."""

    name = "mcp"

    def reply(self, _request: ModelRequest, /) -> AsyncIterator[Chunk | Completed]:
        """Refuse: a served call asks no model."""
        raise RunError("A served call asks no model; give an agent a provider instead.")


class NoLedger:
    """Keeps nothing, so that a server without a ledger can run for ever."""

    def append_inline(self, batch: Batch, /) -> Receipt:
        """The batch, as if it were kept."""
        return Receipt(entries=batch.entries, marks={})

    async def append(self, batch: Batch, /) -> Receipt:
        """The batch, as if it were kept."""
        return self.append_inline(batch)

    async def pause_standing(self, run_id: str, pause_id: str, /) -> PauseStanding | None:
        """There are no pauses."""

    async def kept_pause(self, _pause_id: str, /) -> KeptPause | None:
        """There are no pauses."""

    async def run_standing(self, run_id: str, /) -> RunStanding | None:
        """There are no runs."""

    def entries(self, _run_id: str, /) -> tuple[Entry, ...]:
        """No entries."""
        return ()

    def decisions(self, _run_id: str, /) -> tuple[Decision, ...]:
        """No rows."""
        return ()

    async def close(self) -> None:
        """Nothing to give back."""
