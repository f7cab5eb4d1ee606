"""`footprint tail`: decisions as they are committed."""

from __future__ import annotations

from itertools import islice
from typing import Any

import click
from rich.text import Text

from footprint_core import plain
from footprint_observe.cli.options import db_option, filter_options, json_option, limit_option, run_option
from footprint_observe.cli.output import at_time, console, line, outcome_text, print_json, see_reader
from footprint_observe.query.follow import follow
from footprint_observe.query.rows import DecisionRow


@click.command()
@db_option
@json_option
@run_option()
@filter_options
@limit_option(None, "End after so many; it goes on until Ctrl-C otherwise.")
def tail(*, path: str, as_json: bool, run: str | None, limit: int | None, **filters: Any) -> None:
    """Follow the ledger: print decisions as any process commits them, until Ctrl-C.

    With --since it begins with those that are there from that time on. It ends, too, when nobody reads its
    output any more, and with 3 when the file is removed or replaced.
    """
    out = console()
    try:
        for row in islice(follow(path, run=run, looked=see_reader, **filters), limit):
            if as_json:
                print_json([row])
            else:
                out.print(_line(row), soft_wrap=True)
    except KeyboardInterrupt:
        return


def _line(row: DecisionRow) -> Text:
    where = row["tool_name"] and f" {line(row['tool_name'], 40)}"
    parts: list[Text | str | tuple[str, str]] = [
        (at_time(row["recorded_at"]), "dim"),
        "  ",
        outcome_text(row["outcome"]),
        f"  {line(row['middleware'], 40)}  ",
        (f"{row['moment']}{where or ''}", "dim"),
    ]
    if row["why"] is not None:
        parts.append((f"  {line(plain.rendered(row['why']), 200)}", "italic"))
    if row["changed"]:
        parts.append(("  changed", "yellow"))
    if row["shadow"]:
        parts.append(("  only recorded", "dim"))
    return Text.assemble(*parts)
