"""How the commands print: what is shared by all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from footprint_core import plain

F = TypeVar("F", bound=Callable[..., Any])

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


def outcome_text(outcome: str) -> Text:
    """An outcome in its colour."""
    return Text(outcome, style=COLORS.get(outcome, ""))


def shown(json: str | None, width: int = 60) -> str:
    """A stored value as one short line: text as it is, everything else as JSON."""
    if json is None:
        return ""
    return short(plain.rendered(plain.decode(json)), width)


def short(text: str, width: int = 60) -> str:
    """One line of at most `width` characters, without control characters or markup."""
    line = "".join(c if c.isprintable() else " " for c in text)
    return escape(line if len(line) <= width else line[: width - 1] + "…")
