"""Who may ask: stands before the whole site, its pages, data and static files alike.

Without a token, whoever can reach the port may read, so the port is one of this machine. A web page in the
same browser reaches it too. It cannot read what it gets from another site, but it could make its own name
mean this machine (DNS rebinding); the Host header gives that away. It could also measure how long a question
takes, were it its own: of what other sites ask, only links to ready pages pass, without any parameter.

With a token, every request carries it: in a header, or as the cookie that the sign-in link sets. No browser
sends that cookie to another name of this machine, so the Host header is not looked at, or for another site,
links included.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

SIGN_IN = "/-/sign-in"
"""Where `?token=...` becomes a cookie."""

_ASKING = frozenset({"GET", "HEAD"})
# Pages whose question is always the same. The address of a row is made of its values, which may be guessed.
_READY = re.compile(r"/|(/-/dashboards)?(/[^/.]+){1,2}")
# Values of a ledger were written by models and by whoever writes to them. Should one become part of a page in
# spite of all, no handler in it runs, and nothing goes anywhere. Charts are compiled, hence the eval.
_POLICY = (
    b"default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; script-src-attr 'none'; "
    b"style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    b"base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    # An address holds a question, and a question holds values.
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
# Rows are not to lie in the cache of a browser; what comes with the packages may.
_UNKEPT = (b"cache-control", b"private, no-store")
_YOURSELF = "go to the address yourself: put the cursor into it and press Enter"
_STATIC = ("/-/static", "/footprint/")


class Guard:
    """An ASGI application that lets through to another one what may pass."""

    def __init__(self, app: App, *, hosts: frozenset[str], token: str | None, cookie: str) -> None:
        """Stand before an application.

        Args:
            app: The application.
            hosts: What the Host header may say when there is no token, lower case, with the port.
            token: What everybody has to show; None where the port is this machine's own.
            cookie: The name of the cookie, another one for every port: cookies know no ports.
        """
        self._app = app
        self._hosts = hosts
        self._token = None if token is None else token.encode()
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        answer = self._answer(scope)
        if answer is not None:
            await _say(send, *answer)
            return

        own = _HEADERS if scope["path"].startswith(_STATIC) else (*_HEADERS, _UNKEPT)
        names = {name for name, _ in own}

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = [one for one in message.get("headers", ()) if one[0].lower() not in names]
                message = {**message, "headers": [*given, *own]}
            await send(message)

        await self._app(scope, receive, with_headers)

    def _answer(self, scope: Scope) -> tuple[int, str, dict[str, str]] | None:
        """What is said in the place of the site; None for a request that may pass."""
        if scope["method"] not in _ASKING:
            return 405, "A ledger is only read here; use GET.", {"allow": "GET, HEAD"}
        headers = cast("list[tuple[bytes, bytes]]", scope["headers"])
        # Before the links of other sites are looked at: this one may stand in a message.
        if self._token is not None and scope["path"] == SIGN_IN:
            return self._sign_in(cast("bytes", scope["query_string"]).decode("latin-1"))
        if _is_foreign(headers) and not _is_plain_link(scope, headers):
            return 403, f"Another site asked for this; {_YOURSELF}.", {}
        if self._token is None:
            return None if self._is_named(headers) else (403, "This machine is not called that here.", {})
        if self._is_known(headers):
            return None
        said = (
            f"A token is needed: open {SIGN_IN}?token=..., or send it as Authorization: Bearer. If you have "
            f"signed in and followed a link, {_YOURSELF}."
        )
        return 401, said, {"www-authenticate": "Bearer"}

    def _is_named(self, headers: list[tuple[bytes, bytes]]) -> bool:
        names = _values(headers, b"host")
        return len(names) == 1 and names[0].lower() in self._hosts

    def _is_known(self, headers: list[tuple[bytes, bytes]]) -> bool:
        for value in _values(headers, b"authorization"):
            scheme, _, shown = value.partition(" ")
            if scheme.lower() == "bearer" and self._is_token(shown.strip()):
                return True
        for value in _values(headers, b"cookie"):
            # Other programs of this machine set cookies, too, and not all as the standard says.
            for one in value.split(";"):
                name, _, shown = one.strip().partition("=")
                if name == self._cookie and hmac.compare_digest(shown.encode(), self._mark().encode()):
                    return True
        return False

    def _sign_in(self, query: str) -> tuple[int, str, dict[str, str]]:
        given = parse_qs(query).get("token")
        if given is None:
            # Where the link stood in a page of another site, the cookie is not sent until a page of this one
            # leads on.
            return 200, "Go on at /.", {"refresh": "0; url=/"}
        if not self._is_token(given[0]):
            return 401, "That is not the token of this ledger; ask who serves it.", {}
        # Strict: by plain http, no browser says which site asks.
        cookie = f"{self._cookie}={self._mark()}; HttpOnly; SameSite=Strict; Path=/"
        return 303, "", {"location": SIGN_IN, "set-cookie": cookie}

    def _is_token(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(), self._token or b"")

    def _mark(self) -> str:
        # A cookie lies in files of the browser; the token is not to be found there.
        return hmac.new(self._token or b"", b"footprint serve", hashlib.sha256).hexdigest()


def _values(headers: list[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _is_foreign(headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether a page of another site made the request."""
    sites = _values(headers, b"sec-fetch-site")
    if sites:
        return not {"same-origin", "none"}.issuperset(sites)
    # An old browser, which may still name the page; those of this site ask it not to, and so does a program.
    own = _values(headers, b"host")
    pages = _values(headers, b"origin") + _values(headers, b"referer")
    return not all(page.split("/", 3)[2:3] == own for page in pages)


def _is_plain_link(scope: Scope, headers: list[tuple[bytes, bytes]]) -> bool:
    """Whether somebody follows a link to a ready page, with nothing in it that the other site chose."""
    is_followed = _values(headers, b"sec-fetch-dest") == ["document"]
    return is_followed and not scope["query_string"] and _READY.fullmatch(scope["path"]) is not None


async def _say(send: Send, status: int, text: str, headers: dict[str, str]) -> None:
    body = f"{text}\n".encode() if text else b""
    own = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    given = [(name.encode(), value.encode()) for name, value in headers.items()]
    head = [*own, *given, *_HEADERS, _UNKEPT]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
