"""The checkpoint of a pause that is answered by its id alone, made of what the ledger kept.

The salt and the digest are not part of what is kept with the body: the ledger has them among its values,
where they can be erased, and the body has to fit them. Signed is the digest under its salt, which covers
the body; so an agent with a key takes only what an agent with that key paused, whoever can write the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from footprint_core import plain
from footprint_core.errors import ForeignCheckpointError, UnknownPauseError
from footprint_core.ledger import Ledger
from footprint_core.pause.checkpoint import signature, signed_with
from footprint_core.pause.restore import taken_before
from footprint_core.plain import Json

_ELSEWHERE = frozenset({"rows", "salt", "digest"})


def body_of(checkpoint: Mapping[str, Any], key: bytes | None) -> dict[str, Any]:
    """What a ledger may keep of a checkpoint.

    Args:
        checkpoint: With its salt and digest.
        key: What checkpoints are signed with, or None.
    """
    body = {name: value for name, value in checkpoint.items() if name not in _ELSEWHERE}
    body["signature"] = None if key is None else signature(key, _seal(checkpoint))
    return body


async def kept_checkpoint(ledger: Ledger, pause_id: str, key: bytes | None) -> dict[str, Json]:
    """The checkpoint a pause gave, made of its body and of what the ledger has of its run.

    Args:
        ledger: The ledger it was opened in.
        pause_id: The pause.
        key: What checkpoints are signed with, or None.

    Raises:
        UnknownPauseError: The ledger does not know the pause, or keeps no body of it.
        StaleDecisionError: It was answered before.
        ForeignCheckpointError: Its digest was erased, or it is not signed with the key.
        KeyRingError: The ledger's keys do not open its body.
    """
    kept = await ledger.kept_pause(pause_id)
    standing = None if kept is None else await ledger.pause_standing(kept.run_id, pause_id)
    if kept is None or standing is None:
        raise UnknownPauseError(
            "This ledger has no pause of that id; resume on the ledger it was opened in, or pass the "
            "checkpoint the pause gave."
        )
    if standing.answered:
        raise taken_before()
    if kept.checkpoint is None:
        raise UnknownPauseError(
            "The ledger keeps no body of this pause, for it had no keys when the pause was opened, or the "
            "pause came from another ledger; pass the checkpoint the pause gave."
        )
    if standing.salt is None or standing.digest is None:
        raise ForeignCheckpointError(
            "The digest of this pause was erased, so nothing tells what the person was asked; ask again."
        )
    body = {**kept.checkpoint, "salt": standing.salt, "digest": standing.digest}
    if key is not None and not signed_with(key, _seal(body), body.get("signature")):
        raise ForeignCheckpointError(
            "The pause was not opened by an agent with this agent's key; resume it on one with its key."
        )
    rows = [msgspec.to_builtins(row) for row in ledger.decisions(kept.run_id)]
    # Through JSON at once, like the one that was handed out when the run paused.
    whole: dict[str, Json] = {**body, "rows": plain.decode(plain.encode(rows))}
    return {**whole, "signature": None if key is None else signature(key, whole)}


def _seal(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    return {"salt": checkpoint["salt"], "digest": checkpoint["digest"]}
