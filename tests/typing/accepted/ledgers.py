"""A ledger of one's own: the port's methods, and nothing to inherit from. And a redactor."""

from __future__ import annotations

import asyncio

import msgspec

from footprint_core import Agent, Answer, Batch, Decision, Entry, Ledger, MemoryLedger, Receipt, Redactor
from footprint_core.facts import Fact, MessageTaken
from footprint_core.ledger import KeptPause, Marks, PauseStanding, RunStanding
from footprint_core.providers import Scripted, reply


class Counted:
    """Counts what another ledger takes."""

    def __init__(self, inner: Ledger) -> None:
        self.appended = 0
        self._inner = inner

    def append_inline(self, batch: Batch) -> Receipt | None:
        receipt = self._inner.append_inline(batch)
        if receipt is not None:
            self.appended += len(receipt.entries)
        return receipt

    async def append(self, batch: Batch, /) -> Receipt:
        receipt = await self._inner.append(batch)
        self.appended += len(receipt.entries)
        return receipt

    async def pause_standing(self, run_id: str, pause_id: str, /) -> PauseStanding | None:
        return await self._inner.pause_standing(run_id, pause_id)

    async def kept_pause(self, pause_id: str, /) -> KeptPause | None:
        return await self._inner.kept_pause(pause_id)

    async def run_standing(self, run_id: str, /) -> RunStanding | None:
        return await self._inner.run_standing(run_id)

    def entries(self, run_id: str, /) -> tuple[Entry, ...]:
        return self._inner.entries(run_id)

    def decisions(self, run_id: str, /) -> tuple[Decision, ...]:
        return self._inner.decisions(run_id)

    async def close(self) -> None:
        await self._inner.close()


class NoMessages:
    """Keeps no message."""

    def redact(self, fact: Fact) -> tuple[Fact, Marks]:
        if not isinstance(fact, MessageTaken):
            return fact, ()
        return msgspec.structs.replace(fact, text="[gone]"), (("text", "mask"),)


redactor: Redactor = NoMessages()


async def main() -> None:
    ledger = Counted(MemoryLedger())
    builder = Agent.create(provider=Scripted([reply(text="Hi.")]), model="m", name="counted")
    async with builder.ledger(ledger).build() as agent:
        assert isinstance(await agent.run("Hi"), Answer)
    assert ledger.appended > 3
    taken = MessageTaken(turn_index=0, message_chars=2, text="Hi")
    assert redactor.redact(taken)[1] == (("text", "mask"),)


if __name__ == "__main__":
    asyncio.run(main())
