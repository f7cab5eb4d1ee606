"""What a shell completes from the ledger: the newest runs, the rules that decided."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem

from footprint_core.errors import FootprintError
from footprint_observe.query.database import ask
from footprint_observe.query.totals import totals

# Without the columns that count the rows of a run.
_NEWEST = "select run_id, started_at from runs order by id desc limit 20"


def run_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of the newest runs, with when they began."""
    del param
    try:
        found = ask(_path(ctx), _NEWEST, {})
    except FootprintError:
        return []
    names = [CompletionItem("last", help="the newest run")]
    names += [CompletionItem(run["run_id"], help=(run["started_at"] or "")[:19]) for run in found]
    return [name for name in names if name.value.startswith(incomplete)]


def rule_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The rules that decided something."""
    del param
    try:
        found = totals(_path(ctx), by=("rule",))
    except FootprintError:
        return []
    names = dict.fromkeys(row["middleware"] for row in found)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _path(ctx: click.Context) -> str:
    return ctx.params.get("path") or os.environ.get("FOOTPRINT_DB") or "footprint.db"
