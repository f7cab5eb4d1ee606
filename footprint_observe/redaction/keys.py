"""Keys by their words: `apiKey`, `X-Api-Key` and `db.password` name a credential, `max_tokens` does not.

A key is taken apart at everything that is no letter and no digit, at camelCase and between letters and
digits, and its words are compared without regard to case.
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import cast

_WORDS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LONGEST_CACHED = 128

# A word that names a credential wherever it stands in a key.
_ANYWHERE = frozenset({
    "passcode", "pwd", "secret", "secrets", "jwt", "mnemonic", "mnemonics", "seedphrase",
    "sessionid", "phpsessid", "jsessionid", "credential", "credentials",
    "apikey", "apikeys", "privatekey", "accesskey", "secretkey",
    "sessionkey", "signingkey", "encryptionkey", "authkey", "authtoken", "accesstoken", "refreshtoken",
    "idtoken", "apitoken", "bearertoken", "sessiontoken", "clientsecret", "setcookie",
})  # fmt: skip
# A word that names one with anything before it, `dbpassword`, and in two words, `passWord`.
_FUSED = ("password", "passwords", "passwd", "passphrase")
# A word that names one as the last word, `set_cookie` but not `cookie_banner`.
_AT_THE_END = frozenset({"cookie", "cookies", "otp", "totp", "pin"})
# Two words that name one together.
_PAIRS = frozenset({
    ("session", "id"), ("recovery", "code"), ("recovery", "codes"), ("backup", "code"), ("backup", "codes"),
    ("otp", "code"), ("pin", "code"), ("seed", "phrase"), ("security", "answer"), ("security", "answers"),
})  # fmt: skip
# The words before `authorization` that leave it a header: `prior_authorization` is none.
_HEADERS = frozenset({"", "proxy", "http", "https", "x", "header", "headers", "request", "amz", "forwarded"})
# Last words that make a key say something about a secret, and not the secret.
_ABOUT = frozenset({
    "at", "attempts", "changed", "count", "enabled", "expired", "expires", "expiry", "length", "model",
    "policy", "required", "status", "strength", "template", "ttl", "type", "verified",
})  # fmt: skip
_ABOUT_CREDENTIALS = _ABOUT | {"arn", "date", "days", "expiration", "name"}
# Last words of keys whose values have no spaces.
_ONE_WORD = frozenset({
    "token", "tokens", "key", "keys", "jwt", "cookie", "cookies", "apikey", "otp", "totp", "pin", "email",
    "mail", "ip", "sessionid", "phpsessid", "jsessionid", "auth", "authorization",
})  # fmt: skip
_SCHEMES = frozenset({
    "apikey", "api-key", "aws", "aws4-hmac-sha256", "basic", "bearer", "bot", "digest", "dpop", "geniekey",
    "hawk", "hmac", "mac", "negotiate", "ntlm", "oauth", "sharedkey", "sharedkeylite", "splunk", "ssws",
    "token", "vapid",
})  # fmt: skip
_LONG = 20
_SHORTEST_PIN = 3
# The words before `key` that make it one: `sort_key` and `primary_key` are none.
_KEYS = frozenset({
    "access", "api", "auth", "encryption", "private", "secret", "service", "session", "shared", "signing",
    "ssh", "subscription", "account", "master", "hmac", "consumer", "license", "licence",
})  # fmt: skip
# The words before `tokens` that make several of them credentials and no count.
_TOKENS = frozenset(
    {"access", "api", "auth", "bearer", "id", "refresh", "session", "security", "csrf", "xsrf"}
)
# The words before `token` that make it a count, a mark of a text model or a place in a list.
_COUNTED = frozenset({
    "max", "min", "input", "output", "prompt", "completion", "total", "num", "per", "stop", "eos", "bos",
    "pad", "unk", "sep", "cls", "cached", "reasoning", "first", "last", "next", "page", "prev", "previous",
    "continuation", "cursor",
})  # fmt: skip
# The words behind `token` that leave it one: `token_count` and `token_type` are none.
_STILL_TOKEN = frozenset({"value", "secret", "key", "hash", "string", "text", "id"})


_BETWEEN = "[^a-z]*"


def _alone(word: str) -> str:
    """A pattern of a word of a key that no letter of the same word stands around."""
    first, rest = re.escape(word[0].upper()), re.escape(word[1:])
    return rf"(?:(?:\b|[\d_]){re.escape(word)}|(?-i:{first}){rest})(?:\b|[\d_]|(?-i:[A-Z]))"


CREDENTIAL_HINT = "|".join((
    "pwd|secret|token|jwt|authorization|authkey|credential|cookie|mnemonic|sessid",
    f"session{_BETWEEN}id|(?:recovery|backup){_BETWEEN}code|seed{_BETWEEN}phrase|security{_BETWEEN}answer",
    *(_alone(word) for word in ("auth", "otp", "totp", "pin")),
    f"pass{_BETWEEN}(?:word|wd|phrase|code)",
    f"(?:{'|'.join(sorted(_KEYS))}){_BETWEEN}key",
))  # fmt: skip
"""A pattern without regard to case, which every key that names a credential holds when it is ASCII."""


def hint_of(words: Sequence[str]) -> str:
    """A pattern without regard to case, which every ASCII key holds that these words name."""
    if len(words) == 1 and words[0].isascii():
        return _alone(words[0])
    return _BETWEEN.join(re.escape(word) for word in words)


def names_credential(key: str) -> bool:
    """Whether what stands under a key is a credential."""
    # A key can be as long as a model likes, and what is cached stays in memory.
    return _cached(key) if len(key) <= _LONGEST_CACHED else _names_credential(key)


def _names_credential(key: str) -> bool:
    words = words_of(key)
    if not words or words[-1] in _ABOUT_CREDENTIALS:
        return False
    if words[-1] in _AT_THE_END or words == ["auth"]:
        return True
    if words[-1] == "authorization":
        return not any(word not in _HEADERS for word in words[:-1])
    for before, word, behind in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in _ANYWHERE or word.endswith(_FUSED) or before + word in _FUSED:
            return True
        if (before, word) in _PAIRS or (word in {"key", "keys"} and before in _KEYS):
            return True
        if word == "token" and before not in _COUNTED and (not behind or behind in _STILL_TOKEN):
            return True
        if word == "tokens" and before in _TOKENS:
            return True
    return False


def is_spared(key: str, value: object) -> bool:
    """Whether what stands under a key that names a secret is none, by what it is: `password_reset: true`."""
    if isinstance(value, bool):
        return True
    words = words_of(key)
    last = words[-1] if words else ""
    if last in _ABOUT:
        return True
    if last in {"auth", "authorization"}:
        return not lets_in(value)
    if last == "pin":
        return sum(c.isdigit() for c in str(value)) < _SHORTEST_PIN
    return False


def is_header(key: str) -> bool:
    """Whether the value of a key goes on to the end of its line, as that of an HTTP header."""
    return key[-13:].casefold() == "authorization"


def is_one_word(key: str) -> bool:
    """Whether the value of a key has no spaces."""
    words = words_of(key)
    return bool(words) and words[-1] in _ONE_WORD


def lets_in(value: object) -> bool:
    """Whether the value of an Authorization header is one: a scheme and more, or the look of a token."""
    if isinstance(value, list | tuple):
        return any(lets_in(item) for item in cast("Sequence[object]", value))
    if not isinstance(value, str):
        return False
    words = value.split()
    if len(words) > 1 and words[0].casefold() in _SCHEMES:
        return True
    return any(
        len(word) >= _LONG
        or "=" in word
        or (any(c.isdigit() for c in word) and any(c.isalpha() for c in word))
        or (len(words) == 1 and _is_user_and_password(word))
        for word in words
    )


def _is_user_and_password(text: str) -> bool:
    try:
        return ":" in base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_").decode()
    except (binascii.Error, ValueError):
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
