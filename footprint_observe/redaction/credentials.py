"""What lets its holder in, by its look: tokens of services, headers, addresses with a password, keys."""

from __future__ import annotations

import base64
import binascii

from footprint_observe.redaction.detect import Detector


def _is_bearer(text: str) -> bool:
    # With a digit in it or long: "the bearer instrument" is none.
    token = text.rsplit(None, 1)[-1].rpartition("%20")[2]
    return len(token) >= 20 or any(c.isdigit() for c in token)


def _is_basic(text: str) -> bool:
    try:
        return ":" in base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=False).decode()
    except (binascii.Error, ValueError):
        return False


def _is_token(text: str) -> bool:
    # With a capital or a digit, or one long word: "sk-learn-and-its-pipelines" is none.
    return (
        not text.startswith("sk-")
        or any(c.isdigit() or c.isupper() for c in text)
        or any(len(word) >= 20 for word in text.replace("_", "-").split("-"))
    )


JWT = Detector(
    name="jwt",
    pattern=(
        r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*){1,3}"
        # The payload is an object too, so it tells a token whose first part is glued to a word.
        r"|[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?"
    ),
)
"""JSON web tokens, signed and encrypted."""

BEARER = Detector(
    name="bearer",
    pattern=r"(?i)\bbearer(?:[\s:=\"']|%20)+[A-Za-z0-9._~+/=-]{8,}",
    check=_is_bearer,
)
"""`Bearer ...`, as it stands in an Authorization header."""

BASIC = Detector(
    name="basic-auth",
    pattern=r"(?i)\bbasic(?:\s|%20)+(?P<secret>[A-Za-z0-9+/_-]{8,}={0,2})",
    check=_is_basic,
)
"""What stands behind `Basic` in an Authorization header: user and password in base64."""

URL_PASSWORD = Detector(
    name="url-password",
    pattern=r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@?#\"'<>]{0,256}:(?P<secret>[^\s/@\"'<>]{1,256})@",
)
"""The password in an address: `postgres://user:password@host`."""

COOKIE = Detector(
    name="cookie",
    pattern=r"(?i)\bcookie\s{0,4}:\s{0,4}(?P<secret>[^\s\"'=;:]{1,256}=[^\r\n\"']*)",
)
"""What stands behind `Cookie:` or `Set-Cookie:`, to the end of its line."""

API_TOKEN = Detector(
    name="api-token",
    pattern=(
        r"\b(?:"
        r"sk-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic
        r"|(?:[rs]k|pk)_(?:live|test)_[A-Za-z0-9]{10,}"  # Stripe
        r"|whsec_[A-Za-z0-9+/]{20,}={0,2}"
        r"|gh[opsur]_[A-Za-z0-9]{20,}"  # GitHub
        r"|github_pat_[A-Za-z0-9_]{20,}"
        r"|glpat-[A-Za-z0-9_-]{16,}"  # GitLab
        r"|(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"  # Slack
        r"|A(?:KIA|SIA)[A-Z0-9]{16}"  # AWS
        r"|AIza[A-Za-z0-9_-]{30,}"  # Google
        r"|GOCSPX-[A-Za-z0-9_-]{20,}"
        r"|ya29\.[A-Za-z0-9_-]{20,}"
        r"|npm_[A-Za-z0-9]{30,}"
        r"|pypi-[A-Za-z0-9_-]{40,}"
        r"|hf_[A-Za-z0-9]{30,}"
        r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"  # SendGrid
        r"|[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}"  # Entra ID, the secret of an application
        # Whoever has the address of such a webhook may post to it.
        r"|(?i:https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)"
        r"/[a-z0-9/_-]{16,})"
        r")"
        # What makes a signed address of Azure, AWS or Google open without an account.
        r"|(?i:[?&](?:sig|x-amz-signature|x-amz-security-token|x-goog-signature)=[a-z0-9%+/=_-]{16,})"
    ),
    check=_is_token,
)
"""Tokens that well-known services give a shape of their own, their webhooks, and signatures of addresses."""

PRIVATE_KEY = Detector(
    name="private-key",
    pattern=(
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        # To its end, or to the end of the text when it was cut off.
        r"(?:[^-]|-{1,4}[^-]|-{5,}[^-E])*(?:-----END [A-Z0-9 ]{0,100}-----)?"
    ),
)
"""Private keys in PEM, cut off or whole."""

CREDENTIALS: tuple[Detector, ...] = (JWT, BEARER, BASIC, URL_PASSWORD, COOKIE, API_TOKEN, PRIVATE_KEY)
"""Everything that lets its holder in."""
