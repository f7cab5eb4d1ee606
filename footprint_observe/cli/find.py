"""`footprint find TEXT`: where a text stands, in any value of the ledger."""

from __future__ import annotations

import re
from typing import Any

import click
from rich.text import Text

from footprint_observe.cli.exits import Exit
from footprint_observe.cli.options import db_option, filter_options, json_option, limit_option, run_option
from footprint_observe.cli.output import Bar, console, line, note, on_day, print_json
from footprint_observe.query.find import Found
from footprint_observe.query.find import find as places

_RUN = 16


@click.command()
@click.argument("text")
@db_option
@json_option
@run_option()
@filter_options
@limit_option(20, "End after so many places.")
@click.pass_context
def find(
    ctx: click.Context, /, *, text: str, path: str, as_json: bool, run: str | None, limit: int, **filters: Any
) -> None:
    """Find TEXT, whatever its case, in messages, reasons, arguments, results and all other values.

    The newest place is told first. There is no index over values, so the whole file may be read; Ctrl-C ends
    it at any time. Ends with 1 when nothing is found.
    """
    out = console()
    told = 0
    with Bar("looking") as bar:
        for one in places(path, text, run=run, limit=limit, looked_through=bar.move, **filters):
            bar.end()
            told += 1
            if as_json:
                print_json([one])
            else:
                out.print(_line(one, text), soft_wrap=True)
    if not told:
        note("That text is nowhere in this ledger, as far as was asked.")
        ctx.exit(Exit.NO)
    if told == limit:
        note(f"These are the newest {limit}; --limit shows more.")


def _line(one: Found, text: str) -> Text:
    place = f"{on_day(one['recorded_at'])}  {one['run_id'][:_RUN]}:{one['position']}"
    excerpt = Text(line(one["excerpt"], 400))
    excerpt.highlight_regex(re.compile(re.escape(line(text, 400)), re.IGNORECASE), style="bold yellow")
    return Text.assemble((line(place), "dim"), "  ", (line(one["field"], 80), "cyan"), "  ", excerpt)
