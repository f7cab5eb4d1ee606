"""Plays every planted conversation into a file: `python -m crash.planted_child DB POLICY KEYED`.

Behind them it opens a question that stays open, says "open", and waits for a line before it closes the file.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from footprint_core import before_tool
from footprint_observe import Detector, KeyRing, Redaction, SqliteLedger
from footprint_observe.redaction.rules import Rule
from planted import ANSWER, SECRETS, WHO, WORD, World, act, asks, pays, said
from planted_stories import all_of_them

KEYS = KeyRing.of({"first": bytes(range(32))})
_DETECTOR = Detector(name="word", pattern=f"(?i){WORD}")
POLICIES = {
    "none": Redaction.none(),
    "a detector": Redaction.of(detectors=[_DETECTOR]),
    "every field": Redaction.of(fields=["**"]),
    "pseudonyms": Redaction.of(rules=[Rule(detector=_DETECTOR, strategy="pseudonym")], keys=KEYS),
    "seals": Redaction.of(rules=[Rule(detector=_DETECTOR, strategy="seal")], keys=KEYS),
    "dropped fields": Redaction.of(rules=[Rule(path="**", strategy="drop")]),
}


async def _play(path: str, policy: str, keyed: str) -> None:
    keys = KEYS if keyed == "keyed" else None
    ledger = SqliteLedger(path, redact=POLICIES[policy], durability="process", keys=keys)
    world = World(ledger=ledger)
    await all_of_them(world)
    rules: Any = act(before_tool=[before_tool("asks")(asks)])
    agent = world.builder([pays(1), ANSWER]).credentials(SECRETS).act(**rules).build()
    await agent.run(said("open question"), identity=WHO)
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await ledger.close()


if __name__ == "__main__":
    asyncio.run(_play(*sys.argv[1:]))
