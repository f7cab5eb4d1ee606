"""What takes the place of a value: a mask, its end, a pseudonym or a seal."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Literal, TypeAlias, assert_never

import msgspec

from footprint_core import plain
from footprint_core.errors import KeyRingError
from footprint_core.ledger import REDACTED
from footprint_core.plain import Json
from footprint_observe.keyring import KeyRing, Sealed

Replacing: TypeAlias = Literal["mask", "drop", "partial", "pseudonym", "seal"]
"""The strategies after which something else stands there."""

SEALED = re.compile(r"sealed:([A-Za-z0-9._-]{1,64}):([A-Za-z0-9_-]{38,})")
"""A sealed value: the id of its key, then nonce, ciphertext and tag in base64url."""

_PSEUDONYM = re.compile(r"pseudonym:([A-Za-z0-9._-]{1,64}):([A-Za-z0-9_-]{28})")
_LAST = 4
_SHORTEST_PARTIAL = 8
_NONCE_BYTES = 12
_TOKEN_BYTES = 21


def replaced(value: Json, strategy: Replacing, place: bytes, keys: KeyRing | None) -> str:
    """What takes the place of a value.

    A text that looks like a pseudonym or a seal is a value like any other: a model can have read it in
    another row and copied it.

    Args:
        value: The value, any JSON.
        strategy: What is done.
        place: What a seal is bound to, see `place_of`.
        keys: The keys of the policy.

    Raises:
        KeyRingError: There are no keys.
    """
    match strategy:
        case "mask" | "drop":
            return REDACTED
        case "partial":
            return _partial(value)
        case "pseudonym":
            return _pseudonym(value, _given(keys))
        case "seal":
            return _seal(value, place, _given(keys))
        case _:
            assert_never(strategy)


def place_of(kind: str, path: str) -> bytes:
    """What a sealed value is bound to: the kind of its row and its path there, and not the row itself.

    A policy that does not seal at that place keeps a sealed text a model copied there as it is, and it opens.
    """
    return msgspec.json.encode((kind, path))


def looks_replaced(text: str) -> bool:
    """Whether a text has the form of a pseudonym or a seal; whose it is, that does not say."""
    return SEALED.fullmatch(text) is not None or _PSEUDONYM.fullmatch(text) is not None


def opened(text: str, place: bytes, keys: KeyRing) -> Json:
    """The value of a sealed text.

    Raises:
        KeyRingError: The keys do not open it, or it was moved to another place or damaged.
    """
    found = SEALED.fullmatch(text)
    sealed = None if found is None else _sealed(found)
    if sealed is None:
        raise KeyRingError("That is no sealed value; it was damaged, or is none.")
    return plain.decode(keys.open(sealed, purpose="seal", about=place))


def _given(keys: KeyRing | None) -> KeyRing:
    if keys is None:
        raise KeyRingError("A pseudonym or a seal needs keys; give the policy some.")
    return keys


def _partial(value: Json) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return REDACTED
    text = plain.rendered(value)
    if text.startswith(REDACTED) and len(text) <= len(REDACTED) + _LAST:
        return text
    return REDACTED + text[-_LAST:] if len(text) >= _SHORTEST_PARTIAL else REDACTED


def _pseudonym(value: Json, keys: KeyRing) -> str:
    token = keys.mac(b"of" + plain.canonical(value), purpose="pseudonym")[:_TOKEN_BYTES]
    return f"pseudonym:{keys.current}:{base64.urlsafe_b64encode(token).decode()}"


def _seal(value: Json, place: bytes, keys: KeyRing) -> str:
    sealed = keys.seal(plain.encode(value), purpose="seal", about=place)
    letters = base64.urlsafe_b64encode(sealed.nonce + sealed.body).decode().rstrip("=")
    return f"sealed:{sealed.key_id}:{letters}"


def _sealed(found: re.Match[str]) -> Sealed | None:
    try:
        data = base64.urlsafe_b64decode(found[2] + "=" * (-len(found[2]) % 4))
    except (binascii.Error, ValueError):
        return None
    return Sealed(key_id=found[1], nonce=data[:_NONCE_BYTES], body=data[_NONCE_BYTES:])
