"""`footprint why CALL`: who decided what about one call, and what ran in the end."""

from __future__ import annotations

import click
from rich.box import SIMPLE
from rich.table import Table

from footprint_observe.cli.decisions import decision_table
from footprint_observe.cli.output import console, db_option, short, shown
from footprint_observe.query.calls import approved_args, calls, decided
from footprint_observe.query.database import Record
from footprint_observe.query.runs import run as one_run


@click.command()
@click.argument("call")
@db_option
@click.option("--run", "run", default="last", show_default=True, help="Its run: an id, or the beginning.")
def why(call: str, run: str, path: str) -> None:
    """Show who decided what about CALL, the id a model gave it."""
    run_id = one_run(path, run)["run_id"]
    out = console()
    for one in calls(path, run_id, call):
        out.print(
            f"call [bold]{short(one['tool_call_id'])}[/] of {short(one['tool_name'])}, iteration "
            f"{one['iteration']}: {one['status'] or 'open'}"
        )
        decisions = decided(path, one)
        out.print(decision_table(decisions) if decisions else "No rule decided about it.")
        approved = approved_args(decisions)
        if approved is not None:
            out.print(_side_by_side(approved, one))


def _side_by_side(approved: str, call: Record) -> Table:
    """What a person approved, and what ran although a rule changed it behind them."""
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    table.add_column("approved", overflow="fold", ratio=1)
    table.add_column("ran" if call["args"] is not None else "did not run", overflow="fold", ratio=1)
    table.add_row(shown(approved, 400), shown(call["args"], 400))
    return table
