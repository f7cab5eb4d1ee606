"""`footprint decisions`: decision rows, filtered."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.box import SIMPLE
from rich.table import Table

from footprint_core.moments import LOOP_MOMENTS
from footprint_observe.cli.difference import difference
from footprint_observe.cli.output import LIMIT, console, db_option, outcome_text, short
from footprint_observe.query.database import Record
from footprint_observe.query.decisions import decisions as matching
from footprint_observe.query.runs import run as one_run


@click.command()
@db_option
@click.option("--run", "run", help="Only this run: its id, the beginning of it, or `last`.")
@click.option("--rule", help="Only this rule.")
@click.option("--outcome", type=click.Choice(["allow", "deny", "ask"]), help="Only this outcome.")
@click.option("--moment", type=click.Choice(LOOP_MOMENTS), help="Only this moment.")
@click.option("--tool", help="Only calls of this tool.")
@click.option("--limit", default=50, show_default=True, type=LIMIT, help="At most so many.")
def decisions(
    path: str,
    run: str | None,
    rule: str | None,
    outcome: str | None,
    moment: str | None,
    tool: str | None,
    limit: int,
) -> None:
    """List decisions, the newest last; with --run, all of that run."""
    run_id = None if run is None else one_run(path, run)["run_id"]
    rows = matching(path, run_id=run_id, rule=rule, outcome=outcome, moment=moment, tool=tool, limit=limit)
    console().print(decision_table(rows))
    if run_id is None and len(rows) == limit:
        console().print(f"These are the newest {limit}; --limit shows more.")


def decision_table(rows: Sequence[Record]) -> Table:
    """Decision rows as a person reads them: who decided what where, why, and what changed."""
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", style="dim", no_wrap=True)
    table.add_column("where", no_wrap=True, style="dim")
    table.add_column("rule", no_wrap=True)
    table.add_column("decided", no_wrap=True)
    table.add_column("why, and what changed", overflow="fold", ratio=1)
    previous = ""
    for row in rows:
        where = _where(row)
        if previous and where != previous:
            table.add_section()
        table.add_row(
            str(row["id"]),
            "" if where == previous else where,
            short(row["middleware"], 24),
            outcome_text(row["outcome"]),
            _told(row),
        )
        previous = where
    return table


def _where(row: Record) -> str:
    if row["tool_name"] is None:
        return str(row["moment"])
    return f"{row['moment'].removesuffix('-tool')} {short(row['tool_name'], 24)}"


def _told(row: Record) -> str:
    lines = [short(row["why"], 200)] if row["why"] else []
    if row["changed"]:
        lines.append(difference(row["before"], row["after"]))
    return "\n".join(lines)
