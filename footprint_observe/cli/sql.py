"""`footprint sql QUERY`: any question, in SQL, to a file that is opened for reading only."""

from __future__ import annotations

import sqlite3
import sys

import click
from rich.table import Table

from footprint_observe.cli.output import console, db_option, short
from footprint_observe.query.database import reading


@click.command()
@click.argument("query")
@db_option
def sql(query: str, path: str) -> None:
    """Ask QUERY of the ledger and print the rows; tab-separated when the output is no terminal.

    Views: decisions, runs, tool_calls, model_calls, pauses, window_records.
    """
    with reading(path) as db:
        try:
            cursor = db.conn.execute(query)
            columns = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
        except sqlite3.Error as error:
            raise click.UsageError(f"SQLite does not take that query ({error}); correct it.") from None
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            click.echo("\t".join("" if cell is None else str(cell) for cell in row))
        return
    table = Table(*columns, pad_edge=False)
    for row in rows:
        table.add_row(*("" if cell is None else short(str(cell), 200) for cell in row))
    console().print(table)
