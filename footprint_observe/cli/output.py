"""How the commands print: what is shared by all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from footprint_core import plain

F = TypeVar("F", bound=Callable[..., Any])

# Control characters, ends of lines, what turns the direction of writing, and halves of characters.
_UNSAFE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")

COLORS = {"allow": "green", "deny": "red", "ask": "yellow"}
"""The colour of an outcome."""


def db_option(function: F) -> F:
    """The option that says which ledger file is meant."""
    return click.option(
        "--db",
        "path",
        default="footprint.db",
        show_default=True,
        envvar="FOOTPRINT_DB",
        help="The ledger file.",
    )(function)


def console() -> Console:
    """Standard output, coloured on a terminal only."""
    return Console(highlight=False, soft_wrap=False)


LIMIT = click.IntRange(min=1, max=2**63 - 1)
"""How many rows may be asked for: what SQLite can count."""


def outcome_text(outcome: str) -> Text:
    """An outcome in its colour."""
    return Text(outcome, style=COLORS.get(outcome, ""))


def counted(number: int, one: str) -> str:
    """A number and what it counts: `1 call`, `2 calls`."""
    return f"{number} {one if number == 1 else one + 's'}"


def notices_of(watchers: Iterable[object]) -> list[str]:
    """What watchers have to say about themselves, when they have anything."""
    return [str(notice) for watcher in watchers for notice in getattr(watcher, "notices", ())]


def shown(json: str | None, width: int = 60) -> str:
    """A stored value as one short line: text as it is, everything else as JSON."""
    if json is None:
        return ""
    return short(plain.rendered(plain.decode(json)), width)


def one_line(text: str) -> str:
    """All of a text in one line: what would break it, or drive a terminal, is written as an escape."""
    return _UNSAFE.sub(lambda found: repr(found[0])[1:-1], text)


def short(text: str, width: int = 60) -> str:
    """One line of at most `width` characters, without control characters or markup."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return escape(line if len(line) <= width else line[: width - 1] + "…")
