"""`footprint sql QUERY`: any question, in SQL, to a file that is opened for reading only."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from footprint_observe.cli.output import console, db_option, one_line, short
from footprint_observe.query.question import answer


@click.command()
@click.argument("query")
@db_option
def sql(query: str, path: str) -> None:
    """Ask QUERY of the ledger and print the rows; tab-separated when the output is no terminal.

    Views: decisions, runs, tool_calls, model_calls, pauses, window_records.
    """
    columns, rows = answer(path, query)
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            click.echo("\t".join("" if cell is None else one_line(str(cell)) for cell in row))
        return
    table = Table(*(short(column, 60) for column in columns), pad_edge=False)
    for row in rows:
        table.add_row(*("" if cell is None else short(str(cell), 200) for cell in row))
    console().print(table)
