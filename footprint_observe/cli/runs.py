"""`footprint runs`: the newest runs."""

from __future__ import annotations

import click
from rich.table import Table

from footprint_observe.cli.output import console, db_option, short
from footprint_observe.query.runs import runs as newest

_OUTCOMES = {"answered": "green", "denied": "red", "failed": "red", "paused": "yellow", "open": "yellow"}


@click.command()
@db_option
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="At most so many.")
def runs(path: str, limit: int) -> None:
    """List the newest runs, newest first."""
    table = Table(box=None, pad_edge=False)
    for column in ("run", "started", "agent", "outcome", "decisions", "denied", "asked", "message"):
        table.add_column(column, no_wrap=column != "message", justify="right" if column in _NUMBERS else "left")
    for run in newest(path, limit=limit):
        color = _OUTCOMES.get(run["outcome"], "")
        table.add_row(
            run["run_id"],
            run["started_at"][:19],
            short(run["agent"], 20),
            f"[{color}]{run['outcome']}[/]" if color else run["outcome"],
            str(run["decisions"]),
            str(run["denials"]),
            str(run["asks"]),
            short(run["question"] or "", 40),
        )
    console().print(table)


_NUMBERS = {"decisions", "denied", "asked"}
