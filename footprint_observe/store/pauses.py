"""The bodies of open pauses: kept only sealed, and gone in the transaction that ends their pause.

A body is the checkpoint without its rows, AES-256-GCM under a key of the ledger's ring, bound to its run and
its pause. Without keys none is written, in any form. What ends a pause deletes its body; `secure_delete` puts
zeros over it in the file, and what is left of it in the log is ciphertext, until the log is written over.
"""

from __future__ import annotations

import sqlite3

import msgspec

from footprint_core import plain
from footprint_core.errors import KeyRingError
from footprint_core.ledger import Batch, KeptPause, ended_pauses
from footprint_core.plain import Json
from footprint_observe.keyring import KeyRing, Sealed
from footprint_observe.store.read import fetched

_PURPOSE = "pause"
_INSERT = "INSERT INTO pause_bodies (pause_id, run_id, key_id, nonce, body) VALUES (?, ?, ?, ?, ?)"
_DELETE = "DELETE FROM pause_bodies WHERE pause_id = ? AND run_id = ?"
_DELETE_ALL = "DELETE FROM pause_bodies WHERE run_id = ?"
_KEPT = """
SELECT p.run_id, b.key_id, b.nonce, b.body
FROM facts AS p LEFT JOIN pause_bodies AS b ON b.pause_id = p.pause_id AND b.run_id = p.run_id
WHERE p.kind = 'pause.opened' AND p.pause_id = :pause ORDER BY p.id LIMIT 1
"""


class Bodies(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch does to the bodies of its run's pauses.

    Attributes:
        opened: The pause it opens and its sealed body, or None.
        ended: The pauses it ends; None in it stands for all of the run.
    """

    opened: tuple[str, Sealed] | None
    ended: tuple[str | None, ...]


def bodies_of(batch: Batch, keys: KeyRing | None) -> Bodies | None:
    """What a batch does to bodies, sealed before any lock is taken; None when it does nothing."""
    pause = batch.pause
    opened = None
    if pause is not None and keys is not None:
        about = _about(batch.run_id, pause.pause_id)
        opened = (pause.pause_id, keys.seal(plain.encode(pause.checkpoint), purpose=_PURPOSE, about=about))
    ended = ended_pauses(batch)
    return Bodies(opened=opened, ended=ended) if opened is not None or ended else None


def write(connection: sqlite3.Connection, run_id: str, bodies: Bodies) -> None:
    """Do to the bodies what a batch does, behind its rows and in their transaction."""
    for pause_id in bodies.ended:
        if pause_id is None:
            connection.execute(_DELETE_ALL, (run_id,))
        else:
            connection.execute(_DELETE, (pause_id, run_id))
    if bodies.opened is not None:
        pause_id, sealed = bodies.opened
        connection.execute(_INSERT, (pause_id, run_id, sealed.key_id, sealed.nonce, sealed.body))


def kept_pause(connection: sqlite3.Connection, pause_id: str, keys: KeyRing | None) -> KeptPause | None:
    """A pause by its id, with its body when one is there; None when the file does not have it.

    Raises:
        KeyRingError: A body is there, and the keys do not open it.
        LedgerReadError: The database is damaged.
    """
    row = next(iter(fetched(connection, _KEPT, {"pause": pause_id})), None)
    if row is None:
        return None
    run_id, key_id, nonce, body = row
    if key_id is None:
        return KeptPause(run_id=run_id, checkpoint=None)
    sealed = Sealed(key_id=key_id, nonce=nonce, body=body)
    return KeptPause(run_id=run_id, checkpoint=open_body(run_id, pause_id, sealed, keys))


def open_body(run_id: str, pause_id: str, sealed: Sealed, keys: KeyRing | None) -> dict[str, Json]:
    """The body of a pause.

    Raises:
        KeyRingError: The keys do not open it, or there are none.
    """
    if keys is None:
        raise KeyRingError(
            f"This pause is sealed under the key {sealed.key_id!r}, and the ledger was opened without keys; "
            "give it that key, or pass the checkpoint the pause gave.",
            key_id=sealed.key_id,
        )
    opened = plain.decode(keys.open(sealed, purpose=_PURPOSE, about=_about(run_id, pause_id)))
    if not plain.is_object(opened):
        raise KeyRingError(
            f"What is sealed under the key {sealed.key_id!r} is no body of a pause; pass the checkpoint the "
            "pause gave.",
            key_id=sealed.key_id,
        )
    return opened


def _about(run_id: str, pause_id: str) -> bytes:
    return plain.encode([run_id, pause_id])
