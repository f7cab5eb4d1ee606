"""Keys by their words: `apiKey`, `X-Api-Key` and `db.password` name a credential, `max_tokens` does not.

A key is taken apart at everything that is no letter and no digit, at camelCase and between letters and
digits, and its words are compared without regard to case.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_WORDS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST_CACHED = 128

# A word that names a credential wherever it stands in a key.
_ANYWHERE = frozenset({
    "passcode", "pwd", "secret", "secrets", "jwt",
    "authorization", "credential", "credentials", "apikey", "apikeys", "privatekey", "accesskey", "secretkey",
    "sessionkey", "signingkey", "encryptionkey", "authkey", "authtoken", "accesstoken", "refreshtoken",
    "idtoken", "apitoken", "bearertoken", "sessiontoken", "clientsecret", "setcookie",
})  # fmt: skip
# A word that names one with anything before it, `dbpassword`, and in two words, `passWord`.
_FUSED = ("password", "passwords", "passwd", "passphrase")
# A word that names one as the last word, `set_cookie` but not `cookie_banner`.
_AT_THE_END = frozenset({"cookie", "cookies"})
# The words before `key` that make it one: `sort_key` and `primary_key` are none.
_KEYS = frozenset({
    "access", "api", "auth", "encryption", "private", "secret", "service", "session", "shared", "signing",
    "ssh", "subscription", "account", "master", "hmac",
})  # fmt: skip
# The words before `tokens` that make several of them credentials and no count.
_TOKENS = frozenset(
    {"access", "api", "auth", "bearer", "id", "refresh", "session", "security", "csrf", "xsrf"}
)
# The words before `token` that make it a count or a mark of a text model.
_COUNTED = frozenset({
    "max", "min", "input", "output", "prompt", "completion", "total", "num", "per", "stop", "eos", "bos",
    "pad", "unk", "sep", "cls", "cached", "reasoning", "first", "last",
})  # fmt: skip
# The words behind `token` that leave it one: `token_count` and `token_type` are none.
_STILL_TOKEN = frozenset({"value", "secret", "key", "hash", "string", "text", "id"})


_BETWEEN = "[^a-z]*"


CREDENTIAL_HINT = "|".join((
    "pwd|secret|token|jwt|authorization|authkey|credential|cookie",
    f"pass{_BETWEEN}(?:word|wd|phrase|code)",
    f"(?:{'|'.join(sorted(_KEYS))}){_BETWEEN}key",
))  # fmt: skip
"""A pattern without regard to case, which every key that names a credential holds when it is ASCII."""


def hint_of(words: Sequence[str]) -> str:
    """A pattern without regard to case, which every ASCII key holds that these words name."""
    return _BETWEEN.join(re.escape(word) for word in words)


def names_credential(key: str) -> bool:
    """Whether what stands under a key is a credential."""
    # A key can be as long as a model likes, and what is cached stays in memory.
    return _cached(key) if len(key) <= _LONGEST_CACHED else _names_credential(key)


def _names_credential(key: str) -> bool:
    words = words_of(key)
    if not words:
        return False
    if words[-1] in _AT_THE_END:
        return True
    for before, word, behind in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in _ANYWHERE or word.endswith(_FUSED) or before + word in _FUSED:
            return True
        if word in {"key", "keys"} and before in _KEYS:
            return True
        if word == "token" and before not in _COUNTED and (not behind or behind in _STILL_TOKEN):
            return True
        if word == "tokens" and before in _TOKENS:
            return True
    return False


def words_of(key: str) -> list[str]:
    """The words of a key in small letters, its numbers left out: `["date", "of", "birth"]`."""
    if not key.isascii():
        # Forms that only look different, and characters that cannot be seen, do not hide a name.
        key = "".join(c for c in unicodedata.normalize("NFKC", key) if unicodedata.category(c) != "Cf")
    return [word for word in _WORDS.findall(_CAMEL.sub("_", key).casefold()) if not word.isdigit()]


def names(words: list[str], wanted: Sequence[str]) -> bool:
    """Whether the words of a key hold the wanted ones, one behind the other or written as one."""
    if "".join(wanted) in words:
        return True
    length = len(wanted)
    return any(words[at : at + length] == list(wanted) for at in range(len(words) - length + 1))


_cached = lru_cache(maxsize=4096)(_names_credential)
