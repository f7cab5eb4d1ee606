"""The key ring: what it seals only it opens, and it shows its secrets to nobody."""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from footprint_core import KeyRingError
from footprint_observe import KeyRing
from footprint_observe.keyring import Sealed

A, B = b"A" * 32, b"B" * 48
RING = KeyRing.of({"a": A, "b": B})


def text(secret: bytes) -> str:
    return base64.b64encode(secret).decode()


def hkdf(secret: bytes, purpose: str) -> bytes:
    """RFC 5869 with SHA-256, no salt, one block."""
    extracted = hmac.digest(b"\0" * 32, secret, "sha256")
    return hmac.digest(extracted, purpose.encode() + b"\1", "sha256")


def written(path: Path, lines: str, mode: int = 0o600) -> Path:
    path.write_text(lines)
    path.chmod(mode)
    return path


def test_what_was_sealed_is_opened_by_the_key_it_names() -> None:
    sealed = RING.seal(b"4111", purpose="seal", about=b"args.card")
    assert sealed.key_id == RING.current == "a"
    assert b"4111" not in sealed.body
    assert RING.open(sealed, purpose="seal", about=b"args.card") == b"4111"


def test_two_seals_of_one_value_share_nothing() -> None:
    one, two = (RING.seal(b"4111", purpose="seal", about=b"") for _ in range(2))
    assert one.nonce != two.nonce
    assert one.body != two.body


def test_a_key_that_is_not_current_any_more_still_opens() -> None:
    sealed = KeyRing.of({"b": B}).seal(b"x", purpose="seal", about=b"")
    assert RING.open(sealed, purpose="seal", about=b"") == b"x"


def test_an_unknown_key_is_refused_by_its_name() -> None:
    sealed = KeyRing.of({"old": A}).seal(b"x", purpose="seal", about=b"")
    with pytest.raises(KeyRingError, match=r"no key 'old', only a, b;") as raised:
        RING.open(sealed, purpose="seal", about=b"")
    assert raised.value.key_id == "old"


def opened(sealed: Sealed, *, purpose: str = "seal", about: bytes = b"here", by: KeyRing = RING) -> bytes:
    return by.open(sealed, purpose=purpose, about=about)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda one: opened(one, by=KeyRing.of({"a": b"C" * 32})),
        lambda one: opened(one, about=b"there"),
        lambda one: opened(one, purpose="pause"),
        lambda one: opened(msgspec.structs.replace(one, body=one.body[:-1] + bytes([one.body[-1] ^ 1]))),
        lambda one: opened(msgspec.structs.replace(one, body=one.body[:5])),
        lambda one: opened(msgspec.structs.replace(one, body=b"")),
        lambda one: opened(msgspec.structs.replace(one, nonce=bytes(12))),
        lambda one: opened(msgspec.structs.replace(one, nonce=b"")),
        lambda one: opened(msgspec.structs.replace(one, key_id="b")),
    ],
    ids=["secret", "about", "purpose", "bit", "short", "empty", "nonce", "no nonce", "id"],
)
def test_another_secret_a_damaged_body_and_another_place_are_refused_by_the_name_of_the_key(
    attempt: Callable[[Sealed], bytes],
) -> None:
    sealed = RING.seal(b"a planted value", purpose="seal", about=b"here")
    with pytest.raises(KeyRingError, match=r"The key '[ab]' does not open this") as raised:
        attempt(sealed)
    assert raised.value.key_id in {"a", "b"}
    assert raised.value.__context__ is None
    assert "planted" not in "".join(traceback.format_exception(raised.value))


def test_keys_are_derived_for_their_purpose_as_rfc_5869_says() -> None:
    expected = hmac.new(hkdf(A, "pseudonym"), b"dana", hashlib.sha256).digest()
    assert RING.mac(b"dana", purpose="pseudonym") == expected
    assert RING.mac(b"dana", purpose="other") != expected


def test_a_mac_is_made_under_the_current_secret() -> None:
    assert RING.mac(b"x", purpose="p") == KeyRing.of({"z": A}).mac(b"x", purpose="p")
    assert RING.mac(b"x", purpose="p") != KeyRing.of({"a": B}).mac(b"x", purpose="p")


def test_a_ring_shows_its_ids_and_no_secret() -> None:
    for shown in (repr(RING), str(RING), f"{RING}", f"{RING!r}", repr([RING])):
        assert "'a', 'b'" in shown
        assert "AAAA" not in shown
        assert text(A) not in shown
    assert RING.ids == ("a", "b")
    assert not hasattr(RING, "__dict__")


@pytest.mark.parametrize("away", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_ring_is_not_pickled_and_not_copied(away: Callable[[Any], Any]) -> None:
    with pytest.raises(KeyRingError, match="not pickled or copied"):
        away(RING)


def test_a_ring_is_a_value() -> None:
    assert KeyRing.of({"a": A, "b": B}) == RING
    assert hash(KeyRing.of({"a": A, "b": B})) == hash(RING)
    assert KeyRing.of({"b": B, "a": A}) != RING
    assert KeyRing.of({"a": A, "b": A + A}) != RING
    assert KeyRing.of({"a": A}) != RING
    assert RING != {"a": A}
    with pytest.raises(AttributeError, match="cannot be changed"):
        RING._secrets = {}
    with pytest.raises(AttributeError, match="cannot be changed"):
        del RING._secrets


def test_what_is_given_is_copied() -> None:
    keys = {"a": A}
    ring = KeyRing.of(keys)
    keys["a"] = B
    assert ring == KeyRing.of({"a": A})


BROKEN: list[Any] = [{}, [], None, "a:b", {"": A}, {"a:b": A}, {"a b": A}, {"a" * 65: A}, {1: A}, {"é": A},
                     {"a": "A" * 32}, {"a": b"A" * 31}, {"a": None}, {"a": bytearray(A)}]  # fmt: skip


@pytest.mark.parametrize("keys", BROKEN, ids=range(len(BROKEN)))
def test_what_is_no_ring_of_keys_is_refused_and_not_quoted(keys: Any) -> None:
    with pytest.raises(KeyRingError) as raised:
        KeyRing.of(keys)
    assert "AAA" not in str(raised.value)


def test_a_ring_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTPRINT_KEYS", f"a:{text(A)}, b:{text(B)}")
    assert KeyRing.from_env() == RING
    monkeypatch.setenv("OTHER", f"b:{text(B)}")
    assert KeyRing.from_env("OTHER") == KeyRing.of({"b": B})


@pytest.mark.parametrize("value", [None, ""])
def test_an_environment_without_keys_is_refused_by_the_name_of_the_variable(
    value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv("FOOTPRINT_KEYS", raising=False)
    else:
        monkeypatch.setenv("FOOTPRINT_KEYS", value)
    with pytest.raises(KeyRingError, match="FOOTPRINT_KEYS is not set"):
        KeyRing.from_env()


def test_a_ring_is_read_from_a_file_only_its_owner_can_read(tmp_path: Path) -> None:
    lines = f"# the first seals\na:{text(A)}\n\n  b:{text(B)}  \n"
    assert KeyRing.from_file(written(tmp_path / "keys", lines)) == RING
    assert KeyRing.from_file(str(tmp_path / "keys")) == RING


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o444, 0o620, 0o602])
def test_a_file_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = written(tmp_path / "keys", f"a:{text(A)}\n", mode)
    with pytest.raises(KeyRingError, match=r"keys can be read or written by others; chmod 600 it"):
        KeyRing.from_file(path)


def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"a:\xff\xfe")
    binary.chmod(0o600)
    long = written(tmp_path / "long", "#" * (1 << 16) + "\n")
    for path, why in (
        (tmp_path / "absent", "No such file"), (tmp_path, "directory"), (binary, "no text"),
        (long, "larger than 64 KiB"), (tmp_path / "a\0b", "no file can have that name"),
    ):  # fmt: skip
        with pytest.raises(KeyRingError, match=why) as raised:
            KeyRing.from_file(path)
        assert str(path) in str(raised.value)
        assert raised.value.__context__ is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (text(A), "entry 2"),
        (f"b {text(A)}", "entry 2"),
        ("b:QUFB!", "entry 2"),
        ("b:QUF", "entry 2"),
        ("b:", "not 32 bytes"),
        ("b:QUFB", "not 32 bytes"),
        (f"a:{text(B)}", "two keys of one id"),
        (f":{text(B)}", "An id in a key ring"),
    ],
)
def test_a_broken_line_is_refused_by_its_number_and_not_quoted(line: str, says: str, tmp_path: Path) -> None:
    path = written(tmp_path / "keys", f"a:{text(A)}\n{line}\n")
    with pytest.raises(KeyRingError, match=says) as raised:
        KeyRing.from_file(path)
    assert raised.value.__context__ is None
    assert "QUF" not in str(raised.value)
    assert text(B)[:8] not in str(raised.value)
