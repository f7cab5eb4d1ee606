"""`footprint sql QUERY`: any question, in SQL, to a file that is opened for reading only."""

from __future__ import annotations

import click
from rich.table import Table

from footprint_observe.cli.options import db_option, json_option
from footprint_observe.cli.output import is_terminal, one_line, paged, print_json, short
from footprint_observe.query.sql import Answers, asked

_TIMEOUT = 60.0


def _parameters(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise click.BadParameter("give NAME=VALUE, for :NAME in the query.")
        parameters[name] = value
    return parameters


@click.command()
@click.argument("query")
@db_option
@json_option
@click.option(
    "-p", "parameters", multiple=True, metavar="NAME=VALUE", callback=_parameters, help="A value for :NAME."
)
@click.option(
    "--timeout",
    default=_TIMEOUT,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop the query after so long.",
)
def sql(*, query: str, path: str, as_json: bool, parameters: dict[str, str], timeout: float) -> None:
    """Ask QUERY of the ledger and print the rows; tab-separated when the output is no terminal.

    Views: decisions, runs, tool_calls, model_calls, pauses, window_records, disclosures, decisions_by_day.
    Values of -p are text; `cast(:n as integer)` makes a number of one.
    """
    with asked(path, query, parameters, timeout=timeout) as found:
        if as_json:
            print_json(dict(zip(found.columns, row, strict=True)) for row in found.rows)
        elif is_terminal():
            _table(found)
        else:
            click.echo("\t".join(map(one_line, found.columns)))
            for row in found.rows:
                click.echo("\t".join("" if cell is None else one_line(str(cell)) for cell in row))


def _table(found: Answers) -> None:
    table = Table(*(short(column, 60) for column in found.columns), pad_edge=False)
    for row in found.rows:
        table.add_row(*("" if cell is None else short(str(cell), 200) for cell in row))
    with paged() as out:
        out.print(table)
