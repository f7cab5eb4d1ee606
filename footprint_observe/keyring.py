"""The keys of a deployment: what is sealed under them only they open, and nothing of ours prints them.

Every key is taken for one purpose only: HKDF-SHA256 (RFC 5869) derives it from a secret and the purpose's
name, so what was sealed for one cannot be opened for another. Nonces are random, 96 bits: after 2**32 sealed
values under one secret and purpose (NIST SP 800-38D, 8.3) put a new secret in front.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Never, cast, final

import msgspec

from footprint_core.errors import KeyRingError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_LEAST_BYTES = 32
_KEY_BYTES = 32
_NONCE_BYTES = 12
_LARGEST_FILE = 1 << 16
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_OPEN_TO_OTHERS = stat.S_IRGRP | stat.S_IROTH | stat.S_IWGRP | stat.S_IWOTH


class Sealed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was sealed.

    Attributes:
        key_id: The secret it was sealed under.
        nonce: 12 random bytes.
        body: The ciphertext and its 16 bytes of tag.
    """

    key_id: str
    nonce: bytes
    body: bytes


@final
class KeyRing:
    """Secrets by their ids. The first is the current one; the others only open what they sealed.

    It cannot be changed, pickled or copied, and shows its ids alone. Two rings of the same ids and secrets
    in the same order are equal.
    """

    __slots__ = ("_ciphers", "_current", "_derived", "_secrets")

    _secrets: dict[str, bytes]
    _current: str
    _derived: dict[tuple[str, str], bytes]
    _ciphers: dict[tuple[str, str], AESGCM]

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        hold = object.__setattr__
        hold(self, "_secrets", dict(_checked(keys)))
        hold(self, "_current", next(iter(self._secrets)))
        # One entry for every secret and purpose, and purposes are few.
        hold(self, "_derived", {})
        hold(self, "_ciphers", {})

    @classmethod
    def of(cls, keys: Mapping[str, bytes]) -> KeyRing:
        """A ring of secrets of 32 bytes and more, by id; the first id is the current one.

        Raises:
            KeyRingError: There is none, an id is no short text of letters, digits, `.`, `_` and `-`, or a
                secret is too short.
        """
        return cls(keys)

    @classmethod
    def from_env(cls, variable: str = "FOOTPRINT_KEYS") -> KeyRing:
        """The ring an environment variable holds: `id:base64,id2:base64`.

        Raises:
            KeyRingError: It is not set, or not of that form.
        """
        text = os.environ.get(variable)
        if not text:
            raise KeyRingError(
                f"The environment variable {variable} is not set; set it to 'id:base64' of 32 random bytes."
            )
        return cls(_read(text.split(","), f"The environment variable {variable}"))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> KeyRing:
        """The ring a file holds: a line `id:base64` for each secret; `#` begins a comment.

        Raises:
            KeyRingError: It cannot be read, others can read or write it, it is larger than 64 KiB, or it is
                not of that form.
        """
        return cls(_read(_lines(Path(path)), f"The key file {path}"))

    @property
    def current(self) -> str:
        """The id of the secret that seals."""
        return self._current

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all secrets, the current one first."""
        return tuple(self._secrets)

    def seal(self, plain: bytes, *, purpose: str, about: bytes) -> Sealed:
        """Encrypt and authenticate with AES-256-GCM under the current secret.

        Args:
            plain: What is sealed.
            purpose: What the key is derived for, `pause` for example.
            about: What is authenticated with it and must be the same when it is opened.
        """
        nonce = os.urandom(_NONCE_BYTES)
        body = self._cipher(self._current, purpose).encrypt(nonce, plain, about)
        return Sealed(key_id=self._current, nonce=nonce, body=body)

    def open(self, sealed: Sealed, *, purpose: str, about: bytes) -> bytes:
        """What was sealed.

        Raises:
            KeyRingError: The ring lacks the secret, or has another of that id, or what was sealed was
                damaged, moved or sealed for another purpose.
        """
        from cryptography.exceptions import InvalidTag

        if sealed.key_id not in self._secrets:
            raise KeyRingError(
                f"The key ring has no key {sealed.key_id!r}, only {', '.join(self._secrets)}; add the one "
                "this was sealed under.",
                key_id=sealed.key_id,
            )
        try:
            return self._cipher(sealed.key_id, purpose).decrypt(sealed.nonce, sealed.body, about)
        except (InvalidTag, ValueError):
            # A nonce of another length is damage too; its error would be the context of ours.
            pass
        raise KeyRingError(
            f"The key {sealed.key_id!r} does not open this: the ring has another secret of that id, or what "
            "was sealed was damaged or moved; look for the secret first.",
            key_id=sealed.key_id,
        )

    def mac(self, data: bytes, *, purpose: str) -> bytes:
        """HMAC-SHA256 under a key derived from the current secret, 32 bytes."""
        return hmac.digest(self._key(self._current, purpose), data, "sha256")

    def _cipher(self, key_id: str, purpose: str) -> AESGCM:
        cipher = self._ciphers.get((key_id, purpose))
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            cipher = self._ciphers[key_id, purpose] = AESGCM(self._key(key_id, purpose))
        return cipher

    def _key(self, key_id: str, purpose: str) -> bytes:
        key = self._derived.get((key_id, purpose))
        if key is None:
            from cryptography.hazmat.primitives.hashes import SHA256
            from cryptography.hazmat.primitives.kdf.hkdf import HKDF

            hkdf = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=purpose.encode())
            key = self._derived[key_id, purpose] = hkdf.derive(self._secrets[key_id])
        return key

    def __setattr__(self, name: str, value: object, /) -> Never:
        raise AttributeError(f"A key ring cannot be changed, so {name} cannot be set; make another.")

    def __delattr__(self, name: str, /) -> Never:
        raise AttributeError(f"A key ring cannot be changed, so {name} stays; make another.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyRing):
            return NotImplemented
        return self.ids == other.ids and all(
            hmac.compare_digest(mine, theirs)
            for mine, theirs in zip(self._secrets.values(), other._secrets.values(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(self.ids)

    def __repr__(self) -> str:
        return f"KeyRing(ids={self.ids})"

    def __reduce_ex__(self, protocol: object, /) -> Never:
        raise KeyRingError(
            "A key ring is not pickled or copied, since its secrets would go with it; make it anew where it "
            "is needed."
        )


def _checked(keys: object) -> Iterable[tuple[str, bytes]]:
    if not isinstance(keys, Mapping) or not keys:
        raise KeyRingError("A key ring takes a mapping of ids to secrets, at least one; give it one.")
    for key_id, secret in cast("Mapping[object, object]", keys).items():
        if not isinstance(key_id, str) or not _ID.fullmatch(key_id):
            raise KeyRingError(
                "An id in a key ring is 1 to 64 letters, digits, '.', '_' and '-'; rename the other."
            )
        if not isinstance(secret, bytes) or len(secret) < _LEAST_BYTES:
            raise KeyRingError(
                f"The secret of the key {key_id!r} is not {_LEAST_BYTES} bytes or more; take "
                f"os.urandom({_LEAST_BYTES}).",
                key_id=key_id,
            )
        yield key_id, secret


def _lines(path: Path) -> list[str]:
    """The lines of a key file that hold a key."""
    text: str | None = None
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & _OPEN_TO_OTHERS:
                raise KeyRingError(f"The key file {path} can be read or written by others; chmod 600 it.")
            data = file.read(_LARGEST_FILE + 1)
            if len(data) > _LARGEST_FILE:
                raise KeyRingError(f"The key file {path} is larger than 64 KiB; name a file of keys alone.")
            text = data.decode()
    except OSError as error:
        failure = error.strerror or type(error).__name__
    except UnicodeDecodeError:
        failure = "it is no text"
    except ValueError:
        failure = "no file can have that name"
    else:
        return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    raise KeyRingError(f"The key file {path} cannot be read ({failure}); name another.")


def _read(entries: Iterable[str], what: str) -> dict[str, bytes]:
    keys: dict[str, bytes] = {}
    for number, entry in enumerate(entries, 1):
        key_id, colon, encoded = entry.strip().partition(":")
        secret = _decoded(encoded)
        # The entry itself is not quoted: a colon forgotten makes the secret part of the id.
        if not colon or secret is None:
            raise KeyRingError(f"{what} is not of the form id:base64 at its entry {number}; mend it.")
        if key_id in keys:
            raise KeyRingError(f"{what} has two keys of one id, the second at entry {number}; rename one.")
        keys[key_id] = secret
    return keys


def _decoded(encoded: str) -> bytes | None:
    try:
        return base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
