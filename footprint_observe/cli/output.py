"""How the commands print: data to standard output, what is said about it to standard error.

On a terminal there are colours (none with NO_COLOR), and what is longer than the screen goes through the
pager. With `--json` every command prints JSON Lines: one object a line, values as they were, times as
ISO 8601 in UTC.
"""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self, TextIO, cast

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.text import Text

from footprint_core import plain
from footprint_core.plain import Json

# Control characters, ends of lines, what turns the direction of writing, and halves of characters.
_UNSAFE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))

COLORS = {"allow": "green", "deny": "red", "ask": "yellow"}
"""The colour of an outcome."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich, which handles the error here, would end the process with 1: the answer is no.
        raise  # noqa: PLE0704


def console() -> Console:
    """Standard output, coloured on a terminal only."""
    return _Console(highlight=False, soft_wrap=False)


def is_terminal() -> bool:
    """Whether standard output is one."""
    return sys.stdout.isatty()


def closed_streams() -> None:
    """Put nothing in the place of an output that was closed before the command began, as `>&-` does."""
    for name in ("stdout", "stderr"):
        if cast("TextIO | None", getattr(sys, name)) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - open to the end


def drop_output() -> None:
    """Let what was not written yet go nowhere: Python would try again at its end, and complain."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


def see_reader() -> None:
    """See that somebody still reads standard output, without writing to it.

    Raises:
        BrokenPipeError: It is a pipe, and its reader has gone.
    """
    if sys.platform == "win32":
        return
    try:
        output = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    poll = select.poll()
    poll.register(output, 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        raise BrokenPipeError


@contextmanager
def paged() -> Generator[Console]:
    """Standard output; on a terminal through the pager when it is longer than the screen."""
    out = console()
    if not is_terminal():
        yield out
        return
    with out.capture() as captured:
        yield out
    text = captured.get()
    if text.count("\n") >= out.height:
        click.echo_via_pager(text)
    else:
        click.echo(text, nl=False)


def note(text: str) -> None:
    """Say something about the data, on standard error, so that it is never read as data."""
    click.echo(one_line(text), err=True)


class Bar:
    """A progress bar on standard error, drawn on a terminal only, and taken away when it ends."""

    def __init__(self, what: str) -> None:
        self._progress = Progress(
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(what, total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Take it away: what is printed while it is drawn would stand in it."""
        self._progress.stop()

    def move(self, done: int, of: int) -> None:
        """How much is done, and of how much."""
        self._progress.update(self._task, completed=done, total=of)


def print_json(records: Iterable[Mapping[str, Any]]) -> None:
    """Print each record as one line of JSON, UTF-8 whatever the locale is."""
    for record in records:
        line = plain.encode(record).decode()
        # Inside JSON these stand in strings only, where an escape means the same and drives no terminal.
        click.echo(_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", line).encode())


class Column(NamedTuple):
    """A column of `aligned`: what stands above it, and whether its cells are numbers."""

    name: str
    is_number: bool = False


def aligned(columns: Sequence[Column], rows: Sequence[Sequence[Text | str]]) -> Text:
    """Rows below each other, one line each; the last column may be as long as it likes.

    Much faster than a table, whose cells may wrap: thousands of runs are listed with it.
    """
    lines = [[Text(column.name, style="bold") for column in columns]]
    lines += [[cell if isinstance(cell, Text) else Text(cell) for cell in row] for row in rows]
    widths = [max(cell.cell_len for cell in cells) for cells in zip(*lines, strict=True)]
    text = Text(no_wrap=True)
    for row, cells in enumerate(lines):
        if row:
            text.append("\n")
        for at, (cell, column, width) in enumerate(zip(cells, columns, widths, strict=True)):
            blank = " " * (width - cell.cell_len)
            if column.is_number:
                text.append(blank).append(cell)
            else:
                text.append(cell)
            if at < len(columns) - 1:
                text.append("  " if column.is_number else f"{blank}  ")
    return text


def outcome_text(outcome: str) -> Text:
    """An outcome in its colour."""
    return Text(outcome, style=COLORS.get(outcome, ""))


def counted(number: int, one: str) -> str:
    """A number and what it counts: `1 call`, `2 calls`."""
    return f"{number} {one if number == 1 else one + 's'}"


def age(seconds: int) -> str:
    """How long ago something was, in its largest unit: `3 days`."""
    unit = next(((size, name) for size, name in _UNITS if seconds >= size), None)
    return counted(seconds, "second") if unit is None else counted(seconds // unit[0], unit[1])


def notices_of(watchers: Iterable[object]) -> list[str]:
    """What watchers have to say about themselves, when they have anything."""
    return [str(notice) for watcher in watchers for notice in getattr(watcher, "notices", ())]


def shown(value: Json, width: int = 60) -> str:
    """A value as one short line: text as it is, everything else as JSON, nothing for None."""
    return "" if value is None else short(plain.rendered(value), width)


def at_time(iso: str) -> str:
    """The time of day of an instant, to the millisecond; as it is where no calendar has it."""
    return iso[11:23] if "T" in iso else iso


def on_day(iso: str) -> str:
    """Day and time of an instant, to the second; as it is where no calendar has it."""
    return iso[:19].replace("T", " ") if "T" in iso else iso


def one_line(text: str) -> str:
    """All of a text in one line: what would break it, or drive a terminal, is written as an escape."""
    return _UNSAFE.sub(lambda found: repr(found[0])[1:-1], text)


def line(text: str, width: int = 60) -> str:
    """One line of at most `width` characters, without control characters."""
    whole = "".join(c if c.isprintable() else " " for c in text)
    return whole if len(whole) <= width else whole[: width - 1] + "…"


def short(text: str, width: int = 60) -> str:
    """The same, escaped: for a place where markup is read."""
    return escape(line(text, width))
