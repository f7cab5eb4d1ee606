"""`footprint totals`: how many decisions there were."""

from __future__ import annotations

from typing import Any

import click
from rich.text import Text

from footprint_observe.cli.options import db_option, filter_options, json_option, run_option
from footprint_observe.cli.output import COLORS, Column, aligned, line, note, paged, print_json
from footprint_observe.query.database import Record
from footprint_observe.query.totals import BY, By
from footprint_observe.query.totals import totals as counted


def _words(_ctx: click.Context, _param: click.Parameter, given: str) -> tuple[By, ...]:
    words = {word.strip() for word in given.split(",")}
    unknown = words.difference(BY)
    if unknown:
        raise click.BadParameter(f"Decisions are not counted by {min(unknown)!r}; use {', '.join(BY)}.")
    return tuple(word for word in BY if word in words)


@click.command()
@db_option
@json_option
@click.option(
    "--by",
    callback=_words,
    default="day,rule",
    show_default=True,
    metavar="WORDS",
    help=f"What to count by, separated by commas: {', '.join(BY)}.",
)
@run_option()
@filter_options
def totals(*, path: str, as_json: bool, by: tuple[By, ...], run: str | None, **filters: Any) -> None:
    """Count decisions by outcome, and by day and rule unless --by says otherwise. Days are those of UTC.

    Decisions that were only recorded (shadow) are counted in lines of their own.
    """
    found = counted(path, by=by, run=run, **filters)
    if as_json:
        print_json(found)
        return
    if not found:
        note("No decision of this ledger matches.")
        return
    names = [name for name in found[0] if name not in {*COLORS, "shadow"}]
    columns = [Column(name) for name in names]
    if any(row["shadow"] for row in found):
        columns.append(Column("shadow"))
    columns += [Column(outcome, is_number=True) for outcome in COLORS]
    with paged() as out:
        out.print(aligned(columns, [_cells(row, columns) for row in found]), soft_wrap=True)


def _cells(row: Record, columns: list[Column]) -> list[Text | str]:
    cells: list[Text | str] = []
    for name, is_number in columns:
        value = row[name]
        if is_number:
            cells.append(Text(str(value) if value else "", style=COLORS[name]))
        elif name == "shadow":
            cells.append("shadow" if value else "")
        else:
            # No calendar has the day of a time that somebody changed.
            absent = "no day" if name == "day" else ""
            cells.append(absent if value is None else line(str(value), 40))
    return cells
