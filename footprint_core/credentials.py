"""Credentials: what a tool needs to act in somebody's name, and nothing else ever holds."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Mapping
from typing import Protocol, cast, final

import msgspec

from footprint_core import plain
from footprint_core.errors import BuilderError
from footprint_core.plain import Json


@final
class Credential:
    """A secret for one service. It does not change: what a tool gives back is searched for it.

    Attributes:
        kind: What it is, for example `bearer`; events say it.
        secret: The secret. A tool's context is the only place that has it.

    Raises:
        TypeError: One of them is no text.
    """

    __slots__ = ("_kind", "_secret")

    def __init__(self, *, kind: str, secret: str) -> None:
        if not all(isinstance(text, str) for text in cast("tuple[object, ...]", (kind, secret))):
            raise TypeError("A credential's kind and secret are texts; give it two.")
        self._kind = kind
        self._secret = secret

    @property
    def kind(self) -> str:
        """What it is; events say it."""
        return self._kind

    @property
    def secret(self) -> str:
        """The secret."""
        return self._secret

    def __repr__(self) -> str:
        # A repr ends up in logs and in the texts of errors.
        return f"Credential(kind={self.kind!r}, secret=...)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("A credential is not copied to anywhere; ask its provider again.")


_SHORTEST = 6


def hidden(value: Json, credential: Credential) -> Json:
    """A plain value without the secret in it: clients of services quote it in what they return and raise.

    It is looked for as it is, percent-encoded in whole or in part, escaped as in JSON and Python, in hex,
    and in base64, also behind a user's name. One of fewer than six characters is not looked for, since it
    would be found everywhere.
    """
    # Read from a file, a secret ends in a newline that nobody sends.
    secret = credential.secret.strip()
    return value if len(secret) < _SHORTEST else _without(value, secret, re.compile(_forms(secret)))


def _forms(secret: str) -> str:
    """A pattern of the texts in which a client may quote a secret."""
    written = secret.encode(errors="surrogatepass")
    percent = "".join(map(_percent, secret))
    escaped = {json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    escaped |= {form.replace("/", "\\/") for form in escaped} | {repr(secret)[1:-1]}
    encoded = {_within_base64(written, offset) for offset in range(3)}
    encoded |= {form.translate(_URL_SAFE) for form in encoded}
    forms = {written.hex(), written.hex().upper(), *escaped, *encoded}
    # The longest first: a shorter form can be part of a longer one.
    longest = sorted((form for form in forms if len(form) >= _SHORTEST), key=len, reverse=True)
    return "|".join([percent, *map(re.escape, longest)])


def _percent(char: str) -> str:
    """A character as it is, or percent-encoded: clients differ in which they encode, and in which case."""
    codes = "".join(f"%(?i:{byte:02x})" for byte in char.encode(errors="surrogatepass"))
    plus = r"|\+" if char == " " else ""
    return f"(?:{re.escape(char)}|{codes}{plus})"


_URL_SAFE = str.maketrans("+/", "-_")


def _within_base64(written: bytes, offset: int) -> str:
    """What base64 makes of bytes that stand at an offset in others, without what depends on those.

    A user's name stands before the secret in the header of a request.
    """
    encoded = base64.b64encode(bytes(offset) + written).decode().rstrip("=")
    start = -(-offset * 8 // 6)
    stop = (offset + len(written)) * 8 // 6
    return encoded[start:stop]


def _without(value: Json, secret: str, forms: re.Pattern[str]) -> Json:
    if isinstance(value, str):
        return forms.sub(_HIDDEN, value)
    if plain.is_object(value):
        out: dict[str, Json] = {}
        for key, item in value.items():
            name = forms.sub(_HIDDEN, key)
            while name in out:
                # Two keys that read the same stay two.
                name += "~"
            out[name] = _without(item, secret, forms)
        return out
    if plain.is_array(value):
        return [_without(item, secret, forms) for item in value]
    return _HIDDEN if type(value) is int and str(value) == secret else value


_HIDDEN = "[credential]"


class CredentialRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a credential is needed for.

    Attributes:
        service: The service the tool declared.
        tool_name: The tool.
        tool_call_id: The call.
        run_id: The run.
        identity: What the caller passed to `run` as identity, or None.
    """

    service: str
    tool_name: str
    tool_call_id: str
    run_id: str
    identity: Json


class CredentialProvider(Protocol):
    """Gives the secrets tools declare a need for."""

    def credential(self, request: CredentialRequest, /) -> Credential | Awaitable[Credential]:
        """A credential for one call; raise when there is none. The text of the error is shown to nobody."""
        ...


class _Static:
    """The same token for every call."""

    def __init__(self, tokens: Mapping[str, str], kind: str) -> None:
        self._tokens = dict(tokens)
        self._kind = kind

    def credential(self, request: CredentialRequest, /) -> Credential:
        """The token of a service."""
        return Credential(kind=self._kind, secret=self._tokens[request.service])


def static_credentials(tokens: Mapping[str, str], /, *, kind: str = "bearer") -> CredentialProvider:
    """A provider that gives each service its one token; a service that is not named has none."""
    return _Static(tokens, kind)


def credential_provider(provider: object) -> CredentialProvider:
    """A provider that can be used.

    Raises:
        BuilderError: It has no `credential` method.
    """
    if isinstance(provider, type) or not callable(getattr(provider, "credential", None)):
        raise BuilderError(
            "A credential provider is an object with a credential(request) method; see static_credentials()."
        )
    return provider  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
