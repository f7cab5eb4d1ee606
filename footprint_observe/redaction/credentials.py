"""What lets its holder in, by its look: tokens of services, headers, addresses with a password, keys."""

from __future__ import annotations

import base64
import binascii
import re

from footprint_observe.redaction.detect import Detector

_PORT = re.compile(r"\d{1,5}[/?#]")


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
    # A word of both sizes, of letters and digits, or a long one: "sk-learn-pipelines-2024" has none.
    return not text.startswith("sk-") or any(
        len(word) >= 20
        or (any(c.isdigit() for c in word) and any(c.isalpha() for c in word))
        or (not word.islower() and not word.istitle() and any(c.isupper() for c in word))
        for word in text[3:].replace("_", "-").split("-")
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
    pattern=(
        r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@?#\"'<>]{0,256}:"
        # To the last @ before a slash, or to the next one when the password holds slashes.
        r"(?P<secret>[^\s/\"'<>]{1,256}|[^\s/@\"'<>]{1,256}/[^\s@\"'<>]{0,256})@"
    ),
    check=lambda text: _PORT.match(text) is None,
)
"""The password in an address: `postgres://user:password@host`."""

COMMAND = Detector(
    name="command-password",
    pattern=(
        r"(?i)\bcurl\b[^\r\n|;]*?\s(?:-u|--user)[\s=]{0,4}[\"']?[^\s:\"'-][^\s:\"']*:(?P<secret>[^\s\"']+)"
    ),
)
"""The password behind `curl -u user:`."""

OPTION = Detector(
    name="option-password",
    pattern=(
        r"\b(?:(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\r\n|;]*?\s-p|sshpass\s+-p\s{0,4}"
        r"|(?:docker|podman)\s+login\b[^\r\n|;]*?\s-p\s{1,4})[\"']?(?P<secret>[^\s\"'-][^\s\"']*)"
    ),
)
"""The password behind `-p` of commands that take it there."""

SAID = Detector(
    name="said-password",
    pattern=(
        r"(?i)\b(?:identified\s+(?:with\s+\S+\s+)?by\s+(?:password\s+)?[\"']|with\s+(?:encrypted\s+)?password\s+[\"']"
        r"|login\s+\S+\s+password\s+)(?P<secret>[^\s\"']+)"
    ),
)
"""The password in statements of SQL, and in a netrc file."""

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
        r"|(?:[rs]k|pk|sk_org)_(?:live|test)_[A-Za-z0-9]{10,}"  # Stripe
        r"|whsec_[A-Za-z0-9+/]{20,}={0,2}"
        r"|gh[opsur]_[A-Za-z0-9]{20,}"  # GitHub
        r"|github_pat_[A-Za-z0-9_]{20,}"
        r"|gl(?:pat|rt|dt|ptt|ft|soat|cbt|agent|imt|oas)-[A-Za-z0-9_.-]{16,}"  # GitLab
        r"|(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"  # Slack
        r"|A(?:KIA|SIA)[A-Z0-9]{16}"  # AWS
        r"|AIza[A-Za-z0-9_-]{30,}"  # Google
        r"|GOCSPX-[A-Za-z0-9_-]{20,}"
        r"|ya29\.[A-Za-z0-9_-]{20,}"
        r"|npm_[A-Za-z0-9]{30,}"
        r"|do[opr]_v1_[a-f0-9]{32,}"  # DigitalOcean
        r"|dapi[a-f0-9]{32}(?:-\d)?"  # Databricks
        r"|HRKU-[A-Za-z0-9_-]{20,}"  # Heroku
        r"|hv[sbr]\.[A-Za-z0-9_-]{20,}"  # Vault
        r"|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"  # Terraform
        r"|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"  # Shopify
        r"|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}"  # Square
        r"|gsk_[A-Za-z0-9]{40,}"  # Groq
        r"|(?:xai|pplx|nvapi)-[A-Za-z0-9_-]{30,}"
        r"|r8_[A-Za-z0-9]{30,}"  # Replicate
        r"|lsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}"  # LangSmith
        r"|lin_api_[A-Za-z0-9]{30,}"  # Linear
        r"|(?:secret|ntn)_[A-Za-z0-9]{40,}"  # Notion
        r"|figd_[A-Za-z0-9_-]{30,}"  # Figma
        r"|PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}"  # Postman
        r"|NRAK-[A-Za-z0-9]{20,}"  # New Relic
        r"|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"  # Grafana
        r"|sntry[su]_[A-Za-z0-9+/=_-]{30,}"  # Sentry
        r"|dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"  # Docker
        r"|ATATT3[A-Za-z0-9_=-]{40,}"  # Atlassian
        r"|ATBB[A-Za-z0-9]{28,}"  # Bitbucket
        r"|dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}"  # Doppler
        r"|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}"  # PlanetScale
        r"|sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,}"  # Supabase
        r"|rubygems_[a-f0-9]{48}"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{50,}"
        r"|key-[a-f0-9]{32}"  # Mailgun
        r"|\d{8,10}:AA[A-Za-z0-9_-]{33}"  # Telegram
        r"|pypi-[A-Za-z0-9_-]{40,}"
        r"|hf_[A-Za-z0-9]{30,}"
        r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"  # SendGrid
        r"|[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}"  # Entra ID, the secret of an application
        # Whoever has the address of such a webhook may post to it.
        r"|(?i:https://(?:hooks\.slack\.com/(?:services|workflows|triggers)|discord(?:app)?\.com/api/webhooks)"
        r"/[a-z0-9/_-]{16,})"
        r")"
        # Hashes of passwords: bcrypt, SHA-crypt, argon2.
        r"|\$(?:2[abxy]\$\d\d\$[./A-Za-z0-9]{53}|[56]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}"
        r"|argon2(?:id|[id])\$(?:[A-Za-z0-9+/=,]|\$){20,})"
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

CREDENTIALS: tuple[Detector, ...] = (
    JWT, BEARER, BASIC, URL_PASSWORD, COMMAND, OPTION, SAID, COOKIE, API_TOKEN, PRIVATE_KEY,
)  # fmt: skip
"""Everything that lets its holder in."""
