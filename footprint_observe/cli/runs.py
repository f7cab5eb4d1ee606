"""`footprint runs`: the newest runs."""

from __future__ import annotations

import click
from rich.table import Table

from footprint_observe.cli.output import LIMIT, console, db_option, short
from footprint_observe.query.runs import runs as newest

_ID = 16
"""Characters of a run id that are shown: the time and a random part. Commands take the beginning of an id."""

_OTHERS = 76
"""The widest the columns before the message get."""

_OUTCOMES = {"answered": "green", "denied": "red", "failed": "red", "paused": "yellow", "open": "yellow"}


@click.command()
@db_option
@click.option("--limit", default=20, show_default=True, type=LIMIT, help="At most so many.")
def runs(path: str, limit: int) -> None:
    """List the newest runs, newest first."""
    found = newest(path, limit=limit)
    if not found:
        console().print("There is no run in this ledger yet.")
        return
    out = console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("run", "started", "agent", "outcome"):
        table.add_column(column, no_wrap=True)
    for column in ("rows", "deny", "ask"):
        table.add_column(column, no_wrap=True, justify="right")
    table.add_column("message", no_wrap=True)
    for run in found:
        color = _OUTCOMES.get(run["outcome"], "")
        table.add_row(
            short(run["run_id"][:_ID]),
            run["started_at"][5:19].replace("T", " "),
            short(run["agent"], 12),
            f"[{color}]{run['outcome']}[/]" if color else run["outcome"],
            str(run["decisions"]),
            str(run["denials"]),
            str(run["asks"]),
            # The last column takes what the others leave, so that none of them is cut.
            short(run["question"] or "", max(10, out.width - _OTHERS)),
        )
    out.print(table)
    if len(found) == limit:
        out.print(f"These are the newest {limit}; --limit shows more.")
