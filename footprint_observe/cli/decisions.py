"""`footprint decisions`: decision rows, filtered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich.box import SIMPLE
from rich.table import Table

from footprint_core import plain
from footprint_observe.cli.difference import difference
from footprint_observe.cli.options import db_option, filter_options, json_option, limit_option, run_option
from footprint_observe.cli.output import note, outcome_text, paged, print_json, short
from footprint_observe.query.decisions import decisions as matching
from footprint_observe.query.rows import DecisionRow

_NEWEST = 50


@click.command()
@db_option
@json_option
@run_option()
@filter_options
@limit_option(None, f"At most so many, the newest; {_NEWEST} without --run.")
def decisions(*, path: str, as_json: bool, run: str | None, limit: int | None, **filters: Any) -> None:
    """List decisions, the newest last; with --run, all of that run."""
    if limit is None and run is None:
        limit = _NEWEST
    rows = matching(path, run=run, limit=limit, **filters)
    if as_json:
        print_json(rows)
        return
    if not rows:
        note("No decision of this ledger matches.")
        return
    with paged() as out:
        out.print(decision_table(rows))
    if len(rows) == limit:
        note(f"These are the newest {limit}; --limit shows more.")


def decision_table(rows: Sequence[DecisionRow]) -> Table:
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


def _where(row: DecisionRow) -> str:
    if row["tool_name"] is None:
        return str(row["moment"])
    return f"{row['moment'].removesuffix('-tool')} {short(row['tool_name'], 24)}"


def _told(row: DecisionRow) -> str:
    lines = [short(plain.rendered(row["why"]), 200)] if row["why"] else []
    if row["shadow"]:
        lines.append("[dim]only recorded[/]")
    if row["changed"]:
        lines.append(difference(row["before"], row["after"]))
    return "\n".join(lines)
