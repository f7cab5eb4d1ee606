"""Detectors: what a credential looks like inside a text, whatever key it stands under.

A pattern is only tried on a text that holds one of its detector's hints, and takes time in proportion to
the text: what repeats is possessive or bounded, and what could begin anywhere begins at a word's edge.
"""

from __future__ import annotations

import re

import msgspec


class Detector(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be recognised.

    Attributes:
        name: What it recognises.
        pattern: What is replaced.
        hints: Texts of which every match holds at least one; none when there is no such text, and then every
            text is looked through.
    """

    name: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()


JWT = Detector(
    name="jwt",
    hints=("eyJ",),
    pattern=re.compile(
        r"(?<![A-Za-z0-9_-])(?:"
        r"eyJ[A-Za-z0-9_-]{4,}+\.[A-Za-z0-9_-]{4,}+(?:\.[A-Za-z0-9_-]*+){1,3}"
        # The payload is an object too, so it tells a token whose first part is glued to a word.
        r"|[A-Za-z0-9_-]++\.eyJ[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]*+)?"
        r")"
    ),
)
"""JSON web tokens, signed and encrypted."""

BEARER = Detector(
    name="bearer",
    hints=("earer", "EARER"),
    pattern=re.compile(
        r"\bbearer(?:[\s:=\"']|%20)++"
        # With a digit in it or long: "the bearer instrument" is none.
        r"(?:(?=[A-Za-z._~+/=-]{0,64}+[0-9])[A-Za-z0-9._~+/=-]{8,}+|[A-Za-z._~+/=-]{20,}+)",
        re.IGNORECASE,
    ),
)
"""`Bearer ...`, as it stands in an Authorization header."""

API_TOKEN = Detector(
    name="api-token",
    hints=(
        "sk-",
        "k_live_",
        "k_test_",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "xapp-",
        "AKIA",
        "ASIA",
        "AIza",
        "npm_",
        "hf_",
    ),
    pattern=re.compile(
        r"(?<![A-Za-z0-9])(?:"
        # With a capital or a digit, or one long word: "sk-learn-and-its-pipelines" is none.
        r"sk-(?=[a-z_-]{0,64}+[A-Z0-9]|[a-z_-]{0,16}?[a-z]{20})[A-Za-z0-9_-]{16,}+"
        r"|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+"
        r"|gh[opsur]_[A-Za-z0-9]{20,}+"
        r"|github_pat_[A-Za-z0-9_]{20,}+"
        r"|glpat-[A-Za-z0-9_-]{16,}+"
        r"|(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}+"
        r"|A(?:KIA|SIA)[A-Z0-9]{16}"
        r"|AIza[A-Za-z0-9_-]{30,}+"
        r"|npm_[A-Za-z0-9]{30,}+"
        r"|hf_[A-Za-z0-9]{30,}+"
        r")"
    ),
)
"""Tokens that well-known services give a shape of their own."""

PRIVATE_KEY = Detector(
    name="private-key",
    hints=("PRIVATE KEY",),
    pattern=re.compile(
        r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
        # To its end, or to the end of the text when it was cut off.
        r"(?:[^-]++|-(?!----END))*+(?:-----END [A-Z0-9 ]{0,100}-----)?"
    ),
)
"""Private keys in PEM, cut off or whole."""

CREDENTIALS: tuple[Detector, ...] = (JWT, BEARER, API_TOKEN, PRIVATE_KEY)
"""Everything that lets its holder in."""
